// Command stampede starts a real server and has very many clients come at once, each with a new TLS connection and a token of its own, while another process
// looks how the probes answer. With -bad it sends tokens that nobody believes as fast as it can for a while, beside a few good callers.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/test/standin"
)

// without are limits that limit nothing, for the comparison.
const without = "limits:\n  in_flight: 100000\n  adaptive: false\n  queue: 1000000\n  authenticating: 100000\n  identity_rate: 0\n  node_rate: 0\n" +
	"  handshakes: 100000\n"

// shortLived lets agents renew several times while one looks on.
const shortLived = "profiles:\n  workload:\n    min_lifetime: 10s\n    default_lifetime: 90s\n"

func main() {
	clients := flag.Int("clients", 2000, "clients that come at once")
	bad := flag.Duration("bad", 0, "send bad tokens for so long instead")
	off := flag.Bool("off", false, "switch the limits off, for the comparison")
	agents := flag.Int("agents", 0, "have so many agents start at once and renew when they are told to, instead")
	binary := flag.String("binary", "", "chancery to measure; built from this tree if empty")
	probe := flag.String("probe", "", "look at this URL every 20 ms until standard input ends, and print how long it took (for the program itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *probe != "":
		err = look(*probe)
	case *agents > 0:
		err = run(ctx, *binary, "limits on, renewals", shortLived, func(ctx context.Context, b *bed) error { return b.fleet(ctx, *agents) })
	case *bad > 0:
		err = run(ctx, *binary, "limits on, bad tokens", "", func(ctx context.Context, b *bed) error { return b.flood(ctx, *bad) })
	default:
		name, limits := "limits on", ""
		if *off {
			name, limits = "limits off", without
		}
		err = run(ctx, *binary, name, limits, func(ctx context.Context, b *bed) error { return b.stampede(ctx, *clients) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bed is a running server.
type bed struct {
	api       *standin.API
	authority *standin.Authority
	server    *standin.Server
	requests  [][]byte
}

func run(ctx context.Context, binary, name, limits string, do func(context.Context, *bed) error) (err error) {
	dir, err := os.MkdirTemp("", "chancery-stampede-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bed{api: standin.NewAPI()}
	defer b.api.Close()
	if binary == "" {
		if binary, err = standin.Build(ctx, dir); err != nil {
			return err
		}
	}
	if b.authority, err = standin.Init(ctx, binary, filepath.Join(dir, "ca"), limits, b.api); err != nil {
		return err
	}
	if b.server, err = b.authority.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.Stop()) }()
	if err := b.server.Ready(ctx); err != nil {
		return err
	}
	for range 64 { // making keys is the clients' work, and is not measured
		request, err := newRequest()
		if err != nil {
			return err
		}
		b.requests = append(b.requests, request)
	}
	fmt.Printf("%s\n", name)
	live, err := watch(ctx, "http://"+b.authority.HTTP+"/livez")
	if err != nil {
		return err
	}
	ready, err := watch(ctx, "http://"+b.authority.HTTP+"/readyz")
	if err != nil {
		return err
	}
	if err := yieldToOthers(); err != nil {
		return err
	}
	err = do(ctx, b)
	fmt.Printf("  /livez                 %s\n  /readyz                %s\n", live(), ready())
	fmt.Printf("  server memory at most  %s\n  token reviews          %d\n", peak(b.server.Pid()), b.api.Reviews())
	return err
}

func newRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
}

// client connects anew and asks until it has a certificate, or is refused for good. It waits as it is told.
func (b *bed) client(ctx context.Context, token string, request []byte, retries *atomic.Int64) error {
	connection, err := grpc.NewClient(b.authority.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(b.authority.TLS())))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	for {
		call, cancel := context.WithTimeout(ctx, 15*time.Second)
		_, err := chanceryv1.NewCertificateAuthorityClient(connection).IssueCertificate(call, &chanceryv1.IssueCertificateRequest{Csr: request})
		cancel()
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded:
			if ctx.Err() != nil {
				return err
			}
		default:
			return err
		}
		retries.Add(1)
		wait := time.Second
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				wait = info.GetRetryDelay().AsDuration()
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// stampede has all clients come at once.
func (b *bed) stampede(ctx context.Context, clients int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tokens := make([]string, clients)
	for i := range tokens {
		tokens[i] = standin.Token(i)
	}
	took := make([]time.Duration, clients)
	var retries, failed atomic.Int64
	var last atomic.Value
	var all sync.WaitGroup
	began := time.Now()
	for i, token := range tokens {
		all.Go(func() {
			if err := b.client(ctx, token, b.requests[i%len(b.requests)], &retries); err != nil {
				failed.Add(1)
				last.Store(err.Error())
			}
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	slices.Sort(took)
	fmt.Printf("  clients                %d, %d failed for good, %d times told to come back\n", clients, failed.Load(), retries.Load())
	fmt.Printf("  until a certificate    p50 %s, p99 %s, last %s\n", short(took[clients/2]), short(took[clients*99/100]), short(took[clients-1]))
	if failed.Load() > 0 {
		return fmt.Errorf("%d clients got nothing, the last since: %v", failed.Load(), last.Load())
	}
	return nil
}

// fleet has agents start within a second and renew at renew_at, for three lifetimes and a little, and tells how evenly they came back.
func (b *bed) fleet(ctx context.Context, agents int) error {
	const connections, slice, during = 50, 5 * time.Second, 200 * time.Second
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var clients []chanceryv1.CertificateAuthorityClient
	for range connections {
		connection, err := grpc.NewClient(b.authority.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(b.authority.TLS())))
		if err != nil {
			return err
		}
		defer connection.Close()
		clients = append(clients, chanceryv1.NewCertificateAuthorityClient(connection))
	}
	counts := make([]atomic.Int64, int(during/slice)+1)
	var expired, refused atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for i := range agents {
		token := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+standin.Token(i))
		all.Go(func() {
			var ends time.Time
			for ctx.Err() == nil {
				call, cancel := context.WithTimeout(token, 15*time.Second)
				answer, err := clients[i%connections].IssueCertificate(call, &chanceryv1.IssueCertificateRequest{Csr: b.requests[i%len(b.requests)]})
				cancel()
				wait := time.Second
				switch {
				case err == nil:
					if !ends.IsZero() && time.Now().After(ends) {
						expired.Add(1)
					}
					counts[int(time.Since(began)/slice)].Add(1)
					ends, wait = answer.GetNotAfter().AsTime(), time.Until(answer.GetRenewAt().AsTime())
				default:
					refused.Add(1)
					for _, detail := range status.Convert(err).Details() {
						if info, ok := detail.(*errdetails.RetryInfo); ok {
							wait = info.GetRetryDelay().AsDuration()
						}
					}
				}
				select {
				case <-ctx.Done():
				case <-time.After(wait):
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("  agents                 %d, %d times told to come back, %d renewals after the end of a certificate\n", agents, refused.Load(), expired.Load())
	fmt.Printf("  issued in each 5 s    ")
	for i := range counts {
		fmt.Printf(" %d", counts[i].Load())
	}
	fmt.Println()
	return nil
}

// flood sends unique bad tokens, beside 20 callers who renew.
func (b *bed) flood(ctx context.Context, duration time.Duration) error {
	const attackers, callers = 64, 20
	var ignored atomic.Int64
	for i := range callers { // they are known before it begins
		if err := b.client(ctx, standin.Token(i), b.requests[i], &ignored); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var sent, refused, number atomic.Int64
	var all sync.WaitGroup
	for range attackers {
		all.Go(func() {
			connection, err := grpc.NewClient(b.authority.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(b.authority.TLS())))
			if err != nil {
				return
			}
			defer connection.Close()
			for ctx.Err() == nil {
				call := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+standin.BadToken(1_000_000+int(number.Add(1))))
				_, err := chanceryv1.NewCertificateAuthorityClient(connection).IssueCertificate(call, &chanceryv1.IssueCertificateRequest{Csr: b.requests[0]})
				sent.Add(1)
				if status.Code(err) == codes.Unauthenticated {
					refused.Add(1)
				}
			}
		})
	}
	var mu sync.Mutex
	var took []time.Duration
	var retries, failed atomic.Int64
	for i := range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := b.client(ctx, standin.Token(i), b.requests[i], &retries)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					failed.Add(1)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	all.Wait()
	if len(took) == 0 {
		return errors.New("no good caller got a certificate")
	}
	slices.Sort(took)
	fmt.Printf("  bad tokens             %d sent in %s, %d refused for good, the others told to come back\n", sent.Load(), duration, refused.Load())
	fmt.Printf("  good callers           %d certificates, %d failed for good, %d times told to come back\n", len(took), failed.Load(), retries.Load())
	fmt.Printf("  until a certificate    p50 %s, p99 %s, last %s, each with a new connection\n", short(took[len(took)/2]), short(took[len(took)*99/100]),
		short(took[len(took)-1]))
	return nil
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// watch has another process look at a URL, so that the clients here do not keep it from looking. What it returns ends that and tells what was seen.
func watch(ctx context.Context, url string) (end func() string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, "-probe", url)
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() string {
		_ = stdin.Close() // that is the sign
		if err := command.Wait(); err != nil {
			return err.Error()
		}
		return strings.TrimSpace(out.String())
	}, nil
}

// look is the other process.
func look(url string) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = bufio.NewReader(os.Stdin).ReadString(0) // until it ends
	}()
	client := &http.Client{Timeout: 10 * time.Second}
	var took []time.Duration
	bad := 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if len(took) == 0 {
				return errors.New("nothing was looked at")
			}
			slices.Sort(took)
			fmt.Printf("p50 %s, p99 %s, longest %s of %d, %d not 200\n", short(took[len(took)/2]), short(took[len(took)*99/100]), short(took[len(took)-1]), len(took), bad)
			return nil
		case <-tick.C:
		}
		began := time.Now()
		answer, err := client.Get(url)
		if err == nil {
			_ = answer.Body.Close() // it is short
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			bad++
		}
		took = append(took, time.Since(began))
	}
}

// yieldToOthers lets the server and the probes go before the clients, which in the field are on other machines (setpriority(2) is for each thread).
func yieldToOthers() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		const nicest = 19
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nicest); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// peak returns the most memory that a process ever had resident.
func peak(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
