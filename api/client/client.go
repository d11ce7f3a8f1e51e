// Package client is how the agent, the command line and the tests talk to a Chancery server: it dials, pins the trust anchors, shows the
// credential, and holds the answer against what was asked for.
//
// It trusts nothing that it was not given: neither the machine's roots nor a server that a fingerprint does not vouch for.
package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// callTimeout bounds a call whose context is not shorter.
const callTimeout = 30 * time.Second

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	connection *grpc.ClientConn
	authority  chanceryv1.CertificateAuthorityClient
	verdict    *verdict
	pinned     []*x509.Certificate // empty only for FetchRoot
}

// Config says where the server is and whom to believe.
type Config struct {
	// Address is host:port. The server's certificate has to be for the host.
	Address string
	// Roots are the pinned trust anchors.
	Roots []*x509.Certificate
	// ServerName overrides the host that the certificate has to be for.
	ServerName string
	// Certificate returns the client certificate to show, chain and key, or nil for none. It is asked at each handshake, so that it may return another one
	// once there is one; an error fails the connection. It counts only in calls without a token. Nil shows none.
	Certificate func() (*tls.Certificate, error)
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
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: config.ServerName}
	if config.Certificate != nil {
		// not Certificates: from those the library would leave out one that does not fit what the server says of itself, and nobody would know why
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			held, err := config.Certificate()
			if held == nil {
				held = &tls.Certificate{} // none, as the library wants it said
			}
			return held, err
		}
	}
	c, err := dial(config.Address, tlsConfig)
	if err != nil {
		return nil, err
	}
	c.pinned = slices.Clone(config.Roots)
	return c, nil
}

// CheckAddress tells whether an address is of the form host:port, with a port in digits.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if number, parseErr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || parseErr != nil || number == 0 {
		return fmt.Errorf("%q is not an address of the form host:port", address)
	}
	return nil
}

func dial(address string, tlsConfig *tls.Config) (*Client, error) {
	if err := CheckAddress(address); err != nil {
		return nil, fmt.Errorf("dialling: %w", err)
	}
	verdict := &verdict{}
	connection, err := grpc.NewClient("dns:///"+address,
		grpc.WithTransportCredentials(verdict.credentials(tlsConfig)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDisableServiceConfig(), // whoever answers for the DNS must not decide whether a call is repeated
		// before a server is believed, and after, it cannot make us keep more than an answer takes
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithMaxHeaderListSize(maxAnswerHeaders),
		grpc.WithUserAgent("chancery"),
	)
	if err != nil {
		return nil, fmt.Errorf("dialling %s: %w", address, err)
	}
	return &Client{connection: connection, authority: chanceryv1.NewCertificateAuthorityClient(connection), verdict: verdict}, nil
}

// What is read of an answer: a chain and a bundle of a hundred anchors fit in many times over.
const (
	maxAnswer        = 1 << 20
	maxAnswerHeaders = 64 << 10
)

// Close releases the connection.
func (c *Client) Close() error { return c.connection.Close() }

// TrustBundle fetches the current trust bundle. Like Issue it refuses one that has nothing to do with the pinned trust anchors.
func (c *Client) TrustBundle(ctx context.Context) (Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.authority.GetTrustBundle(ctx, &chanceryv1.GetTrustBundleRequest{})
	if err != nil {
		return Bundle{}, c.explain(err)
	}
	bundle, err := parseBundle(response.GetBundle())
	if err != nil {
		return Bundle{}, err
	}
	if err := c.checkContinuity(bundle); err != nil {
		return Bundle{}, err
	}
	return bundle, nil
}

// ErrServer means that the server's own certificate does not lead to a pinned trust anchor, is not for its name, or is not valid now. To call again
// does not help.
var ErrServer = errors.New("the server is not one to trust")

// explain tells a server that is not believed from one that is not there: gRPC says Unavailable of both.
func (c *Client) explain(err error) error {
	if refusal := c.verdict.refusal(); refusal != nil && status.Code(err) == codes.Unavailable {
		return fmt.Errorf("%w: %w", ErrServer, refusal)
	}
	return err
}
