// Package server is the gRPC front end: it reads what a caller sent, has it authenticated, hands an order to the authority and translates the
// outcome. It decides nothing: who the caller is says tokenreview, what it may have says ca.
package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Limits of the wire, before anyone is authenticated.
const (
	maxMessage = 64 << 10
	// maxHeaderList is what the transport reads of a call's metadata; checkMetadata refuses less than that, with a reason.
	maxHeaderList = 128 << 10
	maxStreams    = 100
	// streamWorkers are goroutines that wait for calls; calls beyond them get one of their own.
	streamWorkers = 128
	// minPing lets clients ping every 10 s, the least that gRPC's own take (Istio's agents ping every 30 s). It is half of that since pings that are
	// sent evenly do not arrive so, and a client that is taken for too busy loses its connection.
	minPing = 5 * time.Second
	// connectionBuffer is how much a connection reads and writes at once.
	connectionBuffer = 8 << 10
	// handshakeTimeout bounds a connection that does not get through TLS and the HTTP/2 preface.
	handshakeTimeout = 10 * time.Second
)

// Config is what a Server is made of.
type Config struct {
	Authority *ca.Authority
	// Chancery authenticates callers of chancery.v1.
	Chancery identity.Authenticator
	// Istio authenticates callers of istio.v1.auth; nil if that service is off.
	Istio identity.Authenticator
	// IstioJitter is the share of a lifetime of which a part is taken off for Istio's agents, more the more of them renew at once.
	IstioJitter float64
	// Certificate returns the serving certificate for a connection.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// RequestTimeout bounds one call, from its headers to its end.
	RequestTimeout time.Duration
	// Limits bounds what is carried at once, over all doors.
	Limits Limits
	// Track is called when a call begins, and what it returns when it ends; for liveness.
	Track      func() (done func())
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Server holds the gRPC services. Make one grpc.Server for each listener with GRPC.
type Server struct {
	config Config
	calls  *calls
	admit  *admit
	shake  *handshakes
	health *health.Server
	watch  chan struct{} // a slot for each watcher
	stop   chan struct{}
	once   sync.Once // closes stop
}

// New returns a Server. Its health is NOT_SERVING until SetServing says otherwise.
func New(config Config) (*Server, error) {
	admit, err := newAdmit(config.Limits, config.Registerer, config.Now)
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	s := &Server{
		config: config,
		calls:  newCalls(config, stop),
		admit:  admit,
		shake: newHandshakes(&tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"h2"},
			GetCertificate: config.Certificate,
			// possession of the key is proven by the handshake; whose certificate it is, and whether it counts, tokenreview finds out
			ClientAuth:            tls.RequestClientCert,
			VerifyPeerCertificate: boundPeerChain,
			// a resumed session would bring back a client certificate that was looked at long ago
			SessionTicketsDisabled: true,
		}, config.Limits.Handshakes),
		health: health.NewServer(),
		watch:  make(chan struct{}, config.Limits.Watchers),
		stop:   stop,
	}
	s.SetServing(false)
	return s, nil
}

// Door says which services a listener offers.
type Door struct {
	Chancery, Istio bool
}

// GRPC returns a grpc.Server with the services of a door, and with health and reflection.
func (s *Server) GRPC(door Door) *grpc.Server {
	server := grpc.NewServer(append(s.calls.options(),
		grpc.Creds(s.shake),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.MaxConcurrentStreams(maxStreams),
		// a goroutine that has done one signature has the stack for the next; a new one would have to grow it each time
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 15 * time.Minute, Time: time.Minute, Timeout: 20 * time.Second}),
		// messages are small and connections many: the defaults would keep 64 KiB for each
		grpc.ReadBufferSize(connectionBuffer),
		grpc.WriteBufferSize(connectionBuffer),
		grpc.WaitForHandlers(true), // what handlers work with is closed after them, also when they are not let finish
	)...)
	if door.Chancery {
		server.RegisterService(s.chancery(), nil)
	}
	if door.Istio && s.config.Istio != nil {
		server.RegisterService(s.istio(), nil)
	}
	healthpb.RegisterHealthServer(server, s.health)
	reflection.Register(server)
	return server
}

// SetServing tells gRPC health checks whether the server can issue.
func (s *Server) SetServing(ok bool) {
	state := healthpb.HealthCheckResponse_NOT_SERVING
	if ok {
		state = healthpb.HealthCheckResponse_SERVING
	}
	services := []string{"", chanceryv1.CertificateAuthority_ServiceDesc.ServiceName}
	if s.config.Istio != nil {
		services = append(services, istiov1.IstioCertificateService_ServiceDesc.ServiceName)
	}
	for _, service := range services {
		s.health.SetServingStatus(service, state)
	}
}

// Drain tells health checks and watchers that the server stops: watchers end with Unavailable, so that they call again elsewhere.
func (s *Server) Drain() {
	s.health.Shutdown()
	s.once.Do(func() { close(s.stop) })
}

// issue authenticates the caller, lets the door complete the order and has it issued in its turn. What is wrong with a message is said only to a
// caller who is known.
func (s *Server) issue(ctx context.Context, authenticator identity.Authenticator, order ca.Order, complete func(*ca.Order) error) (issuance *ca.Issuance, err error) {
	began := s.config.Now()
	principal, err := s.authenticate(ctx, authenticator)
	order.Principal = principal
	if remote := remoteOf(ctx); remote.IsValid() {
		order.Remote = remote.String()
	}
	if err == nil {
		err = complete(&order)
	}
	var done func(*ca.Issuance)
	if err == nil {
		done, err = s.admit.turn(ctx, order)
	}
	if err != nil {
		s.config.Authority.Refused(ctx, order, err, began)
		return nil, err
	}
	defer func() { done(issuance) }()
	return s.config.Authority.Issue(ctx, order)
}

func (s *Server) authenticate(ctx context.Context, authenticator identity.Authenticator) (principal *identity.Principal, err error) {
	credential, err := credentialOf(ctx)
	if err != nil {
		return nil, err
	}
	var handled bool
	if full := inPlace(ctx, s.admit.authenticating, func() { principal, handled, err = authenticator.Authenticate(ctx, credential) }); full != nil {
		return nil, full
	}
	switch {
	case err != nil:
		return nil, err
	case !handled || principal == nil:
		return nil, errkind.New(errkind.Unauthenticated, "no credential of a kind that this server accepts").Because(errkind.UnknownCredential)
	}
	return principal, nil
}
