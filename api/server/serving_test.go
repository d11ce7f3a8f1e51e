package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
)

// servingBed is a server's own certificate under a clock of the test's.
type servingBed struct {
	*bed
	mu    sync.Mutex
	names identity.Names
}

func newServingBed(t *testing.T) *servingBed {
	t.Helper()
	s := &servingBed{bed: &bed{t: t, registry: prometheus.NewRegistry(), logs: &logs{}}, names: ownNames}
	logger, now := slog.New(slog.NewTextHandler(s.logs, nil)), time.Now()
	s.hierarchy = hierarchy(t, now)
	s.signer = &gated{inner: backend(t, s.hierarchy, now, s.hierarchy.Root)}
	s.roll = openLedger(t)
	var err error
	s.authority, err = ca.New(t.Context(), ca.Dependencies{Ledger: s.roll, Logger: logger, Registerer: s.registry, Now: time.Now}, policy(t, s.signer))
	must(t, err)
	s.serving = newServing(t, s.bed, s.subject, logger)
	return s
}

func (s *servingBed) subject() (identity.Names, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names, lifetime
}

// rename changes the configured names, as a reload does.
func (s *servingBed) rename(names identity.Names) {
	s.t.Helper()
	s.mu.Lock()
	s.names = names
	s.mu.Unlock()
	must(s.t, s.authority.Replace(s.t.Context(), policyFor(s.t, s.signer, names)))
}

// run renews until the test ends.
func (s *servingBed) run() {
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serving.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		must(s.t, <-ended)
	})
}

func (s *servingBed) current() *tls.Certificate {
	s.t.Helper()
	certificate, err := s.serving.Certificate(nil)
	must(s.t, err)
	return certificate
}

func (s *servingBed) failures() float64 { return testutil.ToFloat64(s.serving.failures) }

// inLedger returns the issuances of the server's own certificate.
func (s *servingBed) inLedger() []ledger.Entry {
	s.t.Helper()
	entries, err := s.roll.Find(s.t.Context(), ledger.Query{State: ledger.Issued, Limit: 1000})
	must(s.t, err)
	return entries
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // of the fake clock
	synctest.Wait()
}

func TestServingCertificateIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		leaf := s.current().Leaf
		if strings.Join(leaf.DNSNames, " ") != "localhost" || len(leaf.URIs) != 0 || leaf.VerifyHostname("localhost") != nil {
			t.Errorf("it is for %v and %v", leaf.DNSNames, leaf.URIs)
		}
		if n := len(s.current().Certificate); n != 2 {
			t.Errorf("%d certificates are served, want the leaf and its issuer", n)
		}
		entries := s.inLedger()
		if len(entries) != 1 {
			t.Fatalf("%d issuances are in the ledger", len(entries))
		}
		entry := entries[0]
		if !bytes.Equal(entry.Outcome.Certificate, leaf.Raw) || entry.Origin.Door != string(ca.DoorServer) || entry.Profile != ownProfile || entry.Rule != "server" {
			t.Errorf("the ledger says %+v", entry.Intent)
		}
		if got := testutil.ToFloat64(s.serving.notAfter); got != float64(leaf.NotAfter.Unix()) {
			t.Errorf("the metric says that it ends at %f", got)
		}
	})
}

func TestNoCertificateYet(t *testing.T) {
	s := NewServing(ServingConfig{Registerer: prometheus.NewRegistry()})
	if _, err := s.Certificate(nil); err == nil {
		t.Error("there is none, and no error")
	}
}

// TestServingCertificateIsRenewed looks every minute of a day whether what is served is good for a while.
func TestServingCertificateIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		s.run()
		for range 24 * 60 {
			pass(time.Minute)
			leaf := s.current().Leaf
			if left := time.Until(leaf.NotAfter); left < lifetime/4 {
				t.Fatalf("at %s the certificate has only %s left", time.Now(), left)
			}
		}
		// each lives for half to two thirds of an hour
		if n := len(s.inLedger()); n < 36 || n > 49 {
			t.Errorf("%d issuances in a day", n)
		}
		if s.failures() != 0 {
			t.Errorf("%g failures", s.failures())
		}
	})
}

// TestFailedRenewal: the old certificate is served for as long as renewals fail, each failure counts, and the first that succeeds is used.
func TestFailedRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		old := s.current()
		s.signer.failWith(errors.New("the backend is away"))
		s.run()
		pass(lifetime - 5*time.Minute)
		if s.current() != old {
			t.Fatal("the old certificate is not served any more")
		}
		failed := s.failures()
		if failed < 10 || !strings.Contains(s.logs.String(), "serving certificate not renewed") || !strings.Contains(s.logs.String(), "the backend is away") {
			t.Errorf("%g failures, and the log says:\n%s", failed, s.logs.String())
		}
		s.signer.failWith(nil)
		pass(renewalTick)
		if s.current() == old {
			t.Error("the old certificate is still served although renewals succeed")
		}
		if s.failures() != failed {
			t.Errorf("%g failures after the success", s.failures()-failed)
		}
	})
}

// TestExpiredServingCertificate: a machine that slept beyond the certificate's end has a new one at the first look.
func TestExpiredServingCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		pass(30 * lifetime)
		s.run()
		pass(renewalTick)
		if left := time.Until(s.current().Leaf.NotAfter); left <= 0 {
			t.Errorf("the certificate ended %s ago", -left)
		}
	})
}

func TestNamesChangeOnReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		s.run()
		s.rename(identity.Names{DNS: []string{"ca.example.org"}})
		must(t, s.serving.Renew(t.Context()))
		if got := s.current().Leaf.DNSNames; len(got) != 1 || got[0] != "ca.example.org" {
			t.Errorf("it is for %v", got)
		}

		// if just then no certificate can be had, the new names come with the next look and not with the old certificate's end
		s.signer.failWith(errors.New("the backend is away"))
		s.rename(identity.Names{DNS: []string{"new.example.org"}})
		if err := s.serving.Renew(t.Context()); err == nil {
			t.Fatal("a renewal without a backend succeeded")
		}
		s.signer.failWith(nil)
		pass(renewalTick)
		if got := s.current().Leaf.DNSNames; len(got) != 1 || got[0] != "new.example.org" {
			t.Errorf("it is for %v", got)
		}
	})
}

// TestRenewalsAtOnce: of two renewals under way the one with the newer names has the last word.
func TestRenewalsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		arrived := s.signer.close()
		results := make(chan error, 2)
		go func() { results <- s.serving.Renew(t.Context()) }()
		<-arrived
		s.rename(identity.Names{DNS: []string{"new.example.org"}})
		go func() { results <- s.serving.Renew(t.Context()) }()
		synctest.Wait()
		s.signer.open()
		must(t, <-results)
		must(t, <-results)
		if got := s.current().Leaf.DNSNames; len(got) != 1 || got[0] != "new.example.org" {
			t.Errorf("it is for %v", got)
		}
	})
}

// TestRenewalHasADeadline: a backend that hangs does not hang the renewals.
func TestRenewalHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServingBed(t)
		s.signer.close()
		defer s.signer.open()
		began := time.Now()
		first := make(chan error, 1)
		go func() { first <- s.serving.Renew(t.Context()) }()
		synctest.Wait()
		for _, err := range []error{s.serving.Renew(t.Context()), <-first} {
			if err == nil {
				t.Error("a renewal without a backend succeeded")
			}
		}
		if took := time.Since(began); took != renewTimeout {
			t.Errorf("it took %s", took)
		}
		if s.failures() == 0 {
			t.Error("no failure was counted")
		}
	})
}
