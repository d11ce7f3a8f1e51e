package client

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// Request is what to ask a server for.
type Request struct {
	// Key is the caller's private key; it stays here.
	Key crypto.Signer
	// Token is a service-account token or a join token.
	Token string
	// Profile is the profile's name; empty means the server's default.
	Profile string
	// URIs, DNSNames and IPAddresses are the names wanted; all empty means the caller's own identity.
	URIs, DNSNames, IPAddresses []string
	// Lifetime is the lifetime wanted; zero means the profile's default.
	Lifetime time.Duration
}

// Certificate is a checked answer.
type Certificate struct {
	Chain    []*x509.Certificate // leaf first, without the trust anchor
	Bundle   Bundle
	RenewAt  time.Time
	Received time.Time
	// ServerTime is the server's clock at the time of the answer.
	ServerTime time.Time
	// Clamped says why the lifetime is shorter than asked for; empty if it is not.
	Clamped string
}

// Bundle is a trust domain's anchors as a server told them.
type Bundle struct {
	TrustDomain string
	Sequence    uint64
	Anchors     []*x509.Certificate
}

// ErrAnswer means that a server's answer does not fit what was asked for, or does not hold together.
var ErrAnswer = errors.New("the server's answer does not hold")

// Issue asks for a certificate and checks it: its key is the request's, it names what was asked for, and it leads to the bundle that came with it
// and from there to a trust anchor that was pinned when dialling (the TLS connection vouches for the bundle). Errors from the server
// are gRPC statuses; a bad answer is ErrAnswer.
func (c *Client) Issue(ctx context.Context, request Request) (*Certificate, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, request.Key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate request: %w", err)
	}
	message := &chanceryv1.IssueCertificateRequest{
		Csr:     csr,
		Profile: request.Profile,
		Names:   &chanceryv1.Names{Uris: request.URIs, DnsNames: request.DNSNames, IpAddresses: request.IPAddresses},
	}
	if request.Lifetime > 0 {
		message.Lifetime = durationpb.New(request.Lifetime)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+request.Token)
	response, err := c.authority.IssueCertificate(ctx, message)
	if err != nil {
		return nil, err
	}
	return checkAnswer(request, response, time.Now())
}

func checkAnswer(request Request, response *chanceryv1.IssueCertificateResponse, now time.Time) (*Certificate, error) {
	chain, err := parseAll(response.GetChain())
	if err != nil {
		return nil, fmt.Errorf("%w: the chain: %w", ErrAnswer, err)
	}
	bundle, err := parseBundle(response.GetBundle())
	if err != nil {
		return nil, err
	}
	leaf := chain[0]
	public, err := x509.MarshalPKIXPublicKey(request.Key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding the public key: %w", err)
	}
	if !bytes.Equal(public, leaf.RawSubjectPublicKeyInfo) {
		return nil, fmt.Errorf("%w: the certificate is for another key", ErrAnswer)
	}
	if err := checkNames(request, leaf); err != nil {
		return nil, err
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, anchor := range bundle.Anchors {
		roots.AddCert(anchor)
	}
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	// the server's clock, so that an answer is not thrown away for a clock of ours that is off: the dates are the server's promise to its verifiers
	at := response.GetServerTime().AsTime()
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, fmt.Errorf("%w: the chain does not lead to the trust bundle: %w", ErrAnswer, err)
	}
	return &Certificate{
		Chain: chain, Bundle: bundle, RenewAt: response.GetRenewAt().AsTime(), Received: now, ServerTime: at,
		Clamped: response.GetLifetimeClamp().GetReason(),
	}, nil
}

// checkNames refuses a certificate that lacks a name that was asked for. Without names asked, the server's word for the identity counts.
func checkNames(request Request, leaf *x509.Certificate) error {
	for _, wanted := range request.URIs {
		if !slices.ContainsFunc(leaf.URIs, func(u *url.URL) bool { return u.String() == wanted }) {
			return fmt.Errorf("%w: the certificate lacks the name %s", ErrAnswer, wanted)
		}
	}
	for _, wanted := range slices.Concat(request.DNSNames, request.IPAddresses) {
		if err := leaf.VerifyHostname(wanted); err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return nil
}

func parseBundle(message *chanceryv1.TrustBundle) (Bundle, error) {
	anchors, err := parseAll(message.GetAnchors())
	if err != nil {
		return Bundle{}, fmt.Errorf("%w: the trust bundle: %w", ErrAnswer, err)
	}
	return Bundle{TrustDomain: message.GetTrustDomain(), Sequence: message.GetSequence(), Anchors: anchors}, nil
}

func parseAll(encoded [][]byte) ([]*x509.Certificate, error) {
	if len(encoded) == 0 {
		return nil, errors.New("it is empty")
	}
	certificates := make([]*x509.Certificate, 0, len(encoded))
	for i, der := range encoded {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}
