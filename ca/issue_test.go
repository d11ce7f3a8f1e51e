package ca_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/signertest"
)

func TestIssue(t *testing.T) {
	b := newBed(t)
	o := order(t)
	issuance := b.issue(t, o)
	b.wantSteps(t, "reserve", "sign", "commit")

	leaf := issuance.Chain.Leaf()
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, anchor := range issuance.Bundle.Anchors() {
		roots.AddCert(anchor)
	}
	for _, intermediate := range issuance.Chain.Intermediates() {
		intermediates.AddCert(intermediate)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{usage}})
		must(t, err)
	}
	parsed, err := x509.ParseCertificateRequest(o.CSR)
	must(t, err)
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != web || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) != 0 ||
		len(leaf.Subject.Names) != 0 || !bytes.Equal(leaf.RawSubjectPublicKeyInfo, parsed.RawSubjectPublicKeyInfo) {
		t.Errorf("the leaf names %v %v with the subject %s", leaf.URIs, leaf.DNSNames, leaf.Subject)
	}
	if !leaf.NotBefore.Equal(start.Add(-time.Minute)) || !leaf.NotAfter.Equal(start.Add(24*time.Hour)) || !issuance.NotAfter.Equal(leaf.NotAfter) ||
		!issuance.Issued.Equal(start) || issuance.Rule != "self" || issuance.Clamp.Reason != "" || issuance.Bundle.Sequence() != 1 ||
		issuance.Serial.Int().Cmp(leaf.SerialNumber) != 0 {
		t.Errorf("the issuance is %+v", issuance)
	}
	entry, err := b.ledger.Get(t.Context(), issuance.Serial)
	must(t, err)
	if entry.State != ledger.Issued || entry.Identity != web || entry.Profile != "workload" || entry.Rule != "self" ||
		!slices.Equal(entry.Names, []string{"URI:" + web}) || !bytes.Equal(entry.Outcome.Certificate, leaf.Raw) ||
		!bytes.Equal(entry.Outcome.IssuerKeyID, leaf.AuthorityKeyId) || !entry.Outcome.NotAfter.Equal(leaf.NotAfter) || !entry.Created.Equal(start) {
		t.Errorf("the ledger has %+v", entry)
	}
	if want := (ledger.Origin{
		Method: "kubernetes", CredentialID: "JTI=6b1d", Door: "chancery", Remote: "192.0.2.99:1234", Cluster: "local", Namespace: "default", Account: "web",
		AccountUID: "uid-sa", Pod: "web-0", PodUID: "uid-pod", Node: "node-1", NodeUID: "uid-node",
	}); entry.Origin != want {
		t.Errorf("the ledger has the origin %+v", entry.Origin)
	}
}

// TestReserveIsDurableBeforeSign looks into the ledger's file from beside, at the moment at which the key is used.
func TestReserveIsDurableBeforeSign(t *testing.T) {
	b := newBed(t)
	looked := false
	b.signer.before = func(ctx context.Context, o *signer.Order) error {
		beside, err := sqlite.Open(ctx, sqlite.Config{Path: b.path, ReadOnly: true})
		must(t, err)
		defer beside.Close()
		serial, err := ledger.SerialFromInt(o.Leaf.Serial)
		must(t, err)
		entry, err := beside.Get(ctx, serial)
		if err != nil || entry.State != ledger.Reserved || entry.Identity != web {
			t.Errorf("when the key is used, the ledger's file has %+v, %v", entry, err)
		}
		looked = true
		return nil
	}
	b.issue(t, order(t))
	if !looked {
		t.Error("the key was not used")
	}
}

// TestNothingLeavesWithoutCommit fails the commit, before it is written and after.
func TestNothingLeavesWithoutCommit(t *testing.T) {
	fault := errors.New("no space left on device")
	for name, arm := range map[string]func(*bed){
		"not written":          func(b *bed) { b.ledger.beforeCommit = func(context.Context) error { return fault } },
		"written and not said": func(b *bed) { b.ledger.afterCommit = func(context.Context) error { return fault } },
		"settled by another":   func(b *bed) { b.ledger.beforeCommit = func(context.Context) error { return ledger.ErrSettled } },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			arm(b)
			issuance, err := b.authority.Issue(t.Context(), order(t))
			wantKind(t, err, errkind.Unavailable, "the ledger cannot record this certificate, so it is not issued")
			if issuance != nil {
				t.Error("a certificate left without its commit")
			}
			b.wantSteps(t, "reserve", "sign", "commit")
			if entries := b.entries(t); len(entries) != 1 || entries[0].State == ledger.Failed {
				t.Errorf("the ledger has %+v; what was signed must stay visible", entries)
			}
			if strings.Contains(errkind.Message(err), fault.Error()) {
				t.Errorf("the caller gets %q", errkind.Message(err))
			}
		})
	}
}

// TestReserveFails uses no key without a reservation.
func TestReserveFails(t *testing.T) {
	for name, test := range map[string]struct {
		fault error
		kind  errkind.Kind
		say   string
	}{
		"unavailable":       {ledger.ErrUnavailable, errkind.Unavailable, "the ledger cannot record"},
		"a serial of old":   {ledger.ErrDuplicate, errkind.Unavailable, "the ledger cannot record"},
		"an unknown error":  {errors.New("boom"), errkind.Unavailable, "the ledger cannot record"},
		"a used join token": {ledger.ErrTokenUsed, errkind.Unauthenticated, "already used; make a new one with: chancery token create"},
		"a gone join token": {ledger.ErrTokenGone, errkind.Unauthenticated, "unknown or has expired; make a new one with: chancery token create"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.ledger.beforeReserve = func(context.Context) error { return test.fault }
			issuance, err := b.authority.Issue(t.Context(), order(t))
			wantKind(t, err, test.kind, test.say)
			if issuance != nil || len(b.entries(t)) != 0 {
				t.Error("something was issued")
			}
			b.wantSteps(t, "reserve")
		})
	}
}

// joinToken adds a join token to the ledger and returns its hash.
func (b *bed) joinToken(t testing.TB) []byte {
	t.Helper()
	hash := bytes.Repeat([]byte{7}, 32)
	must(t, b.ledger.AddToken(t.Context(), ledger.JoinToken{Hash: hash, ID: "t1", Identity: web, Created: start, Expires: start.Add(time.Hour)}))
	return hash
}

func TestSignFails(t *testing.T) {
	for name, test := range map[string]struct {
		fault error
		kind  errkind.Kind
		say   string
	}{
		"for good":          {errors.Join(signer.ErrPermanent, errors.New("policy 7")), errkind.Invalid, "refused this request and will refuse it again"},
		"for now":           {errors.New("connection refused"), errkind.Unavailable, "not available; try again"},
		"by a deadline":     {context.DeadlineExceeded, errkind.Unavailable, "not available; try again"},
		"classified itself": {errkind.New(errkind.Invalid, "hidden"), errkind.Unavailable, "not available; try again"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			hash := b.joinToken(t)
			b.signer.before = func(context.Context, *signer.Order) error {
				if _, err := b.ledger.Token(t.Context(), hash, start); !errors.Is(err, ledger.ErrTokenUsed) {
					t.Errorf("when the key is used, the join token is %v", err)
				}
				return test.fault
			}
			o := order(t)
			o.Principal.JoinToken = hash
			issuance, err := b.authority.Issue(t.Context(), o)
			wantKind(t, err, test.kind, test.say)
			if issuance != nil || !errors.Is(err, test.fault) {
				t.Errorf("got %v, %v", issuance, err)
			}
			b.wantSteps(t, "reserve", "sign", "fail")
			entries := b.entries(t)
			if len(entries) != 1 || entries[0].State != ledger.Failed || !strings.Contains(entries[0].Outcome.Reason, test.fault.Error()) {
				t.Errorf("the ledger has %+v", entries)
			}
			// the token is good again, for another try
			b.signer.before = nil
			o.CSR = request(t, newKey(t))
			b.issue(t, o)
			if _, err := b.authority.Issue(t.Context(), o); errkind.Of(err) != errkind.Unauthenticated {
				t.Errorf("a join token pays twice: %v", err)
			}
		})
	}
}

// TestFailureThatCannotBeRecorded leaves the reservation open and says so.
func TestFailureThatCannotBeRecorded(t *testing.T) {
	b := newBed(t)
	b.signer.before = func(context.Context, *signer.Order) error { return errors.New("connection refused") }
	b.ledger.beforeFail = func(context.Context) error { return ledger.ErrUnavailable }
	_, err := b.authority.Issue(t.Context(), order(t))
	wantKind(t, err, errkind.Unavailable, "the signing backend is not available")
	entries := b.entries(t)
	if len(entries) != 1 || entries[0].State != ledger.Reserved {
		t.Errorf("the ledger has %+v", entries)
	}
	open := b.logs.records(t, "reservation stays open: its failure could not be recorded")
	if len(open) != 1 || open[0]["serial"] != entries[0].Serial.String() {
		t.Errorf("the log has %v", open)
	}
}

// TestCancelled ends the caller's context at each stage.
func TestCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		arm    func(b *bed, cancel func())
		issued bool
		steps  []string
		state  ledger.State // of the one entry; empty for none
	}{
		"before it begins": {func(_ *bed, cancel func()) { cancel() }, false, []string{"reserve"}, ""},
		"while it is authorised": {func(b *bed, cancel func()) {
			rule := b.config.Rule
			b.config.Rule = func(ctx context.Context, r authorize.Request) (authorize.Verdict, bool, error) {
				cancel()
				return rule(ctx, r)
			}
		}, false, []string{"reserve"}, ""},
		"by the rule itself": {func(b *bed, cancel func()) {
			b.config.Rule = func(ctx context.Context, _ authorize.Request) (authorize.Verdict, bool, error) {
				cancel()
				return authorize.Verdict{}, false, ctx.Err()
			}
		}, false, nil, ""},
		"while it is signed": {func(b *bed, cancel func()) {
			b.signer.before = func(ctx context.Context, _ *signer.Order) error { cancel(); return ctx.Err() }
		}, false, []string{"reserve", "sign", "fail"}, ledger.Failed},
		"once it is signed": {func(b *bed, cancel func()) { b.signer.after = cancel }, true, []string{"reserve", "sign", "commit"}, ledger.Issued},
		"while it is committed": {func(b *bed, cancel func()) {
			b.ledger.beforeCommit = func(ctx context.Context) error { cancel(); return ctx.Err() }
		}, true, []string{"reserve", "sign", "commit"}, ledger.Issued},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			test.arm(b, cancel)
			must(t, b.authority.Replace(t.Context(), b.config))
			issuance, err := b.authority.Issue(ctx, order(t))
			if (err == nil) != test.issued || (issuance != nil) != test.issued {
				t.Fatalf("got %v, %v", issuance, err)
			}
			if err != nil && (errkind.Of(err) != errkind.Unavailable || !errors.Is(err, context.Canceled)) {
				t.Errorf("got %v, want one that can be tried again", err)
			}
			b.wantSteps(t, test.steps...)
			// the ledger may still be settling what nobody waits for: a later write comes after it
			must(t, b.ledger.Probe(t.Context()))
			entries := b.entries(t)
			if test.state == "" && slices.ContainsFunc(entries, func(e ledger.Entry) bool { return e.State != ledger.Failed }) ||
				test.state != "" && (len(entries) != 1 || entries[0].State != test.state) {
				t.Errorf("the ledger has %+v", entries)
			}
			if n := len(b.logs.records(t, "audit")); n != 1 {
				t.Errorf("there are %d audit records", n)
			}
		})
	}
}

// TestNames asks for names in the CSR, in the order, in both and in neither. What is asked for is granted whole or refused.
func TestNames(t *testing.T) {
	const other = "spiffe://example.org/ns/default/sa/other"
	for name, test := range map[string]struct {
		profile string
		csr     []string
		order   []string
		want    []string // in the certificate; nil if it is refused
		rule    string
		kind    errkind.Kind
		say     string
	}{
		"nothing":                               {want: []string{"URI:" + web}, rule: "self"},
		"its own in the CSR":                    {csr: []string{web}, want: []string{"URI:" + web}, rule: "self"},
		"its own in the order":                  {order: []string{web}, want: []string{"URI:" + web}, rule: "self"},
		"its own in both":                       {csr: []string{web}, order: []string{web}, want: []string{"URI:" + web}, rule: "self"},
		"its own, twice":                        {order: []string{web, web}, want: []string{"URI:" + web}, rule: "self"},
		"another in the CSR":                    {csr: []string{other}, kind: errkind.Denied, say: "may not hold URI:" + other},
		"another in the order":                  {order: []string{other}, kind: errkind.Denied, say: "may not hold URI:" + other},
		"another in both":                       {csr: []string{other}, order: []string{other}, kind: errkind.Denied, say: "may not hold"},
		"its own in the CSR, another ordered":   {csr: []string{web}, order: []string{other}, kind: errkind.Invalid, say: "ask for the same names in both or in one alone"},
		"another in the CSR, its own ordered":   {csr: []string{other}, order: []string{web}, kind: errkind.Invalid, say: "ask for the same names"},
		"more in the CSR than ordered":          {csr: []string{web, "a.org"}, order: []string{web}, kind: errkind.Invalid, say: "ask for the same names"},
		"less in the CSR than ordered":          {csr: []string{web}, order: []string{web, "a.org"}, kind: errkind.Invalid, say: "ask for the same names"},
		"its own and another, ordered":          {order: []string{web, other}, kind: errkind.Invalid, say: "exactly one SPIFFE ID"},
		"its own and a host in the CSR":         {csr: []string{web, "www.example.org"}, kind: errkind.Invalid, say: "exactly one SPIFFE ID"},
		"its own and an address, ordered":       {order: []string{web, "192.0.2.1"}, kind: errkind.Invalid, say: "exactly one SPIFFE ID"},
		"a host under the SPIFFE profile":       {order: []string{"a.web.example.org"}, kind: errkind.Invalid, say: "exactly one SPIFFE ID"},
		"its trust domain":                      {order: []string{"spiffe://example.org"}, kind: errkind.Invalid, say: "whole trust domain"},
		"a URI of another scheme":               {order: []string{"https://example.org/"}, kind: errkind.Invalid, say: "SPIFFE-ID §2"},
		"hosts in the CSR":                      {profile: "tls", csr: []string{"a.web.example.org", "192.0.2.1"}, want: []string{"DNS:a.web.example.org", "IP:192.0.2.1"}, rule: "web-names"},
		"hosts in the order":                    {profile: "tls", order: []string{"A.Web.Example.ORG", "192.0.2.1"}, want: []string{"DNS:a.web.example.org", "IP:192.0.2.1"}, rule: "web-names"},
		"hosts in both, in another case":        {profile: "tls", csr: []string{"A.web.example.org"}, order: []string{"a.WEB.example.org"}, want: []string{"DNS:a.web.example.org"}, rule: "web-names"},
		"the granted wildcard":                  {profile: "tls", order: []string{"*.web.example.org"}, want: []string{"DNS:*.web.example.org"}, rule: "web-names"},
		"a host that is not granted":            {profile: "tls", csr: []string{"www.example.org"}, kind: errkind.Denied, say: "may not hold DNS:www.example.org"},
		"a granted host and one that is not":    {profile: "tls", csr: []string{"a.web.example.org", "www.example.org"}, kind: errkind.Denied, say: "may not hold"},
		"a granted host and another's address":  {profile: "tls", order: []string{"a.web.example.org", "10.0.0.1"}, kind: errkind.Denied, say: "may not hold"},
		"nothing under the DNS profile":         {profile: "tls", kind: errkind.Invalid, say: "the request names no name"},
		"its own under the DNS profile":         {profile: "tls", order: []string{web}, kind: errkind.Invalid, say: "certifies DNS names and IP addresses"},
		"its own and a host, DNS":               {profile: "tls", order: []string{web, "a.web.example.org"}, kind: errkind.Invalid, say: "certifies DNS names and IP addresses"},
		"a granted name that breaks a rule":     {profile: "tls", order: []string{"a_b.web.example.org"}, kind: errkind.Invalid, say: "RFC 5280 §4.2.1.6"},
		"a granted name of 64 characters":       {profile: "tls", order: []string{strings.Repeat("a", 64) + ".web.example.org"}, kind: errkind.Invalid, say: "RFC 5280 §4.2.1.6"},
		"a granted name that is not ASCII":      {profile: "tls", order: []string{"\u212A.web.example.org"}, kind: errkind.Invalid, say: "breaks a rule"},
		"a granted name with a NUL":             {profile: "tls", order: []string{"a\x00.web.example.org"}, kind: errkind.Invalid, say: "RFC 5280 §4.2.1.6"},
		"an address with a zone":                {profile: "tls", order: []string{"fe80::1%eth0"}, kind: errkind.Invalid, say: "without a zone"},
		"an IPv4 address mapped into IPv6":      {profile: "tls", order: []string{"::ffff:192.0.2.1"}, want: []string{"IP:192.0.2.1"}, rule: "web-names"},
		"a profile that does not exist":         {profile: "root", kind: errkind.Invalid, say: `profile "root" does not exist here`},
		"a profile that exists in another case": {profile: "Workload", kind: errkind.Invalid, say: "does not exist here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			o := order(t)
			o.Profile, o.CSR, o.Names = test.profile, request(t, newKey(t), test.csr...), names(test.order...)
			issuance, err := b.authority.Issue(t.Context(), o)
			if test.want == nil {
				wantKind(t, err, test.kind, test.say)
				if entries := b.entries(t); len(entries) != 0 {
					t.Errorf("the ledger has %+v", entries)
				}
				b.wantSteps(t)
				return
			}
			must(t, err)
			leaf := issuance.Chain.Leaf()
			got := identity.Names{DNS: leaf.DNSNames}
			for _, uri := range leaf.URIs {
				got.URIs = append(got.URIs, uri.String())
			}
			list := got.List()
			for _, ip := range leaf.IPAddresses {
				list = append(list, "IP:"+ip.String())
			}
			entry, err := b.ledger.Get(t.Context(), issuance.Serial)
			must(t, err)
			if !slices.Equal(list, test.want) || !slices.Equal(entry.Names, test.want) || issuance.Rule != test.rule || entry.Rule != test.rule {
				t.Errorf("the certificate names %q by the rule %s; the ledger says %q", list, issuance.Rule, entry.Names)
			}
		})
	}
}

// TestExtensionsAreNeverCopied asks in the CSR for usages that no profile gives.
func TestExtensionsAreNeverCopied(t *testing.T) {
	b := newBed(t)
	key := newKey(t)
	plain := b.issue(t, ca.Order{Principal: order(t).Principal, Door: ca.DoorChancery, CSR: request(t, key)}).Chain.Leaf()
	asking := b.issue(t, ca.Order{Principal: order(t).Principal, Door: ca.DoorChancery, CSR: requestFor(t, key, []int{1, 3, 6, 1, 5, 5, 7, 3, 3})}).Chain.Leaf()
	if len(plain.Extensions) != len(asking.Extensions) {
		t.Fatalf("there are %d extensions, without the wish %d", len(asking.Extensions), len(plain.Extensions))
	}
	for i, extension := range asking.Extensions {
		if !extension.Id.Equal(plain.Extensions[i].Id) || !bytes.Equal(extension.Value, plain.Extensions[i].Value) {
			t.Errorf("extension %s is another", extension.Id)
		}
	}
}

// TestPrincipals lets nobody through that no authenticator can have returned.
func TestPrincipals(t *testing.T) {
	for name, test := range map[string]struct {
		principal *identity.Principal
		names     []string
		kind      errkind.Kind
		say       string
	}{
		"none":                    {nil, nil, errkind.Internal, "nobody who was authenticated"},
		"without an identity":     {&identity.Principal{Method: identity.MethodKubernetes}, nil, errkind.Internal, "nobody who was authenticated"},
		"of another trust domain": {&identity.Principal{ID: spiffeid.RequireFromString("spiffe://example.net/web")}, nil, errkind.Denied, "not of the trust domain example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			o := order(t)
			o.Principal = test.principal
			_, err := b.authority.Issue(t.Context(), o)
			wantKind(t, err, test.kind, test.say)
			b.wantSteps(t)
			if n := len(b.logs.records(t, "audit")); n != 1 {
				t.Errorf("there are %d audit records", n)
			}
		})
	}
}

// TestAuthorityKeys certifies no key of the authority itself.
func TestAuthorityKeys(t *testing.T) {
	remote := func(b *bed) { b.config.Signer = signertest.NewRogue(t, b.hierarchy, signertest.Forgery{}) }
	for name, test := range map[string]struct {
		key    func(*bed) *signertest.Authority
		change func(*bed)
	}{
		"the issuer's":                   {func(b *bed) *signertest.Authority { return &b.hierarchy.Issuer }, func(*bed) {}},
		"an intermediate's":              {func(b *bed) *signertest.Authority { return &b.hierarchy.Middle }, func(*bed) {}},
		"the root's":                     {func(b *bed) *signertest.Authority { return &b.hierarchy.Root }, func(*bed) {}},
		"the root's of a remote backend": {func(b *bed) *signertest.Authority { return &b.hierarchy.Root }, remote},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, test.change)
			o := order(t)
			o.CSR = request(t, test.key(b).Key)
			_, err := b.authority.Issue(t.Context(), o)
			wantKind(t, err, errkind.Denied, "an authority's own key; make a new key")
			b.wantSteps(t)
		})
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, text := range map[string][]byte{"nothing": nil, "junk": []byte("junk"), "a long text": bytes.Repeat([]byte("a"), 1<<20), "half": nil} {
		b := newBed(t)
		o := order(t)
		if name == "half" {
			text = o.CSR[:len(o.CSR)/2]
		}
		o.CSR = text
		_, err := b.authority.Issue(t.Context(), o)
		wantKind(t, err, errkind.Invalid, "certificate request")
		b.wantSteps(t)
	}
	// the config says what is read
	strict := newBed(t, func(b *bed) { b.config.Requests = csr.Rules{MaxNames: 1} })
	o := order(t)
	o.CSR = request(t, newKey(t), "a.web.example.org", "b.web.example.org")
	_, err := strict.authority.Issue(t.Context(), o)
	wantKind(t, err, errkind.Invalid, "more than 1 names")
}

func TestLifetimes(t *testing.T) {
	issuerEnd := start.Add(50 * 24 * time.Hour)
	for name, test := range map[string]struct {
		at       time.Time
		lifetime time.Duration
		granted  time.Duration // zero if it is refused
		clamp    string
		kind     errkind.Kind
		say      []string
	}{
		"the default":            {at: start, granted: 24 * time.Hour},
		"an hour":                {at: start, lifetime: time.Hour, granted: time.Hour},
		"the minimum":            {at: start, lifetime: 5 * time.Minute, granted: 5 * time.Minute},
		"too little":             {at: start, lifetime: time.Minute, kind: errkind.Invalid, say: []string{"below the minimum of profile workload, 5m0s"}},
		"too much":               {at: start, lifetime: 1000 * time.Hour, granted: 168 * time.Hour, clamp: "the maximum of profile workload is 168h0m0s"},
		"past the issuer":        {at: issuerEnd.Add(-time.Hour), granted: time.Hour, clamp: "issuer CN=issuer,O=Example ends at 2027-03-06T12:00:00Z"},
		"just before its end":    {at: issuerEnd.Add(-5 * time.Minute), granted: 5 * time.Minute, clamp: "ends at 2027-03-06T12:00:00Z"},
		"near the issuer's end":  {at: issuerEnd.Add(-5*time.Minute + time.Second), kind: errkind.Unavailable, say: []string{"issuer CN=issuer,O=Example ends at 2027-03-06T12:00:00Z", "needs a new issuer"}},
		"after the issuer's end": {at: issuerEnd.Add(time.Second), kind: errkind.Unavailable, say: []string{"clock says 2027-03-06T12:00:01Z", "ended at 2027-03-06T12:00:00Z"}},
		"a clock that is behind": {at: start.Add(-51 * 24 * time.Hour), kind: errkind.Unavailable, say: []string{"clock says 2026-11-25T12:00:00Z", "valid only from 2026-11-26T12:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.clock.set(test.at)
			o := order(t)
			o.Lifetime = test.lifetime
			issuance, err := b.authority.Issue(t.Context(), o)
			if test.granted == 0 {
				wantKind(t, err, test.kind, test.say...)
				b.wantSteps(t)
				return
			}
			must(t, err)
			leaf := issuance.Chain.Leaf()
			if got := leaf.NotAfter.Sub(test.at); got != test.granted || !issuance.NotAfter.Equal(leaf.NotAfter) {
				t.Errorf("it lives %s, want %s", got, test.granted)
			}
			wantRenewal(t, issuance)
			if clamped := issuance.Clamp.Reason != ""; clamped != (test.clamp != "") || !strings.Contains(issuance.Clamp.Reason, test.clamp) ||
				clamped && issuance.Clamp.Granted != test.granted {
				t.Errorf("the clamp is %+v", issuance.Clamp)
			}
		})
	}
}

// wantRenewal wants renewal after half and at the latest at two thirds of the life: so few certificates give no reason for an earlier one.
func wantRenewal(t testing.TB, issuance *ca.Issuance) {
	t.Helper()
	life, at := issuance.NotAfter.Sub(issuance.Issued), issuance.RenewAt.Sub(issuance.Issued)
	if 2*at <= life || 3*(at/2) > life {
		t.Errorf("renewal comes after %s of %s", at, life)
	}
}

func TestJitter(t *testing.T) {
	const rounds = 60
	b := newBed(t)
	shortest, longest := 1000*time.Hour, time.Duration(0)
	for range rounds {
		o := order(t)
		o.Door, o.Lifetime, o.Jitter = ca.DoorIstio, 10*time.Hour, 0.2
		issuance := b.issue(t, o)
		life := issuance.NotAfter.Sub(start)
		shortest, longest = min(shortest, life), max(longest, life)
		if at := issuance.RenewAt.Sub(start); at != life/2 {
			t.Errorf("of %s, renewal is counted on after %s", life, at)
		}
	}
	// so few need no more than a fourth of what may be taken away
	if shortest < 9*time.Hour+30*time.Minute-time.Second || longest > 10*time.Hour || longest-shortest < 20*time.Minute {
		t.Errorf("lives are %s to %s, want 9h30m to 10h", shortest, longest)
	}
}

// TestABackendThatGivesLess renews by what was given and not by what was approved.
func TestABackendThatGivesLess(t *testing.T) {
	b := newBed(t)
	b.signer.before = func(_ context.Context, o *signer.Order) error {
		o.Leaf.NotAfter = start.Add(time.Hour)
		return nil
	}
	issuance := b.issue(t, order(t))
	if !issuance.NotAfter.Equal(start.Add(time.Hour)) || issuance.Clamp.Granted != time.Hour || issuance.Clamp.Asked != 24*time.Hour ||
		!strings.Contains(issuance.Clamp.Reason, "the signing backend ends it at 2027-01-15T13:00:00Z") {
		t.Errorf("the issuance is %+v", issuance)
	}
	wantRenewal(t, issuance)

	b.signer.before = func(_ context.Context, o *signer.Order) error {
		o.Leaf.NotAfter = start.Add(time.Minute)
		return nil
	}
	b.steps.take()
	_, err := b.authority.Issue(t.Context(), order(t))
	wantKind(t, err, errkind.Unavailable, "less than the minimum lifetime of profile workload")
	b.wantSteps(t, "reserve", "sign", "fail")
}

// TestForgeries has a backend answer with everything that it must not get through. The ledger is real, and so are the keys.
func TestForgeries(t *testing.T) {
	for _, forgery := range signertest.Forgeries() {
		t.Run(forgery.Name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(b *bed) { b.config.Signer = signertest.NewRogue(t, b.hierarchy, forgery) })
			o := order(t)
			o.Principal.JoinToken = b.joinToken(t)
			issuance, err := b.authority.Issue(t.Context(), o)
			if issuance != nil {
				t.Fatal("a forgery left")
			}
			wantKind(t, err, errkind.Unavailable, "the signing backend answered with a certificate that was not approved")
			broken := brokenOf(t, err)
			if broken.Position != forgery.Position || broken.Rule != forgery.Rule {
				t.Errorf("got %v, want position %d and rule %s", broken, forgery.Position, forgery.Rule)
			}
			entries := b.entries(t)
			if len(entries) != 1 || entries[0].State != ledger.Failed || !strings.Contains(entries[0].Outcome.Reason, forgery.Rule) || len(entries[0].Outcome.Certificate) != 0 {
				t.Errorf("the ledger has %+v", entries)
			}
			if _, err := b.ledger.Token(t.Context(), o.Principal.JoinToken, start); err != nil {
				t.Errorf("the join token is lost: %v", err)
			}
			records := b.logs.records(t, "audit")
			if len(records) != 1 || records[0]["serial"] != entries[0].Serial.String() || records[0]["rule"] != "self" || records[0]["level"] != "ERROR" {
				t.Errorf("the audit records are %v", records)
			}
		})
	}
	b := newBed(t, func(b *bed) { b.config.Signer = signertest.NewRogue(t, b.hierarchy, signertest.Forgery{}) })
	b.issue(t, order(t)) // without a forgery
}

// TestABackendThatBreaksALint has a backend add what the checker lets through, since it grants nothing, and a lint does not.
func TestABackendThatBreaksALint(t *testing.T) {
	b := newBed(t, func(b *bed) {
		b.config.Signer = signertest.NewRogue(t, b.hierarchy, signertest.ForbiddenQualifier())
	})
	_, err := b.authority.Issue(t.Context(), order(t))
	wantKind(t, err, errkind.Unavailable, "a certificate that breaks a rule")
	if entries := b.entries(t); len(entries) != 1 || entries[0].State != ledger.Failed || !strings.Contains(entries[0].Outcome.Reason, "lint") {
		t.Errorf("the ledger has %+v", entries)
	}
}
