package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/test/standin"
)

// load asks for certificates as fast as it is answered.
type load struct {
	inFlight    int
	connections []*grpc.ClientConn
	tokens      []string
	requests    [][]byte
}

func newLoad(_ context.Context, o options, b *bed) (*load, error) {
	l := &load{inFlight: o.inFlight}
	for range o.connections {
		c, err := grpc.NewClient(b.authority.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(b.tls())))
		if err != nil {
			return nil, err
		}
		l.connections = append(l.connections, c)
	}
	for i := range o.identities {
		l.tokens = append(l.tokens, standin.Token(i))
		key, err := newKey()
		if err != nil {
			return nil, err
		}
		request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		if err != nil {
			return nil, err
		}
		l.requests = append(l.requests, request)
	}
	return l, nil
}

func (l *load) run(ctx context.Context, duration time.Duration) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, duration+30*time.Second)
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	var latencies []time.Duration
	var lastErr error
	result := &Result{}
	for worker := range l.inFlight {
		all.Go(func() {
			client := chanceryv1.NewCertificateAuthorityClient(l.connections[worker%len(l.connections)])
			var own []time.Duration
			failures := 0
			for i := worker; time.Since(began) < duration; i += l.inFlight {
				at := time.Now()
				who := i % len(l.tokens)
				_, err := client.IssueCertificate(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+l.tokens[who]),
					&chanceryv1.IssueCertificateRequest{Csr: l.requests[who]})
				if err != nil {
					failures++
					mu.Lock()
					lastErr = err
					mu.Unlock()
					continue
				}
				own = append(own, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, own...)
			result.Failures += failures
		})
	}
	all.Wait()
	result.Wall = time.Since(began)
	result.Certificates = len(latencies)
	if result.Certificates == 0 {
		return nil, fmt.Errorf("no certificate was issued: %w", lastErr)
	}
	slices.Sort(latencies)
	result.P50, result.P99 = latencies[len(latencies)/2], latencies[len(latencies)*99/100]
	result.PerWallSecond = float64(result.Certificates) / result.Wall.Seconds()
	return result, nil
}

func (l *load) close() {
	for _, c := range l.connections {
		_ = c.Close() // nothing is on its way
	}
}

func (r *Result) print(w io.Writer) {
	out := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	out("certificates issued through gRPC   %d in %s, %d failed, %d token reviews\n", r.Certificates, r.Wall.Round(time.Millisecond), r.Failures, r.TokenReviews)
	out("latency                            p50 %s, p99 %s\n", r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond))
	out("per second                         %.0f\n", r.PerWallSecond)
	out("per second of server CPU           %.0f  (%.0f µs each)\n", r.PerCoreSecond, 1e6/r.PerCoreSecond)
	out("floor: parse, verify, sign         %.0f  (%.0f µs each; crypto/x509, which verifies what it signed)\n", r.Floor, 1e6/r.Floor)
	out("bare floor: without self-check     %.0f  (%.0f µs each)\n", r.BareFloor, 1e6/r.BareFloor)
	out("ratio to the floor                 %.2f\n", r.Ratio)
	out("ratio to the bare floor            %.2f\n\n", r.BareRatio)
	out("steps of one issuance              µs\n")
	for _, s := range r.Steps {
		out("  %-32s %.1f\n", s.Name, s.Microseconds)
	}
}
