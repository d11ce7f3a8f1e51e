package server

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/identity"
)

func TestIssueCertificate(t *testing.T) {
	b := newBed(t)
	key := newKey(t)
	before := time.Now()
	answer, err := b.chancery().IssueCertificate(b.bearer(goodToken), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, key, nil)})
	must(t, err)
	leaf, err := x509.ParseCertificate(answer.GetChain()[0])
	must(t, err)
	if !key.PublicKey.Equal(leaf.PublicKey) || len(leaf.URIs) != 1 || leaf.URIs[0].String() != cart.String() {
		t.Errorf("the leaf is for %v", leaf.URIs)
	}
	if !bytes.Equal(answer.GetChain()[1], b.hierarchy.Issuer.Raw) || len(answer.GetChain()) != 2 {
		t.Errorf("the chain has %d certificates", len(answer.GetChain()))
	}
	if got := answer.GetBundle(); len(got.GetAnchors()) != 2 || got.GetTrustDomain() != "example.org" || got.GetSequence() == 0 {
		t.Errorf("the bundle is %v", got)
	}
	if !answer.GetNotAfter().AsTime().Equal(leaf.NotAfter) {
		t.Errorf("notAfter is said to be %s and is %s", answer.GetNotAfter().AsTime(), leaf.NotAfter)
	}
	if renew := answer.GetRenewAt().AsTime(); !renew.After(before) || !renew.Before(leaf.NotAfter) {
		t.Errorf("renewal at %s", renew)
	}
	if told := answer.GetServerTime().AsTime(); told.Before(before.Add(-time.Second)) || told.After(time.Now().Add(time.Second)) {
		t.Errorf("the server's time is %s", told)
	}
	if answer.GetLifetimeClamp() != nil {
		t.Errorf("a clamp nobody asked for: %v", answer.GetLifetimeClamp())
	}
	entry := b.issued()[0]
	if !bytes.Equal(entry.Outcome.Certificate, leaf.Raw) || entry.Origin.Door != string(ca.DoorChancery) || entry.Origin.CredentialID != "jti-1" {
		t.Errorf("the ledger says %+v", entry.Origin)
	}
	if remote, err := netip.ParseAddrPort(entry.Origin.Remote); err != nil || !remote.Addr().IsLoopback() {
		t.Errorf("the ledger says that the request came from %q", entry.Origin.Remote)
	}
}

func TestLifetimes(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]struct {
		asked   *durationpb.Duration
		want    time.Duration // zero if it is refused
		clamped bool
	}{
		"absent":                        {nil, lifetime, false},
		"zero":                          {&durationpb.Duration{}, lifetime, false},
		"two hours":                     {durationpb.New(2 * time.Hour), 2 * time.Hour, false},
		"the maximum":                   {durationpb.New(maxLife), maxLife, false},
		"a second more":                 {durationpb.New(maxLife + time.Second), maxLife, true},
		"more than a Duration of Go":    {&durationpb.Duration{Seconds: 315_576_000_000}, maxLife, true},
		"more than protobuf's largest":  {&durationpb.Duration{Seconds: 315_576_000_001}, 0, false},
		"below the minimum":             {durationpb.New(time.Minute), 0, false},
		"a nanosecond":                  {durationpb.New(1), 0, false},
		"negative":                      {durationpb.New(-time.Hour), 0, false},
		"a negative part of a second":   {&durationpb.Duration{Nanos: -1}, 0, false},
		"signs that differ":             {&durationpb.Duration{Seconds: 3600, Nanos: -1}, 0, false},
		"nanoseconds that are a second": {&durationpb.Duration{Seconds: 3600, Nanos: 1_000_000_000}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := b.chancery().IssueCertificate(b.bearer(goodToken), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, newKey(t), nil), Lifetime: test.asked})
			if test.want == 0 {
				if got := wantCode(t, err, codes.InvalidArgument); !strings.Contains(got.Message(), "lifetime") {
					t.Errorf("the caller is told %q", got.Message())
				}
				return
			}
			must(t, err)
			leaf, err := x509.ParseCertificate(answer.GetChain()[0])
			must(t, err)
			wantLife(t, leaf, test.want, 0)
			clamp := answer.GetLifetimeClamp()
			if (clamp != nil) != test.clamped {
				t.Fatalf("the clamp is %v", clamp)
			}
			if test.clamped && (clamp.GetGranted().AsDuration() != test.want || clamp.GetAsked().AsDuration() <= test.want || clamp.GetReason() == "") {
				t.Errorf("the clamp is %v", clamp)
			}
		})
	}
}

func TestNames(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]struct {
		profile string
		names   *chanceryv1.Names
		code    codes.Code
		want    []string
	}{
		"none":                       {want: []string{"URI:" + cart.String()}},
		"its own":                    {names: &chanceryv1.Names{Uris: []string{cart.String()}}, want: []string{"URI:" + cart.String()}},
		"its own, twice":             {names: &chanceryv1.Names{Uris: []string{cart.String(), cart.String()}}, want: []string{"URI:" + cart.String()}},
		"another's":                  {names: &chanceryv1.Names{Uris: []string{otherIdentity}}, code: codes.PermissionDenied},
		"a DNS name that is granted": {profile: "serving", names: &chanceryv1.Names{DnsNames: []string{"CART.shop.example.org"}}, want: []string{"DNS:" + grantedName}},
		"one that is not":            {profile: "serving", names: &chanceryv1.Names{DnsNames: []string{grantedName, "till.shop.example.org"}}, code: codes.PermissionDenied},
		"an address that is not":     {profile: "serving", names: &chanceryv1.Names{IpAddresses: []string{"192.0.2.1"}}, code: codes.PermissionDenied},
		"no address":                 {profile: "serving", names: &chanceryv1.Names{IpAddresses: []string{"192.0.2"}}, code: codes.InvalidArgument},
		"an address with a zone":     {profile: "serving", names: &chanceryv1.Names{IpAddresses: []string{"fe80::1%eth0"}}, code: codes.InvalidArgument},
		"the server's own":           {profile: ownProfile, names: &chanceryv1.Names{DnsNames: ownNames.DNS}, code: codes.PermissionDenied},
		"a profile that is not":      {profile: "else", code: codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := b.chancery().IssueCertificate(b.bearer(goodToken),
				&chanceryv1.IssueCertificateRequest{Csr: newCSR(t, newKey(t), nil), Profile: test.profile, Names: test.names})
			wantCode(t, err, test.code)
			if err != nil {
				return
			}
			leaf, err := x509.ParseCertificate(answer.GetChain()[0])
			must(t, err)
			var got []string
			for _, uri := range leaf.URIs {
				got = append(got, "URI:"+uri.String())
			}
			for _, name := range leaf.DNSNames {
				got = append(got, "DNS:"+name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the certificate is for %v", got)
			}
		})
	}
}

// TestWhatIsWrongIsSaidOnlyToTheKnown: a stranger with a bad message learns that it is a stranger, and nothing about the message.
func TestWhatIsWrongIsSaidOnlyToTheKnown(t *testing.T) {
	b := newBed(t)
	request := &chanceryv1.IssueCertificateRequest{
		Csr: []byte("no CSR"), Names: &chanceryv1.Names{IpAddresses: []string{"no address"}}, Lifetime: durationpb.New(-1),
	}
	_, err := b.chancery().IssueCertificate(b.bearer("bad"), request)
	wantCode(t, err, codes.Unauthenticated)
	_, err = b.chancery().IssueCertificate(b.bearer(goodToken), request)
	wantCode(t, err, codes.InvalidArgument)
	// each of the two leaves one audit record
	if got := strings.Count(b.logs.String(), "msg=audit"); got != 3 { // and the server's own certificate one
		t.Errorf("%d audit records:\n%s", got, b.logs.String())
	}
	if got := strings.Count(b.logs.String(), "decision=unauthenticated"); got != 1 {
		t.Errorf("%d refusals of a stranger in the log", got)
	}
}

// TestCallersAreNotMixed: callers at the same time get their own names.
func TestCallersAreNotMixed(t *testing.T) {
	b := newBed(t)
	b.authenticate(func(_ context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
		return principal(spiffeid.RequireFromPath(trustDomain, "/caller/"+credential.Bearer.Reveal())), true, nil
	})
	var callers errgroup.Group
	for i := range 8 {
		name := fmt.Sprint(i)
		csr := newCSR(t, newKey(t), nil)
		callers.Go(func() error {
			for range 10 {
				answer, err := b.chancery().IssueCertificate(b.bearer(name), &chanceryv1.IssueCertificateRequest{Csr: csr})
				if err != nil {
					return err
				}
				leaf, err := x509.ParseCertificate(answer.GetChain()[0])
				if err != nil {
					return err
				}
				if got := leaf.URIs[0].String(); got != "spiffe://example.org/caller/"+name {
					return fmt.Errorf("caller %s got the certificate of %s", name, got)
				}
			}
			return nil
		})
	}
	must(t, callers.Wait())
}
