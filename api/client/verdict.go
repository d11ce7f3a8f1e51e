package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// verdict remembers whether the last server that a connection got to was believed.
type verdict struct {
	refused atomic.Pointer[tls.CertificateVerificationError]
}

// refusal returns why the last server was not believed, or nil.
func (v *verdict) refusal() error {
	if refused := v.refused.Load(); refused != nil {
		return refused
	}
	return nil
}

func (v *verdict) credentials(config *tls.Config) credentials.TransportCredentials {
	return judged{credentials.NewTLS(config), v}
}

// judged is TLS as gRPC does it, with its outcome written down.
type judged struct {
	credentials.TransportCredentials
	verdict *verdict
}

func (j judged) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	connection, info, err := j.TransportCredentials.ClientHandshake(ctx, authority, raw)
	refused, _ := errors.AsType[*tls.CertificateVerificationError](err)
	j.verdict.refused.Store(refused)
	return connection, info, err
}

func (j judged) Clone() credentials.TransportCredentials {
	return judged{j.TransportCredentials.Clone(), j.verdict}
}
