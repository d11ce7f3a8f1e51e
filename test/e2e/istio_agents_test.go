//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/structpb"

	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
)

// agent is a client of Istio's API: what it sends beside the CSR, and how it connects.
type agent struct {
	csr        func(t *testing.T, id string) string
	connection *grpc.ClientConn
}

// pilotAgent is the agent in a sidecar, for a CA_ADDR with the server's name in the cluster.
func (s *server) pilotAgent(t *testing.T) *agent {
	return s.agent(t, pilotCSR, &tls.Config{MinVersion: tls.VersionTLS12})
}

// ztunnel is the proxy of a node in ambient mode.
func (s *server) ztunnel(t *testing.T) *agent {
	return s.agent(t, ztunnelCSR, &tls.Config{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13})
}

func (s *server) agent(t *testing.T, csr func(*testing.T, string) string, config *tls.Config) *agent {
	t.Helper()
	config.RootCAs, config.ServerName, config.NextProtos = s.roots, serviceName, []string{"h2"}
	connection := s.dial(t, s.istio, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
	return &agent{csr: csr, connection: connection}
}

// istioCall is what an agent asks. Zero fields are as agents have them.
type istioCall struct {
	token       string
	csr         string
	cluster     string // default Kubernetes
	validity    int64
	signer      string // CertSigner, which is always sent
	impersonate string
}

// certified is an agent's certificate, after the checks that the agents make themselves.
type certified struct {
	leaf    *x509.Certificate
	between []*x509.Certificate
	roots   []*x509.Certificate
	tls     tls.ConnectionState
}

func (a *agent) call(t *testing.T, call istioCall) (*certified, error) {
	t.Helper()
	fields := map[string]any{"CertSigner": call.signer}
	if call.impersonate != "" {
		fields["ImpersonatedIdentity"] = call.impersonate
	}
	extra, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	if call.cluster == "" {
		call.cluster = "Kubernetes"
	}
	md := metadata.Join(bearer(call.token), metadata.Pairs("clusterid", call.cluster))
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), md), callTimeout)
	defer cancel()
	var other peer.Peer
	response, err := istiov1.NewIstioCertificateServiceClient(a.connection).CreateCertificate(ctx,
		&istiov1.IstioCertificateRequest{Csr: call.csr, ValidityDuration: call.validity, Metadata: extra}, grpc.Peer(&other))
	if err != nil {
		return nil, err
	}
	out, err := readChain(t, response.GetCertChain())
	if err != nil {
		t.Fatalf("the answer is not for an agent: %v", err)
	}
	out.tls = other.AuthInfo.(credentials.TLSInfo).State
	return out, nil
}

// readChain reads an answer as the agents do: at least two elements, one certificate in each but the last, which is the set of roots.
func readChain(t *testing.T, elements []string) (*certified, error) {
	t.Helper()
	if len(elements) < 2 {
		return nil, fmt.Errorf("it has %d elements", len(elements))
	}
	out := &certified{roots: certificates(t, []byte(elements[len(elements)-1]))}
	for i, element := range elements[:len(elements)-1] {
		found := certificates(t, []byte(element))
		if len(found) != 1 {
			return nil, fmt.Errorf("element %d has %d certificates", i+1, len(found))
		}
		out.between = append(out.between, found...)
	}
	out.leaf, out.between = out.between[0], out.between[1:]
	return out, nil
}

// verify checks that the chain leads from the leaf to a root, and that neither has the other's place.
func (c *certified) verify(id string) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, root := range c.roots {
		roots.AddCert(root)
	}
	for _, certificate := range c.between {
		if slices.ContainsFunc(c.roots, certificate.Equal) {
			return fmt.Errorf("the root %s is among the intermediates", certificate.Subject)
		}
		between.AddCert(certificate)
	}
	if got := names(c.leaf); !slices.Equal(got, []string{id}) {
		return fmt.Errorf("it names %q", got)
	}
	_, err := c.leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

// retried tells whether the agents try again after an error of that code, all the while keeping a connection and a key.
func retried(code codes.Code) bool {
	return slices.Contains([]codes.Code{
		codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unavailable,
	}, code)
}
