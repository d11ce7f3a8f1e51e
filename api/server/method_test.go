package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// raw sends octets as they are, as protobuf.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	octets, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be sent raw", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(octets)}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	out, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a %T cannot be received raw", v)
	}
	*out = data.Materialize()
	return nil
}

func (raw) Name() string { return "proto" }

// callRaw sends messages as they are, ends the sending side if asked to, and returns what comes back.
func (b *bed) callRaw(method string, end bool, messages ...[]byte) ([]byte, error) {
	b.t.Helper()
	stream, err := b.conn.NewStream(b.bearer(goodToken), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(raw{}))
	must(b.t, err)
	for _, message := range messages {
		if err := stream.SendMsg(message); err != nil && !errors.Is(err, io.EOF) { // EOF: the answer is there already
			b.t.Fatal(err)
		}
	}
	if end {
		must(b.t, stream.CloseSend())
	}
	var answer []byte
	if err := stream.RecvMsg(&answer); err != nil {
		return nil, err
	}
	var more []byte
	if err := stream.RecvMsg(&more); !errors.Is(err, io.EOF) {
		b.t.Errorf("after the answer came %v", err)
	}
	return answer, nil
}

// TestMessagesThatAreNone: whatever is wrong with a message is the caller's fault, in a code that no client repeats.
func TestMessagesThatAreNone(t *testing.T) {
	b := newBed(t)
	good, err := proto.Marshal(&chanceryv1.IssueCertificateRequest{Csr: newCSR(t, newKey(t), nil)})
	must(t, err)
	for name, test := range map[string]struct {
		method   string
		messages [][]byte
		says     string
	}{
		"1 MiB":                           {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, [][]byte{make([]byte, 1<<20)}, "longer than 65536 bytes"},
		"a byte over the limit":           {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, [][]byte{make([]byte, maxMessage+1)}, "longer than 65536 bytes"},
		"10 MiB through Istio's door":     {istiov1.IstioCertificateService_CreateCertificate_FullMethodName, [][]byte{make([]byte, 10<<20)}, "longer than 65536 bytes"},
		"not protobuf":                    {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, [][]byte{[]byte("not protobuf")}, "does not carry one message"},
		"not protobuf, Istio's door":      {istiov1.IstioCertificateService_CreateCertificate_FullMethodName, [][]byte{{0x0a, 0xff}}, "does not carry one message"},
		"not UTF-8 where text belongs":    {istiov1.IstioCertificateService_CreateCertificate_FullMethodName, [][]byte{{0x0a, 0x01, 0xff}}, "does not carry one message"},
		"no message":                      {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, nil, "does not carry one message"},
		"two messages":                    {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, [][]byte{good, good}, "does not carry one message"},
		"a second message that is no one": {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, [][]byte{good, []byte("not protobuf")}, "does not carry one message"},
		"a second message of 1 MiB":       {chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, [][]byte{good, make([]byte, 1<<20)}, "does not carry one message"},
		"not protobuf, of no credential":  {chanceryv1.CertificateAuthority_GetTrustBundle_FullMethodName, [][]byte{{0xff}}, "does not carry one message"},
		"not protobuf, to a stream":       {chanceryv1.CertificateAuthority_WatchTrustBundle_FullMethodName, [][]byte{{0xff}}, "does not carry one message"},
		"no message to a stream":          {chanceryv1.CertificateAuthority_WatchTrustBundle_FullMethodName, nil, "does not carry one message"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.callRaw(test.method, true, test.messages...)
			got := wantCode(t, err, codes.InvalidArgument)
			if !strings.Contains(got.Message(), test.says) {
				t.Errorf("the caller is told %q, want %q in it", got.Message(), test.says)
			}
		})
	}
	if n := len(b.issued()); n != 0 {
		t.Errorf("%d certificates were issued", n)
	}
	answer, err := b.callRaw(chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, true, good)
	must(t, err)
	must(t, proto.Unmarshal(answer, new(chanceryv1.IssueCertificateResponse)))
	// what this version does not know is let pass, as protobuf wants it
	_, err = b.callRaw(chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, true, append(bytes.Clone(good), 0xa2, 0x06, 0x01, 'x'))
	must(t, err)
}

// TestUnaryMethodsLookUnary: methods are registered as streams, and nobody outside can tell.
func TestUnaryMethodsLookUnary(t *testing.T) {
	b := newBed(t)
	t.Run("for a generated client", func(t *testing.T) {
		answer, err := b.issue()
		must(t, err)
		if len(answer.GetChain()) != 2 {
			t.Errorf("the chain has %d certificates", len(answer.GetChain()))
		}
	})
	t.Run("for reflection", func(t *testing.T) {
		stream, err := reflectionpb.NewServerReflectionClient(b.conn).ServerReflectionInfo(within(t))
		must(t, err)
		defer func() { must(t, stream.CloseSend()) }()
		services := ask(t, stream, &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		var names []string
		for _, service := range services.GetListServicesResponse().GetService() {
			names = append(names, service.GetName())
		}
		want := "chancery.v1.CertificateAuthority grpc.health.v1.Health grpc.reflection.v1.ServerReflection grpc.reflection.v1alpha.ServerReflection istio.v1.auth.IstioCertificateService"
		if got := strings.Join(names, " "); got != want {
			t.Errorf("services %s", got)
		}
		for symbol, streams := range map[string]bool{
			"chancery.v1.CertificateAuthority.IssueCertificate": false, "chancery.v1.CertificateAuthority.GetTrustBundle": false,
			"chancery.v1.CertificateAuthority.WatchTrustBundle": true, "istio.v1.auth.IstioCertificateService.CreateCertificate": false,
		} {
			answer := ask(t, stream, &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}})
			method := findMethod(t, answer.GetFileDescriptorResponse().GetFileDescriptorProto(), symbol)
			if method.GetClientStreaming() || method.GetServerStreaming() != streams {
				t.Errorf("%s: client streams %t, server streams %t", symbol, method.GetClientStreaming(), method.GetServerStreaming())
			}
		}
	})
	t.Run("for counting", func(t *testing.T) {
		if got := testutil.ToFloat64(b.server.calls.total.WithLabelValues(chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, "OK")); got != 1 {
			t.Errorf("%g calls counted", got)
		}
	})
}

func ask(t *testing.T, stream reflectionpb.ServerReflection_ServerReflectionInfoClient, question *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
	t.Helper()
	must(t, stream.Send(question))
	answer, err := stream.Recv()
	must(t, err)
	return answer
}

func findMethod(t *testing.T, files [][]byte, symbol string) *descriptorpb.MethodDescriptorProto {
	t.Helper()
	for _, text := range files {
		file := new(descriptorpb.FileDescriptorProto)
		must(t, proto.Unmarshal(text, file))
		for _, service := range file.GetService() {
			for _, method := range service.GetMethod() {
				if file.GetPackage()+"."+service.GetName()+"."+method.GetName() == symbol {
					return method
				}
			}
		}
	}
	t.Fatalf("%s is not in the descriptors", symbol)
	return nil
}

// TestInFlightLimit fills the one place there is and the queue's: the next caller is told to come back, health is still told, and the place is used again.
func TestInFlightLimit(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.InFlight, s.config.Limits.Queue = 1, 1 })
	arrived := b.signer.close()
	first, second := make(chan error, 1), make(chan error, 1)
	call := func(done chan error) {
		_, err := b.issue()
		done <- err
	}
	go call(first)
	await(t, arrived, "the first call at the signer")
	go call(second)
	for b.server.admit.limiter.State().Queued == 0 {
		<-time.After(time.Millisecond)
	}

	_, err := b.issue()
	got := wantCode(t, err, codes.ResourceExhausted)
	if wait := retryDelay(got); wait < 250*time.Millisecond || wait > time.Minute {
		t.Errorf("RetryInfo says %s", wait)
	}
	if reason := reasonIn(got); reason != string(errkind.Overloaded) {
		t.Errorf("ErrorInfo says %q", reason)
	}
	b.server.SetServing(true)
	health, err := healthpb.NewHealthClient(b.conn).Check(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	if health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health is %s", health.GetStatus())
	}

	// whoever waits gets the place that becomes free
	b.signer.open()
	must(t, await(t, first, "the first call"))
	must(t, await(t, second, "the second call"))
}

// TestDeadline: a call that takes longer than it may is answered, wherever it hangs.
func TestDeadline(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.RequestTimeout = 100 * time.Millisecond })
	t.Run("at the signer", func(t *testing.T) {
		arrived := b.signer.close()
		defer b.signer.open()
		_, err := b.issue()
		wantCode(t, err, codes.Unavailable)
		await(t, arrived, "the call at the signer")
	})
	t.Run("at the authenticator", func(t *testing.T) {
		b.authenticate(func(ctx context.Context, _ identity.Credential) (*identity.Principal, bool, error) {
			<-ctx.Done()
			return nil, true, ctx.Err()
		})
		_, err := b.issue()
		wantCode(t, err, codes.Unavailable)
	})
	t.Run("the caller sends no message", func(t *testing.T) {
		_, err := b.callRaw(chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, false)
		if got := wantCode(t, err, codes.Unavailable); !strings.Contains(got.Message(), "did not arrive in time") {
			t.Errorf("the caller is told %q", got.Message())
		}
	})
	t.Run("the caller does not end its message", func(t *testing.T) {
		good, err := proto.Marshal(&chanceryv1.IssueCertificateRequest{Csr: newCSR(t, newKey(t), nil)})
		must(t, err)
		_, err = b.callRaw(chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, false, good)
		wantCode(t, err, codes.Unavailable)
	})
	t.Run("the caller is less patient", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(b.bearer(goodToken), time.Millisecond)
		defer cancel()
		_, err := b.chancery().IssueCertificate(ctx, &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, newKey(t), nil)})
		if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	})
	if n := len(b.issued()); n != 0 {
		t.Errorf("%d certificates were issued", n)
	}
}

// beyond is a bug.
func beyond(list []int) int { return list[len(list)] }

// TestPanic: a handler's bug costs one call and not the process, and does not show what it had in its hands.
func TestPanic(t *testing.T) {
	for name, test := range map[string]struct {
		with   func()
		logged string
	}{
		"with a text that may be a secret": {func() { panic("token " + goodToken + "-secret") }, "cause=string"}, //nolint:forbidigo // that is the test
		"of the runtime":                   {func() { beyond(nil) }, "index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(s *setup) { s.config.Limits.InFlight, s.config.Limits.Authenticating = 1, 1 })
			working := b.auth
			b.authenticate(func(context.Context, identity.Credential) (*identity.Principal, bool, error) {
				test.with()
				return nil, false, nil
			})
			for range 3 { // more often than there are places: each is given back
				_, err := b.issue()
				got := wantCode(t, err, codes.Internal)
				if strings.Contains(got.Message(), "secret") || strings.Contains(got.Message(), "index") {
					t.Errorf("the caller is told %q", got.Message())
				}
			}
			b.authenticate(working)
			_, err := b.issue()
			must(t, err)
			if text := b.logs.String(); strings.Contains(text, "-secret") || !strings.Contains(text, test.logged) || !strings.Contains(text, "method_test.go") {
				t.Errorf("the log says:\n%s", text)
			}
			if got := testutil.ToFloat64(b.server.calls.total.WithLabelValues(chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, "Internal")); got != 3 {
				t.Errorf("%g calls counted", got)
			}
		})
	}
}
