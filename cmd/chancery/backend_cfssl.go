package main

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/regularfile"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/cfssl"
	"github.com/chancery-ca/chancery/signer/keystore"
)

// cfsslBackend builds the backend without asking the server, which may be away for now.
func cfsslBackend(cfg *config.Config, _ time.Time) (signer.Signer, error) {
	s := cfg.Signer.CFSSL
	c := cfssl.Config{
		Server: s.Server, ServerName: s.ServerName, Label: s.Label, Profiles: make(map[string]cfssl.Profile), SendsSubject: s.CSRSubjects == "send",
		Choices: signer.Choices{Serial: s.Serials == "server", Earlier: s.AcceptEarlier, Later: s.AcceptLonger}, Shorter: s.AcceptShorter,
		Timeout: s.Timeout, Connections: s.MaxConnections,
	}
	for i, p := range s.Profiles {
		if _, ok := cfg.Profiles[p.Profile]; !ok && p.Profile != serverProfile {
			return nil, fmt.Errorf("signer.cfssl.profiles[%d].profile: there is no profile %q", i, p.Profile)
		}
		c.Profiles[p.Profile] = cfssl.Profile{Name: p.Name, Label: p.Label}
	}
	var err error
	if c.Key, err = cfssl.LoadKey(s.AuthKey); err != nil {
		return nil, fmt.Errorf("signer.cfssl.auth_key: %w", err)
	}
	if s.ServerCAFile != "" {
		if c.ServerCAs, err = readCertificates("signer.cfssl.server_ca_file", s.ServerCAFile); err != nil {
			return nil, err
		}
	}
	if c.Client, err = clientCertificate(s); err != nil {
		return nil, err
	}
	anchors, err := readCertificates("signer.cfssl.roots", s.Roots)
	if err != nil {
		return nil, err
	}
	if c.Roots, err = bundle.New(cfg.TrustDomain, anchors); err != nil {
		return nil, fmt.Errorf("signer.cfssl.roots: %s: %w", s.Roots, err)
	}
	if s.Chain != "" {
		if c.Chain, err = readCertificates("signer.cfssl.chain", s.Chain); err != nil {
			return nil, err
		}
	}
	backend, err := cfssl.New(c)
	if err != nil {
		return nil, fmt.Errorf("signer.cfssl: %w", err)
	}
	return backend, nil
}

// clientCertificate returns what is shown to the server, or nil if nothing is.
func clientCertificate(s config.CFSSLSigner) (*tls.Certificate, error) {
	if s.ClientCertificate == "" {
		return nil, nil
	}
	certificates, err := readCertificates("signer.cfssl.client_certificate", s.ClientCertificate)
	if err != nil {
		return nil, err
	}
	key, err := keystore.LoadFile(s.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("signer.cfssl.client_key: %w", err)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificates[0].PublicKey) {
		return nil, fmt.Errorf("signer.cfssl.client_key: %s is not the key of %s", s.ClientKey, s.ClientCertificate)
	}
	shown := &tls.Certificate{PrivateKey: key, Leaf: certificates[0]}
	for _, certificate := range certificates {
		shown.Certificate = append(shown.Certificate, certificate.Raw)
	}
	return shown, nil
}

// readCertificates reads the PEM file that a setting names.
func readCertificates(setting, path string) ([]*x509.Certificate, error) {
	text, err := regularfile.Read(path, maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	certificates, err := chain.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", setting, path, err)
	}
	return certificates, nil
}
