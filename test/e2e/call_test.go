//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// callTimeout is longer than the server's own limit: the server has to answer, not the clock.
const callTimeout = 15 * time.Second

// dial connects to a door under the server's name in the cluster.
func (s *server) dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	secure := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.roots, ServerName: serviceName})
	connection, err := grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{grpc.WithTransportCredentials(secure)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	})
	return connection
}

func bearer(token string) metadata.MD { return metadata.Pairs("authorization", "Bearer "+noted(token)) }

// issue asks for a certificate at Chancery's own door, as a client without any care of its own.
func issue(t *testing.T, connection *grpc.ClientConn, md metadata.MD, request *chanceryv1.IssueCertificateRequest) (*x509.Certificate, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), md), callTimeout)
	defer cancel()
	response, err := chanceryv1.NewCertificateAuthorityClient(connection).IssueCertificate(ctx, request)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(response.GetChain()[0])
	if err != nil {
		t.Fatalf("the leaf does not parse: %v", err)
	}
	return leaf, nil
}

// present shows a token and asks for a certificate of the caller's own identity.
func present(t *testing.T, connection *grpc.ClientConn, token string) error {
	t.Helper()
	_, err := issue(t, connection, bearer(token), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil)})
	return err
}

// retryDelay is how long a refusal asks to stay away; zero if it does not say.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// names are the URI names of a certificate.
func names(certificate *x509.Certificate) []string {
	var out []string
	for _, uri := range certificate.URIs {
		out = append(out, uri.String())
	}
	return out
}
