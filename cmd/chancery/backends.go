package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/regularfile"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/keystore"
	"github.com/chancery-ca/chancery/signer/local"
)

// backends are the signing backends by their name in signer.driver.
var backends = map[string]func(cfg *config.Config, now time.Time) (signer.Signer, error){
	"cfssl": cfsslBackend,
	"local": localBackend,
}

func newBackend(cfg *config.Config, now time.Time) (signer.Signer, error) {
	build, ok := backends[cfg.Signer.Driver]
	if !ok {
		return nil, fmt.Errorf("signer.driver %q is not one of %s", cfg.Signer.Driver, strings.Join(slices.Sorted(maps.Keys(backends)), ", "))
	}
	return build(cfg, now)
}

// maxCertificates bounds a file of certificates; it is what their reader takes.
const maxCertificates = 1 << 20

func localBackend(cfg *config.Config, now time.Time) (signer.Signer, error) {
	files := cfg.Signer.Local
	key, err := keystore.LoadFile(files.Key)
	if err != nil {
		return nil, fmt.Errorf("signer.local.key: %w", err)
	}
	issuing, err := regularfile.Read(files.Certificate, maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("signer.local.certificate: %w", err)
	}
	certificates, err := chain.ParsePEM(issuing)
	if err != nil {
		return nil, fmt.Errorf("signer.local.certificate: %s: %w", files.Certificate, err)
	}
	text, err := regularfile.Read(files.Roots, maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("signer.local.roots: %w", err)
	}
	anchors, err := chain.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("signer.local.roots: %s: %w", files.Roots, err)
	}
	roots, err := bundle.New(cfg.TrustDomain, anchors)
	if err != nil {
		return nil, fmt.Errorf("signer.local.roots: %s: %w", files.Roots, err)
	}
	backend, err := local.New(local.Config{Key: key, Chain: certificates, Roots: roots}, now)
	if err != nil {
		return nil, fmt.Errorf("signer.local: key %s, certificate %s, roots %s: %w", files.Key, files.Certificate, files.Roots, err)
	}
	return backend, nil
}
