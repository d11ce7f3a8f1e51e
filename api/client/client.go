// Package client is how the agent, the command line and the tests talk to a Chancery server: it dials, pins the trust anchors, shows the
// credential, and holds the answer against what was asked for.
//
// It trusts nothing that it was not given: neither the machine's roots nor a server that a fingerprint does not vouch for.
package client

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	connection *grpc.ClientConn
	authority  chanceryv1.CertificateAuthorityClient
}

// Config says where the server is and whom to believe.
type Config struct {
	// Address is host:port. The server's certificate has to be for the host.
	Address string
	// Roots are the pinned trust anchors.
	Roots []*x509.Certificate
	// ServerName overrides the host that the certificate has to be for.
	ServerName string
}

// Dial makes a Client. It does not wait for the connection.
func Dial(config Config) (*Client, error) {
	if len(config.Roots) == 0 {
		return nil, errors.New("dialling: no trust anchor is given, so that no server could be believed")
	}
	pool := x509.NewCertPool()
	for _, root := range config.Roots {
		pool.AddCert(root)
	}
	return dial(config.Address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: config.ServerName})
}

func dial(address string, tlsConfig *tls.Config) (*Client, error) {
	connection, err := grpc.NewClient("dns:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(tlsConfig)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithUserAgent("chancery"),
	)
	if err != nil {
		return nil, fmt.Errorf("dialling %s: %w", address, err)
	}
	return &Client{connection: connection, authority: chanceryv1.NewCertificateAuthorityClient(connection)}, nil
}

// Close releases the connection.
func (c *Client) Close() error { return c.connection.Close() }

// TrustBundle fetches the current trust bundle.
func (c *Client) TrustBundle(ctx context.Context) (Bundle, error) {
	response, err := c.authority.GetTrustBundle(ctx, &chanceryv1.GetTrustBundleRequest{})
	if err != nil {
		return Bundle{}, err
	}
	return parseBundle(response.GetBundle())
}

// ParseFingerprint reads a SHA-256 fingerprint in hexadecimal, with or without colons and a "sha256:" in front.
func ParseFingerprint(text string) ([sha256.Size]byte, error) {
	clean := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(text), "sha256:"), ":", "")
	decoded, err := hex.DecodeString(clean)
	if err != nil || len(decoded) != sha256.Size {
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint %.80q is not the SHA-256 of a certificate: 64 hexadecimal digits", text)
	}
	return [sha256.Size]byte(decoded), nil
}

// ErrFingerprint means that the server has no trust anchor with the fingerprint that was given.
var ErrFingerprint = errors.New("the server has no trust anchor with this fingerprint")

// FetchRoot asks a server that nothing vouches for yet for its trust bundle, and returns the one anchor whose fingerprint was given by a person. No
// credential is sent on this connection; the caller dials again with the anchor pinned.
func FetchRoot(ctx context.Context, address string, fingerprint [sha256.Size]byte) (*x509.Certificate, error) {
	//nolint:gosec // G402: nothing secret is sent, and what is read is believed only for its hash
	c, err := dial(address, &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // nothing was written
	bundle, err := c.TrustBundle(ctx)
	if err != nil {
		return nil, err
	}
	for _, anchor := range bundle.Anchors {
		if sha256.Sum256(anchor.Raw) == fingerprint {
			return anchor, nil
		}
	}
	return nil, fmt.Errorf("%w: asked for %x", ErrFingerprint, fingerprint)
}
