//go:build e2e

// Package crash kills the real server under load, again and again, and then holds its ledger against what its clients have received.
package crash

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/test/standin"
)

const (
	clients = 8
	// A server works under load for a random time of this range before it is killed.
	shortest, longest = 50 * time.Millisecond, 300 * time.Millisecond
	// Every so often it is killed while it starts instead, at a random time of up to startup.
	startEvery = 10
	startup    = 150 * time.Millisecond
	// sample is how many certificates are looked up with the command line as well.
	sample = 10
)

// rounds returns how often the server is killed: CHANCERY_CRASH_ROUNDS, or 200.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CHANCERY_CRASH_ROUNDS")
	if text == "" {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CHANCERY_CRASH_ROUNDS is %q", text)
	}
	return n
}

// bed is an authority and those who ask it.
type bed struct {
	t         *testing.T
	authority *standin.Authority
	tokens    []string
	requests  [][]byte

	mu       sync.Mutex
	received map[string][]byte // leaf by serial, as the clients got them
	twice    []string          // serials that two clients got
	refused  int               // calls that failed: those that were under way at a kill
}

// TestKilled: whatever a client received is in the ledger as issued, no serial is there twice, and a killed server starts again without help.
func TestKilled(t *testing.T) {
	api := standin.NewAPI()
	t.Cleanup(api.Close)
	dir := t.TempDir()
	binary, err := standin.Build(t.Context(), dir)
	must(t, err)
	b := &bed{t: t, received: make(map[string][]byte)}
	b.authority, err = standin.Init(t.Context(), binary, filepath.Join(dir, "ca"), standin.Unlimited, api)
	must(t, err)
	for i := range clients {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		must(t, err)
		b.tokens, b.requests = append(b.tokens, standin.Token(i)), append(b.requests, request)
	}

	random := mathrand.New(mathrand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var slowest time.Duration
	total, idle := rounds(t), 0
	for round := 1; round <= total; round++ {
		if round%startEvery == 0 {
			b.killWhileStarting(time.Duration(random.Int64N(int64(startup))))
			continue
		}
		before := len(b.received)
		slowest = max(slowest, b.killUnderLoad(shortest+time.Duration(random.Int64N(int64(longest-shortest)))))
		if len(b.received) == before {
			idle++
		}
	}
	t.Logf("%d kills; %d certificates received, %d calls cut off, %d rounds without a certificate; the slowest start took %s",
		total, len(b.received), b.refused, idle, slowest.Round(time.Millisecond))
	if idle > total/2 || len(b.received) == 0 {
		t.Error("too few certificates were received: the test proves nothing")
	}
	if len(b.twice) > 0 {
		t.Errorf("two certificates have the serials %v", b.twice)
	}

	last, err := b.authority.Start()
	must(t, err)
	must(t, last.Ready(t.Context()))
	b.checkByCommand()
	must(t, last.Stop())
	b.checkLedger()
}

// killWhileStarting kills a server that has just been started.
func (b *bed) killWhileStarting(after time.Duration) {
	b.t.Helper()
	server, err := b.authority.Start()
	must(b.t, err)
	pause(server, after)
	must(b.t, server.Kill())
}

// killUnderLoad starts a server, lets all clients ask it as fast as it answers, kills it after a while, and returns how long it took to get ready.
func (b *bed) killUnderLoad(after time.Duration) time.Duration {
	b.t.Helper()
	began := time.Now()
	server, err := b.authority.Start()
	must(b.t, err)
	must(b.t, server.Ready(b.t.Context()))
	took := time.Since(began)
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	var load sync.WaitGroup
	for i := range clients {
		load.Go(func() { b.ask(ctx, i) })
	}
	pause(server, after)
	must(b.t, server.Kill())
	load.Wait()
	return took
}

// pause waits for a while, or until the server has ended by itself, which its Kill will then say.
func pause(server *standin.Server, while time.Duration) {
	select {
	case <-server.Exited():
	case <-time.After(while):
	}
}

// ask asks for certificates until a call fails, and notes what comes.
func (b *bed) ask(ctx context.Context, i int) {
	connection, err := grpc.NewClient(b.authority.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(b.authority.TLS())))
	if err != nil {
		b.t.Error(err)
		return
	}
	defer connection.Close()
	client := chanceryv1.NewCertificateAuthorityClient(connection)
	for {
		response, err := client.IssueCertificate(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+b.tokens[i]),
			&chanceryv1.IssueCertificateRequest{Csr: b.requests[i]})
		if err != nil {
			b.mu.Lock()
			b.refused++
			b.mu.Unlock()
			return
		}
		leaf := response.GetChain()[0]
		certificate, err := x509.ParseCertificate(leaf)
		if err != nil {
			b.t.Error(err)
			return
		}
		serial := string(certificate.SerialNumber.Bytes())
		b.mu.Lock()
		if _, there := b.received[serial]; there {
			b.twice = append(b.twice, certificate.SerialNumber.Text(16))
		}
		b.received[serial] = leaf
		b.mu.Unlock()
	}
}

// checkByCommand looks a few certificates up as an operator does.
func (b *bed) checkByCommand() {
	b.t.Helper()
	left := sample
	for serial, leaf := range b.received {
		if left--; left < 0 {
			return
		}
		text, err := exec.Command(b.authority.Binary, "certs", "show", "--config", b.authority.Config, "-o", "json", ledger.Serial(serial).String()).Output()
		must(b.t, err)
		var shown struct {
			State       string `json:"state"`
			Certificate string `json:"certificate"`
		}
		must(b.t, json.Unmarshal(text, &shown))
		if shown.State != string(ledger.Issued) || shown.Certificate != string(pem.Encode("CERTIFICATE", leaf)) {
			b.t.Errorf("chancery certs show says of %x: %s", serial, text)
		}
	}
}

// checkLedger holds the whole ledger against what was received.
func (b *bed) checkLedger() {
	b.t.Helper()
	path := filepath.Join(b.authority.Dir, "chancery.db")
	roll, err := sqlite.Open(b.t.Context(), sqlite.Config{Path: path, ReadOnly: true})
	must(b.t, err)
	defer func() { must(b.t, roll.Close()) }()
	missing := 0
	for serial, leaf := range b.received {
		entry, err := roll.Get(b.t.Context(), ledger.Serial(serial))
		if err != nil || entry.State != ledger.Issued || string(entry.Outcome.Certificate) != string(leaf) {
			missing++
			b.t.Errorf("a client has %x, and the ledger says %s, %v", serial, entry.State, err)
		}
	}

	states := make(map[ledger.State]int)
	seen := make(map[string]bool)
	query := ledger.Query{Limit: 1000}
	for {
		page, err := roll.Find(b.t.Context(), query)
		must(b.t, err)
		for _, entry := range page {
			states[entry.State]++
			number := string(entry.Serial)
			if entry.State == ledger.Issued {
				certificate, err := x509.ParseCertificate(entry.Outcome.Certificate)
				must(b.t, err)
				number = string(certificate.SerialNumber.Bytes())
			}
			if number != string(entry.Serial) || seen[number] {
				b.t.Errorf("serial %s is in the ledger twice, or with the certificate of another", entry.Serial)
			}
			seen[number] = true
		}
		if len(page) < query.Limit {
			break
		}
		query.After = page[len(page)-1].Serial
	}
	b.t.Logf("the ledger has %d issued, of which %d were received and %d are missing; %d reserved, %d failed",
		states[ledger.Issued], len(b.received), missing, states[ledger.Reserved], states[ledger.Failed])
	if states[ledger.Issued] < len(b.received) {
		b.t.Error("clients have more certificates than the ledger has issued")
	}
	must(b.t, sound(b.t.Context(), path))
}

// sound asks SQLite itself about its file.
func sound(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	var answer string
	err = errors.Join(db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&answer), db.Close())
	if err == nil && answer != "ok" {
		err = fmt.Errorf("SQLite says that the ledger is damaged: %s", answer)
	}
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
