package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/tokenreview"
)

// acceptCertificates lets callers in with the good token, or by a certificate of the authority.
func (b *bed) acceptCertificates(change func(*tokenreview.PeerConfig)) {
	b.t.Helper()
	config := tokenreview.PeerConfig{
		TrustDomain: trustDomain, Origins: []identity.Method{identity.MethodKubernetes},
		Authority: b.authority.Certificates,
	}
	if change != nil {
		change(&config)
	}
	peer, err := tokenreview.NewPeer(b.roll, config)
	must(b.t, err)
	b.authenticate(func(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
		switch credential.Bearer.Reveal() {
		case goodToken:
			return principal(cart), true, nil
		case "":
			return peer.Authenticate(ctx, credential)
		default:
			return nil, true, errkind.New(errkind.Unauthenticated, "this token is not good")
		}
	})
}

// held makes a client certificate of an answer.
func held(key *ecdsa.PrivateKey, answer *chanceryv1.IssueCertificateResponse) *tls.Certificate {
	return &tls.Certificate{Certificate: answer.GetChain(), PrivateKey: key}
}

// join gets the first certificate, with the token.
func (b *bed) join() (*ecdsa.PrivateKey, *tls.Certificate) {
	b.t.Helper()
	key := newKey(b.t)
	answer, err := b.chancery().IssueCertificate(b.bearer(goodToken), &chanceryv1.IssueCertificateRequest{Csr: newCSR(b.t, key, nil)})
	must(b.t, err)
	return key, held(key, answer)
}

// as dials with a client certificate.
func (b *bed) as(certificate *tls.Certificate, change ...func(*tls.Config)) chanceryv1.CertificateAuthorityClient {
	b.t.Helper()
	config := b.tls()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	for _, c := range change {
		c(config)
	}
	conn, err := grpc.NewClient("passthrough:///"+b.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(b.t, err)
	b.t.Cleanup(func() { must(b.t, conn.Close()) })
	return chanceryv1.NewCertificateAuthorityClient(conn)
}

func renew(t *testing.T, client chanceryv1.CertificateAuthorityClient, key *ecdsa.PrivateKey) (*chanceryv1.IssueCertificateResponse, error) {
	t.Helper()
	return client.IssueCertificate(within(t), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, key, nil)})
}

func (b *bed) serialOf(certificate *tls.Certificate) ledger.Serial {
	b.t.Helper()
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	must(b.t, err)
	serial, err := ledger.SerialFromInt(leaf.SerialNumber)
	must(b.t, err)
	return serial
}

// TestRenewal: with the same key, with a new one, and no more once the certificate is revoked, on a connection that was there before.
func TestRenewal(t *testing.T) {
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.acceptCertificates(nil)
			of := func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
			key, first := b.join()
			answer, err := renew(t, b.as(first, of), key)
			must(t, err)
			second := held(key, answer)
			secondKey := newKey(t)
			connection := b.as(second, of)
			answer, err = renew(t, connection, secondKey)
			must(t, err)
			third := held(secondKey, answer)

			entry, err := b.roll.Get(t.Context(), b.serialOf(third))
			must(t, err)
			if entry.Identity != cart.String() || entry.Origin.Method != "certificate" || entry.Origin.FirstMethod != "kubernetes" ||
				entry.Origin.Renews != b.serialOf(second).String() {
				t.Errorf("the ledger says %s by %+v", entry.Identity, entry.Origin)
			}
			must(t, b.roll.Revoke(t.Context(), b.serialOf(second), ledger.Revocation{At: time.Now(), Reason: ledger.KeyCompromise}))
			for name, client := range map[string]chanceryv1.CertificateAuthorityClient{"the old connection": connection, "a new one": b.as(second, of)} {
				_, err = renew(t, client, secondKey)
				if got := wantCode(t, err, codes.Unauthenticated); !strings.Contains(got.Message(), "was revoked at") {
					t.Errorf("on %s the caller is told %q", name, got.Message())
				}
			}
			_, err = renew(t, b.as(third, of), secondKey)
			must(t, err)
			if n := len(b.issued()); n != 4 {
				t.Errorf("%d certificates were issued, want 4", n)
			}
		})
	}
}

// TestRenewalAfterTheEnd: only within a grace that is configured, and then the audit record says so.
func TestRenewalAfterTheEnd(t *testing.T) {
	b := newBed(t)
	key, certificate := b.join()
	for _, test := range []struct {
		name         string
		grace, later time.Duration
		code         codes.Code
	}{
		{"before", 0, lifetime - time.Minute, codes.OK},
		{"without grace", 0, lifetime + time.Minute, codes.Unauthenticated},
		{"after the grace", time.Hour, lifetime + 61*time.Minute, codes.Unauthenticated},
		{"within the grace", time.Hour, lifetime + time.Minute, codes.OK},
	} {
		b.acceptCertificates(func(c *tokenreview.PeerConfig) {
			c.Grace, c.Now = test.grace, func() time.Time { return time.Now().Add(test.later) }
		})
		_, err := renew(t, b.as(certificate), key)
		if test.code == codes.OK {
			must(t, err)
		} else if got := wantCode(t, err, test.code); !strings.Contains(got.Message(), "the certificate expired at") {
			t.Errorf("%s: the caller is told %q", test.name, got.Message())
		}
		if marked := strings.Contains(b.logs.String(), "grace=true"); marked != (test.name == "within the grace") {
			t.Errorf("%s: that a grace was used is in the log: %t", test.name, marked)
		}
	}
}

// TestCertificatesThatDoNotCount: each connects, and gets nothing by its certificate.
func TestCertificatesThatDoNotCount(t *testing.T) {
	b := newBed(t)
	b.acceptCertificates(nil)
	key, certificate := b.join()
	own, err := b.serving.Certificate(nil)
	must(t, err)
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	must(t, err)
	forge := func(parent *x509.Certificate, signer any) *tls.Certificate {
		twin := *leaf
		twin.SignatureAlgorithm = x509.ECDSAWithSHA256
		der, err := x509.CreateCertificate(bytes.NewReader(make([]byte, 1<<16)), &twin, parent, key.Public(), signer)
		must(t, err)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	for name, test := range map[string]struct {
		certificate *tls.Certificate
		says        string
	}{
		"none":                       {&tls.Certificate{}, "no credential"},
		"the server's own":           {own, "is not renewed by itself here"},
		"self-signed, of our serial": {forge(leaf, key), "none of this authority's"},
		"another of the same serial": {forge(b.hierarchy.Issuer, b.hierarchy.IssuerKey), "none of this authority's"},
		"of another authority":       {forge(b.other.Issuer, b.other.IssuerKey), "none of this authority's"},
	} {
		_, err := renew(t, b.as(test.certificate), key)
		if got := wantCode(t, err, codes.Unauthenticated); !strings.Contains(got.Message(), test.says) {
			t.Errorf("%s: the caller is told %q, want %q in it", name, got.Message(), test.says)
		}
		// who has a token needs no certificate
		if _, err := b.as(test.certificate).IssueCertificate(b.bearer(goodToken), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, key, nil)}); err != nil {
			t.Errorf("%s, with a token: %v", name, err)
		}
	}
	// and a good certificate does not help a bad token
	_, err = b.as(certificate).IssueCertificate(b.bearer("bad"), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, key, nil)})
	if got := wantCode(t, err, codes.Unauthenticated); got.Message() != "this token is not good" {
		t.Errorf("a bad token beside a certificate: the caller is told %q", got.Message())
	}
}

// TestPeerChain: what the caller shows comes through as it is, in bounds.
func TestPeerChain(t *testing.T) {
	b := newBed(t)
	_, certificate := b.join()
	leaf, issuer := certificate.Certificate[0], certificate.Certificate[1]
	large := func(octets int) []byte {
		key := newKey(t)
		template := &x509.Certificate{SerialNumber: leafSerial(t, leaf), ExtraExtensions: nil}
		template.ExtraExtensions = append(template.ExtraExtensions, extension(octets))
		der, err := x509.CreateCertificate(bytes.NewReader(make([]byte, 1<<16)), template, template, key.Public(), key)
		must(t, err)
		return der
	}
	many := func(n int) [][]byte {
		shown := [][]byte{leaf}
		for len(shown) < n {
			shown = append(shown, issuer)
		}
		return shown
	}
	for name, test := range map[string]struct {
		shown [][]byte
		ok    bool
	}{
		"none":                {nil, true},
		"a leaf":              {[][]byte{leaf}, true},
		"a chain":             {[][]byte{leaf, issuer}, true},
		"ten":                 {many(10), true},
		"eleven":              {many(11), false},
		"60 KiB":              {[][]byte{leaf, large(60 << 10)}, true},
		"64 KiB and the leaf": {[][]byte{leaf, large(64 << 10)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var seen [][]byte
			asked := false
			b.authenticate(func(_ context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
				asked = true
				for _, c := range credential.PeerChain {
					seen = append(seen, c.Raw)
				}
				return principal(cart), true, nil
			})
			_, err := renew(t, b.as(&tls.Certificate{Certificate: test.shown, PrivateKey: certificate.PrivateKey}), newKey(t))
			if !test.ok {
				wantCode(t, err, codes.Unavailable) // the connection is refused
				if asked {
					t.Error("the authenticator was asked")
				}
				return
			}
			must(t, err)
			if !bytes.Equal(bytes.Join(seen, nil), bytes.Join(test.shown, nil)) || len(seen) != len(test.shown) {
				t.Errorf("the authenticator saw %d certificates, want %d", len(seen), len(test.shown))
			}
		})
	}
}

func leafSerial(t *testing.T, der []byte) *big.Int {
	t.Helper()
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return leaf.SerialNumber
}

func extension(octets int) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 55555, 1}, Value: make([]byte, octets)}
}

// TestNothingIsResumed: a session would bring back a certificate that was looked at long ago.
func TestNothingIsResumed(t *testing.T) {
	b := newBed(t)
	b.acceptCertificates(nil)
	_, certificate := b.join()
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			sessions := &sessions{ClientSessionCache: tls.NewLRUClientSessionCache(10)}
			config := b.tls()
			config.MinVersion, config.MaxVersion, config.ClientSessionCache = version, version, sessions
			config.Certificates = []tls.Certificate{*certificate}
			for range 3 {
				conn, err := (&tls.Dialer{Config: config}).DialContext(within(t), "tcp", b.address)
				must(t, err)
				state := conn.(*tls.Conn).ConnectionState()
				must(t, conn.SetDeadline(time.Now().Add(waitAtMost)))
				_, err = conn.Read(make([]byte, 9)) // the server's first frame, before which tickets come
				must(t, err)
				must(t, conn.Close())
				if state.DidResume {
					t.Error("the session was resumed")
				}
			}
			if sessions.put != 0 {
				t.Errorf("the server handed out %d sessions", sessions.put)
			}
		})
	}
}

// sessions counts what it is given.
type sessions struct {
	tls.ClientSessionCache
	put int
}

func (s *sessions) Put(key string, state *tls.ClientSessionState) {
	if state != nil {
		s.put++
	}
	s.ClientSessionCache.Put(key, state)
}
