package client

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

func TestParseFingerprint(t *testing.T) {
	want := sha256.Sum256([]byte("x"))
	plain := fmt.Sprintf("%x", want)
	var pairs []string
	for i := 0; i < len(plain); i += 2 {
		pairs = append(pairs, plain[i:i+2])
	}
	for name, test := range map[string]struct {
		text string
		ok   bool
	}{
		"as init prints it":   {plain, true},
		"in capitals":         {strings.ToUpper(plain), true},
		"as openssl prints":   {strings.ToUpper(strings.Join(pairs, ":")), true},
		"with the hash named": {"sha256:" + plain, true},
		"with a line end":     {plain + "\n", true},
		"empty":               {"", false},
		"a digit short":       {plain[1:], false},
		"an octet short":      {plain[2:], false},
		"an octet more":       {plain + "00", false},
		"SHA-1":               {plain[:40], false},
		"no hexadecimal":      {"x" + plain[1:], false},
		"another hash":        {"sha1:" + plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFingerprint(test.text)
			if (err == nil) != test.ok || test.ok && got != want {
				t.Errorf("got %x, %v", got, err)
			}
		})
	}
}

// TestFetchRoot: a person's fingerprint is all that is believed. The server is nobody's; it writes down that it is sent no credential.
func TestFetchRoot(t *testing.T) {
	p, root := newPeer(t)
	other := newRoot(t, "other")
	p.listen(serverCertificate(t, newRoot(t, "a root that nobody knows")))
	p.bundle = bundleOf(other, root)

	got, err := FetchRoot(within(t), p.address, fingerprintOf(root))
	must(t, err)
	if !got.Equal(root.certificate) {
		t.Errorf("got %s", got.Subject)
	}

	wrong := fingerprintOf(newRoot(t, "root"))
	if got, err := FetchRoot(within(t), p.address, wrong); !errors.Is(err, ErrFingerprint) || got != nil || !strings.Contains(err.Error(), fmt.Sprintf("%x", wrong)) {
		t.Errorf("with a wrong fingerprint got %v, %v", got, err)
	}
	// the server's own certificate is no anchor, whatever its fingerprint
	if _, err := FetchRoot(within(t), p.address, [sha256.Size]byte{}); !errors.Is(err, ErrFingerprint) {
		t.Errorf("with no fingerprint got %v", err)
	}

	calls := p.seen()
	if len(calls) != 3 {
		t.Errorf("%d calls were made, want one for each", len(calls))
	}
	for _, c := range calls {
		if c.method != "GetTrustBundle" {
			t.Errorf("%s was called", c.method)
		}
		for name := range c.metadata {
			switch name {
			case ":authority", "content-type", "user-agent", "grpc-accept-encoding":
			default:
				t.Errorf("the header %s was sent: %q", name, c.metadata.Get(name))
			}
		}
		if c.deadline <= 0 || c.deadline > callTimeout {
			t.Errorf("sent a deadline of %s", c.deadline)
		}
	}
}

// TestFetchRootFromNonsense: answers that hold no anchor.
func TestFetchRootFromNonsense(t *testing.T) {
	p, root := newPeer(t)
	p.listen(serverCertificate(t, root))
	leaf := root.sign(t, &x509.Certificate{URIs: uris(t, cart)}, newKey(t).Public())
	for name, bundle := range map[string]*chanceryv1.TrustBundle{
		"no bundle":                nil,
		"an empty one":             {},
		"octets":                   {Anchors: [][]byte{[]byte("no certificate")}},
		"an anchor and more":       {Anchors: [][]byte{append(append([]byte{}, root.certificate.Raw...), 0)}},
		"a workload's certificate": {Anchors: [][]byte{leaf.Raw}},
	} {
		t.Run(name, func(t *testing.T) {
			p.bundle = bundle
			fingerprint := fingerprintOf(root)
			if name == "a workload's certificate" {
				fingerprint = sha256.Sum256(leaf.Raw)
			}
			if got, err := FetchRoot(within(t), p.address, fingerprint); !errors.Is(err, ErrAnswer) || got != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	if _, err := FetchRoot(within(t), "no address", fingerprintOf(root)); err == nil {
		t.Error("it was taken")
	}
}

// TestBootstrap is what the command line does: the anchor by its fingerprint, then the credential under that anchor alone. A server that shows the right
// anchor and cannot prove it gets no credential.
func TestBootstrap(t *testing.T) {
	for name, honest := range map[string]bool{"the authority": true, "one that shows the authority's root": false} {
		t.Run(name, func(t *testing.T) {
			p, root := newPeer(t)
			signer := root
			if !honest {
				signer = newRoot(t, "root")
			}
			p.listen(serverCertificate(t, signer))
			anchor, err := FetchRoot(within(t), p.address, fingerprintOf(root))
			must(t, err)
			c, err := Dial(Config{Address: p.address, Roots: []*x509.Certificate{anchor}})
			must(t, err)
			defer c.Close()
			_, err = c.Issue(within(t), Request{Key: newKey(t), Token: "the-token"})
			if honest {
				must(t, err)
				return
			}
			if !errors.Is(err, ErrServer) {
				t.Errorf("got %v", err)
			}
			for _, c := range p.seen() {
				if len(c.metadata.Get("authorization")) != 0 || c.method != "GetTrustBundle" {
					t.Errorf("%s was called, with %v", c.method, c.metadata)
				}
			}
		})
	}
}
