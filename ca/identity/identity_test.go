package identity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/identity"
)

const hidden = "hunter2"

// TestSecretInEveryVerb formats a secret, alone and inside other values, by each verb that fmt knows, and by those that it does not. Two are left out,
// for which fmt asks no method: %p is for pointers and %w for Errorf with an error, and go vet refuses both.
func TestSecretInEveryVerb(t *testing.T) {
	secret := identity.Secret(hidden)
	credential := identity.Credential{Bearer: secret}
	values := map[string]any{
		"alone": secret, "pointed to": &secret, "in a struct": credential, "in a pointer to one": &credential, "in a list": []identity.Secret{secret},
		"in a map": map[string]identity.Secret{"a": secret}, "as a key": map[identity.Secret]int{secret: 1}, "in an interface": []any{secret},
	}
	spellings := []string{hidden, fmt.Sprintf("%x", hidden), fmt.Sprintf("%X", hidden), fmt.Sprintf("% x", hidden), fmt.Sprint([]byte(hidden))}
	for name, value := range values {
		for verb := rune('!'); verb <= '~'; verb++ {
			if strings.ContainsRune("%pw*[.+-# 0123456789", verb) {
				continue
			}
			for _, flags := range []string{"", "+", "#", "-", " ", "0", "20", "-20", ".3", "+#"} {
				format := "%" + flags + string(verb)
				got := fmt.Sprintf(format, value)
				for _, spelling := range spellings {
					if strings.Contains(got, spelling) {
						t.Errorf("%s: %q shows %q", name, format, got)
					}
				}
			}
		}
		for _, got := range []string{fmt.Sprint(value), fmt.Sprintln(value), fmt.Errorf("bad: %v", value).Error()} {
			if strings.Contains(got, hidden) {
				t.Errorf("%s shows %q", name, got)
			}
		}
	}
	if got := fmt.Sprintf("%s %v %d", secret, secret, secret); got != "[redacted] [redacted] [redacted]" {
		t.Errorf("it shows %q", got)
	}
	if secret.String() != "[redacted]" || secret.Reveal() != hidden {
		t.Errorf("it is %q and reveals %q", secret.String(), secret.Reveal())
	}
}

func TestSecretInEncodersAndLogs(t *testing.T) {
	secret := identity.Secret(hidden)
	credential := struct {
		Token  identity.Secret
		Nested map[string]identity.Secret
	}{secret, map[string]identity.Secret{"a": secret}}
	var out bytes.Buffer
	text, jsonHandler := slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)
	for _, handler := range []slog.Handler{text, jsonHandler} {
		logger := slog.New(handler).With("bearer", secret)
		logger.Info("seen", "bearer", secret, "credential", credential, "pointer", &secret, "error", fmt.Errorf("bad %v", secret), slog.Group("g", "s", secret))
	}
	encoded, err := json.Marshal([]any{secret, &secret, credential})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	if strings.Contains(out.String(), hidden) {
		t.Errorf("it shows %s", out.String())
	}
	if got, _ := json.Marshal(secret); string(got) != `"[redacted]"` {
		t.Errorf("its JSON is %s", got)
	}
	if err := errors.Join(errors.New(secret.String())); strings.Contains(err.Error(), hidden) {
		t.Errorf("an error shows %v", err)
	}
}

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestNormalize(t *testing.T) {
	for name, test := range map[string]struct{ in, want identity.Names }{
		"nothing": {},
		"in order": {
			identity.Names{URIs: []string{"spiffe://b/x", "spiffe://a/x"}, DNS: []string{"b.org", "a.org"}, IPs: addresses("192.0.2.2", "192.0.2.1")},
			identity.Names{URIs: []string{"spiffe://a/x", "spiffe://b/x"}, DNS: []string{"a.org", "b.org"}, IPs: addresses("192.0.2.1", "192.0.2.2")},
		},
		"without duplicates": {
			identity.Names{URIs: []string{"a:b", "a:b"}, DNS: []string{"a.org", "A.ORG", "a.org"}, IPs: addresses("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1")},
			identity.Names{URIs: []string{"a:b"}, DNS: []string{"a.org"}, IPs: addresses("192.0.2.1")},
		},
		"URIs keep their case": {
			identity.Names{URIs: []string{"spiffe://a/X", "spiffe://a/x"}}, identity.Names{URIs: []string{"spiffe://a/X", "spiffe://a/x"}},
		},
		"only ASCII letters change case": { // U+212A, the Kelvin sign, would become a k
			identity.Names{DNS: []string{"\u212A8S.org", "É.org", "\xff.org"}}, identity.Names{DNS: []string{"\xff.org", "É.org", "\u212A8s.org"}},
		},
		"IPv6 stays": {identity.Names{IPs: addresses("2001:db8::1", "::1")}, identity.Names{IPs: addresses("::1", "2001:db8::1")}},
	} {
		t.Run(name, func(t *testing.T) {
			before := identity.Names{URIs: slices.Clone(test.in.URIs), DNS: slices.Clone(test.in.DNS), IPs: slices.Clone(test.in.IPs)}
			got := test.in.Normalize()
			slices.Sort(test.want.DNS)
			if !got.Equal(test.want) {
				t.Errorf("got %q, want %q", got.List(), test.want.List())
			}
			if !test.in.Equal(before) {
				t.Errorf("the original was changed to %q", test.in.List())
			}
			if again := got.Normalize(); !again.Equal(got) {
				t.Errorf("normalized twice it is %q", again.List())
			}
		})
	}
}

func TestEqualAndEmpty(t *testing.T) {
	full := func() identity.Names {
		return identity.Names{URIs: []string{"a:b"}, DNS: []string{"a.org"}, IPs: addresses("192.0.2.1")}
	}
	for name, change := range map[string]func(*identity.Names){
		"another URI": func(n *identity.Names) { n.URIs[0] = "a:c" }, "no URI": func(n *identity.Names) { n.URIs = nil },
		"another DNS name": func(n *identity.Names) { n.DNS[0] = "b.org" }, "one more": func(n *identity.Names) { n.DNS = append(n.DNS, "b.org") },
		"another address": func(n *identity.Names) { n.IPs[0] = netip.MustParseAddr("::1") }, "nothing": func(n *identity.Names) { *n = identity.Names{} },
	} {
		other := full()
		change(&other)
		if other.Equal(full()) || full().Equal(other) {
			t.Errorf("%s is equal", name)
		}
		if other.Empty() != (name == "nothing") {
			t.Errorf("%s is empty: %t", name, other.Empty())
		}
	}
	if !full().Equal(full()) || !(identity.Names{}).Equal(identity.Names{DNS: []string{}}) {
		t.Error("the same names are not equal")
	}
}

func TestNamesInASentence(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for name, test := range map[string]struct {
		names identity.Names
		want  string
	}{
		"none":            {identity.Names{}, "no name"},
		"of each kind":    {identity.Names{URIs: []string{"a:b"}, DNS: []string{"a.org"}, IPs: addresses("::1")}, "URI:a:b, DNS:a.org, IP:::1"},
		"five":            {identity.Names{DNS: []string{"a", "b", "c", "d", "e"}}, "DNS:a, DNS:b, DNS:c, DNS:d, DNS:e"},
		"six":             {identity.Names{DNS: []string{"a", "b", "c", "d", "e", "f"}}, "DNS:a, DNS:b, DNS:c, DNS:d, DNS:e and 1 more"},
		"long":            {identity.Names{DNS: []string{long}}, "DNS:" + long[:124] + "…"},
		"what is no text": {identity.Names{DNS: []string{"a\n\x1b[31m\xffé\x00"}}, `DNS:a\n\x1b[31m\xff\u00e9\x00`},
	} {
		if got := test.names.String(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
