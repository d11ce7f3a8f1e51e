package client

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// Request is what to ask a server for.
type Request struct {
	// Key is the caller's private key; it stays here.
	Key crypto.Signer
	// Token is a service-account token, an ID token or a join token. Empty: the client certificate of the connection is the credential.
	Token string
	// Profile is the profile's name; empty means the server's default.
	Profile string
	// URIs, DNSNames and IPAddresses are the names wanted; all empty means the caller's own identity, a SPIFFE ID.
	URIs, DNSNames, IPAddresses []string
	// Lifetime is the lifetime wanted; zero means the profile's default.
	Lifetime time.Duration
}

// Certificate is a checked answer.
type Certificate struct {
	Chain    []*x509.Certificate // leaf first, each signed by the next, without the trust anchor
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

// Issue asks for a certificate and checks the answer:
//
//   - its key is the request's;
//   - it has the names that were asked for and no others; without any asked for it has one SPIFFE ID, of the bundle's trust domain;
//   - the chain, as it stands, leads to the trust bundle that came with it;
//   - the bundle goes on from the pinned trust anchors: at least one of them is in it, or its successor with the same name and key.
//
// The last rule is no proof of the other anchors in the bundle: for those the connection vouches, which leads to a pinned anchor. It keeps whoever
// got hold of the server's own certificate, or of a root that was retired, from putting a client's whole trust on other ground; and a rotation as it should
// be never breaks it, since the old anchor leaves the bundle only after every client has the new one. A client that slept through a rotation
// has to be given an anchor again.
//
// Errors from the server are gRPC statuses; a server that is not believed is ErrServer, a bad answer ErrAnswer.
func (c *Client) Issue(ctx context.Context, request Request) (*Certificate, error) {
	if request.Key == nil {
		return nil, errors.New("making the certificate request: no key is given")
	}
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
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if request.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+request.Token)
	}
	response, err := c.authority.IssueCertificate(ctx, message)
	if err != nil {
		return nil, c.explain(err)
	}
	return c.checkAnswer(request, response, time.Now())
}
