//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/test/kubetest"
)

// attempt is what a refused caller sends. Without a csr it is a good one.
type attempt struct {
	credential metadata.MD
	csr        []byte
	message    []byte // instead of a request that is encoded as it should be
}

func (a attempt) make(t *testing.T, connection *grpc.ClientConn) error {
	t.Helper()
	if a.message != nil {
		ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), a.credential), callTimeout)
		defer cancel()
		return connection.Invoke(ctx, chanceryv1.CertificateAuthority_IssueCertificate_FullMethodName, a.message, new([]byte), grpc.ForceCodec(raw{}))
	}
	if a.csr == nil {
		a.csr = newCSR(t, nil)
	}
	_, err := issue(t, connection, a.credential, &chanceryv1.IssueCertificateRequest{Csr: a.csr})
	return err
}

// raw sends and receives messages as they are.
type raw struct{}

func (raw) Name() string                        { return "proto" }
func (raw) Marshal(message any) ([]byte, error) { return message.([]byte), nil }
func (raw) Unmarshal(data []byte, into any) error {
	*into.(*[]byte) = data
	return nil
}

// TestRefusals shows the server what it must refuse, and reads what it says. Each refusal has its code and its sentence; cases that share a
// sentence say so.
func TestRefusals(t *testing.T) {
	s := startServer(t, kubernetesSettings(reviewerAccess(t)))
	connection := s.dial(t, s.grpc)
	good := newWorkload(t)
	if err := present(t, connection, good.token(t, audience)); err != nil {
		t.Fatalf("the good caller is refused: %v", err)
	}
	token := func(token string) attempt { return attempt{credential: bearer(token)} }
	request := func(t *testing.T, csr []byte) attempt {
		return attempt{credential: bearer(good.token(t, audience)), csr: csr}
	}

	sentences := make(map[string]string) // by the case that it was first met in
	for _, test := range []struct {
		name     string
		attempt  func(*testing.T) attempt
		code     codes.Code
		sentence string // a part of it
		like     string // an earlier case with the same sentence
	}{
		// who calls
		{"no token", func(*testing.T) attempt { return attempt{} },
			codes.Unauthenticated, "no credential: send authorization: Bearer", ""},
		{"two tokens", func(t *testing.T) attempt {
			return attempt{credential: metadata.Join(bearer(good.token(t, audience)), bearer(good.token(t, audience)))}
		}, codes.Unauthenticated, "2 authorization headers", ""},
		{"a scheme that is not Bearer", func(t *testing.T) attempt {
			return attempt{credential: metadata.Pairs("authorization", "Basic "+noted(good.token(t, audience)))}
		}, codes.Unauthenticated, "not of the form: Bearer TOKEN", ""},
		{"64 KiB of garbage for a token", func(*testing.T) attempt { return token(garbage(64 << 10)) },
			codes.Unauthenticated, "a token is at most 8 KiB", ""},
		{"10 KiB of garbage for a token", func(*testing.T) attempt { return token(garbage(10 << 10)) },
			codes.Unauthenticated, "of no kind known here", ""},
		{"10 KiB in the form of a token", func(*testing.T) attempt { return token("eyJ" + garbage(9<<10) + "." + garbage(1<<10) + ".x") },
			codes.Unauthenticated, "longer than 8 KiB", ""},
		{"a token for another audience", func(t *testing.T) attempt { return token(good.token(t, "vault")) },
			codes.Unauthenticated, "token is for another audience: request one with audience chancery", ""},
		{"a token for the API server", func(t *testing.T) attempt { return token(good.token(t)) },
			codes.Unauthenticated, "another audience", "a token for another audience"},
		{"an expired token", func(t *testing.T) attempt {
			return token(changed(t, good.token(t, audience), expire))
		}, codes.Unauthenticated, "token expired at ", ""},
		{"a token without an expiry", func(t *testing.T) attempt {
			return token(changed(t, good.token(t, audience), func(c *kubetest.Claims) { c.Expiry = 0 }))
		}, codes.Unauthenticated, "token has no expiry (exp", ""},
		{"a Secret's token", func(t *testing.T) attempt { return token(secretToken(t, good)) },
			codes.Unauthenticated, "token has no audience (aud)", ""},
		{"a token from the future", func(t *testing.T) attempt {
			return token(changed(t, good.token(t, audience), func(c *kubetest.Claims) { c.NotBefore = time.Now().Add(10 * time.Minute).Unix() }))
		}, codes.Unauthenticated, "token starts (nbf) at ", ""},
		{"an unbound token", func(t *testing.T) attempt { return token(unboundToken(t, good)) },
			codes.Unauthenticated, "not bound to a pod, so it would outlive its workload", ""},
		{"a token that is bound to a node", func(t *testing.T) attempt { return token(nodeToken(t, good)) },
			codes.Unauthenticated, "bound to a node and not to a pod", ""},
		{"a forged token", func(t *testing.T) attempt { return token(forged(t, good, audience)) },
			codes.Unauthenticated, "the cluster does not accept the token: it is forged, expired or revoked, or its pod is gone", ""},
		{"a token that nobody has seen, of a pod that is gone", func(t *testing.T) attempt { return token(orphaned(t, connection)) },
			codes.Unauthenticated, "its pod is gone", "a forged token"},
		{"a token of an account that has come again", func(t *testing.T) attempt { return token(recreated(t, connection)) },
			codes.Unauthenticated, "its pod is gone", "a forged token"},
		{"an unknown cluster", func(t *testing.T) attempt {
			return attempt{credential: metadata.Join(bearer(good.token(t, audience)), metadata.Pairs("clusterid", "elsewhere"))}
		}, codes.Unauthenticated, `cluster "elsewhere" is not known here`, ""},

		// for what
		{"64 KiB of garbage for a CSR", func(t *testing.T) attempt { return request(t, []byte(garbage(64<<10-64))) },
			codes.InvalidArgument, "octets, and at most ", ""},
		{"a message of more than 64 KiB", func(t *testing.T) attempt { return request(t, []byte(garbage(65<<10))) },
			codes.InvalidArgument, "the request is longer than 65536 bytes", ""},
		{"a message that is none", func(t *testing.T) attempt {
			return attempt{credential: bearer(good.token(t, audience)), message: []byte("\x0a\xff\xff")}
		}, codes.InvalidArgument, "decode", ""},
		{"a little garbage for a CSR", func(t *testing.T) attempt { return request(t, []byte(garbage(200))) },
			codes.InvalidArgument, "neither DER nor exactly one PEM block", ""},
		{"no CSR", func(t *testing.T) attempt { return request(t, []byte{}) },
			codes.InvalidArgument, "certificate request: it is empty", ""},
		{"1 MiB of names", func(t *testing.T) attempt { return request(t, newCSR(t, manyNames(1<<20))) },
			codes.InvalidArgument, "the request is longer than", "a message of more than 64 KiB"},
		{"20 KiB of names", func(t *testing.T) attempt { return request(t, newCSR(t, manyNames(20<<10))) },
			codes.InvalidArgument, "at most 16384", ""},
		{"101 names", func(t *testing.T) attempt { return request(t, newCSR(t, manyNames(101*nameLength))) },
			codes.InvalidArgument, "more than 100 names", ""},
		{"a DNS name for a workload", func(t *testing.T) attempt { return request(t, newCSR(t, manyNames(nameLength))) },
			codes.InvalidArgument, "exactly one SPIFFE ID", ""},
		{"a CSR whose signature is bad", func(t *testing.T) attempt {
			csr := newCSR(t, nil)
			csr[len(csr)-1] ^= 1
			return request(t, csr)
		}, codes.InvalidArgument, "the signature does not verify", ""},
		{"RSA with 1024 bits", func(t *testing.T) attempt { return request(t, signCSR(t, newRSAKey(t, 1024), nil)) },
			codes.InvalidArgument, "is not allowed by the key policy", ""},
		{"a CA certificate", func(t *testing.T) attempt { return request(t, newCSR(t, asksForCA())) },
			codes.InvalidArgument, "asks for a CA certificate", ""},
		{"another service account's name", func(t *testing.T) attempt {
			return request(t, newCSR(t, naming(t, strings.Replace(good.id(), "/cart", "/payments", 1))))
		}, codes.PermissionDenied, "/sa/payments under profile workload", ""},
		{"a name in another trust domain", func(t *testing.T) attempt {
			return request(t, newCSR(t, naming(t, strings.Replace(good.id(), trustDomain, "elsewhere.example", 1))))
		}, codes.PermissionDenied, "may not hold URI:spiffe://elsewhere.example/", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent := test.attempt(t)
			err := sent.make(t, connection)
			sentence := status.Convert(err).Message()
			if got := status.Code(err); got != test.code || !strings.Contains(sentence, test.sentence) {
				t.Errorf("%s: %s; want %s with %q", got, sentence, test.code, test.sentence)
			}
			if delay := retryDelay(err); delay != 0 {
				t.Errorf("what will be refused again may be tried after %s", delay)
			}
			if reveals(sentence, sent) {
				t.Errorf("the sentence holds the token: %s", sentence)
			}
			for other, said := range sentences {
				if said == sentence && other != test.like {
					t.Errorf("the sentence is also that of %q: %s", other, sentence)
				}
			}
			if test.like == "" {
				sentences[test.name] = sentence
			} else if sentences[test.like] != sentence {
				t.Errorf("the sentence is %q, that of %q is %q", sentence, test.like, sentences[test.like])
			}
		})
	}
}

// TestDeletedPod deletes the pod of a token that was accepted a moment before. The API server and Chancery remember it for 10 s each.
func TestDeletedPod(t *testing.T) {
	t.Parallel() // it waits for most of the time
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t))), newWorkload(t)
	connection, token := s.dial(t, s.grpc), w.token(t, audience)
	if err := present(t, connection, token); err != nil {
		t.Fatal(err)
	}
	kube(t).DeletePod(t, w.pod)
	deleted := time.Now()
	var err error
	if !eventually(t, 25*time.Second, func() bool {
		err = present(t, connection, token)
		return err != nil
	}) {
		t.Fatalf("it is still accepted %s after the pod was deleted", time.Since(deleted))
	}
	t.Logf("refused %s after the pod was deleted", time.Since(deleted).Round(100*time.Millisecond))
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "its pod is gone") {
		t.Error(err)
	}
}

// reveals tells whether a sentence holds a token that was sent, or 16 characters in a row of it.
func reveals(sentence string, sent attempt) bool {
	if leaked(sentence) {
		return true
	}
	for _, value := range sent.credential.Get("authorization") {
		_, token, _ := strings.Cut(value, " ")
		for i := 0; i+16 <= min(len(token), 16<<10); i += 4 {
			if strings.Contains(sentence, token[i:i+16]) {
				return true
			}
		}
	}
	return false
}

// garbage is random text in the alphabet of tokens.
func garbage(length int) string {
	random := make([]byte, length)
	_, _ = rand.Read(random) // it never fails
	return base64.RawURLEncoding.EncodeToString(random)[:length]
}
