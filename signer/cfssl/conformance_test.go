package cfssl_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/cfssl/cfssltest"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// TestConformance runs the contract over TLS with the issuers configured and with the issuer asked for, and over a unix socket.
func TestConformance(t *testing.T) {
	for name, variant := range map[string]struct {
		server func(testing.TB) func(*cfssltest.Config)
		change func(testing.TB, *bed)
	}{
		"issuers configured": {nil, func(testing.TB, *bed) {}},
		"issuer asked for":   {nil, func(t testing.TB, b *bed) { b.asksForIssuer(t) }},
		"unix socket": {func(t testing.TB) func(*cfssltest.Config) {
			return func(c *cfssltest.Config) { c.Socket = filepath.Join(t.TempDir(), "s") }
		}, func(testing.TB, *bed) {}},
		"serial numbers by the server": {func(testing.TB) func(*cfssltest.Config) {
			return func(c *cfssltest.Config) {
				for name, p := range c.Profiles {
					p.ClientSerials = false
					c.Profiles[name] = p
				}
			}
		}, func(_ testing.TB, b *bed) { b.config.Choices.Serial = true }},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(t testing.TB, change func(*bed)) signer.Signer {
				var of func(*cfssltest.Config)
				if variant.server != nil {
					of = variant.server(t)
				}
				b := newBed(t, func(c *cfssltest.Config) {
					if of != nil {
						of(c)
					}
				})
				variant.change(t, b)
				change(b)
				return b.open(t)
			}
			octets, err := hex.DecodeString(secret)
			must(t, err)
			signertest.Run(t, signertest.Backend{
				New: func(t testing.TB) signer.Signer { return open(t, func(*bed) {}) },
				Refusing: func(t testing.TB) signer.Signer {
					return open(t, func(b *bed) {
						b.server.Answer(func(cfssltest.Order) ([]byte, *cfssltest.Refusal) {
							return nil, &cfssltest.Refusal{Status: http.StatusBadRequest, Code: 5500, Message: "Request does not match policy whitelist"}
						})
					})
				},
				Failing: func(t testing.TB) signer.Signer { return open(t, func(b *bed) { b.server.Stop() }) },
				Hanging: func(t testing.TB) signer.Signer { return open(t, func(b *bed) { b.server.Fault(hang(t)) }) },
				Now:     func() time.Time { return now },
				Secrets: []string{secret, base64.StdEncoding.EncodeToString(octets)},
			})
		})
	}
}

// hang takes requests and does not answer until the test ends.
func hang(t testing.TB) http.HandlerFunc {
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}
}
