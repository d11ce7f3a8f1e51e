package cfssl

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/signer"
)

const fuzzSecret = "7d3c5a0be1f2849066d1c8a94e5b77f03a2c916de48b05f7c3190b8e6fd2a745"

// FuzzAnswer: no answer is read as a certificate and as a refusal, a refusal for good comes with status 400 and a code alone, and errors are short and
// never show the key.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"", "null", "[]", "{}", `{"success":true,"result":{"certificate":"x"},"errors":[],"messages":[]}`,
		`{"success":true,"result":{"certificate":"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"}}`,
		`{"success":false,"result":null,"errors":[{"code":9003,"message":"x509: malformed"}],"messages":[]}`,
		`{"success":true,"result":{"certificate":"x"},"errors":[{"code":5500,"message":"` + fuzzSecret + `"}]}`,
		`{"success":false,"errors":[{"code":1e99}]}`, `{"errors":[{"code":9003.0,"message":"\ud800"}]}`, strings.Repeat("[", 10001),
	} {
		f.Add(http.StatusOK, []byte(text))
		f.Add(http.StatusBadRequest, []byte(text))
		f.Add(http.StatusInternalServerError, []byte(text))
	}
	key, err := parseKey(fuzzSecret, "the fuzzer's")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, text []byte) {
		result, err := readAnswer(status, bytes.NewReader(text), key)
		if (result == nil) == (err == nil) {
			t.Fatalf("both or none: %v, %v", result, err)
		}
		if err == nil {
			if status != http.StatusOK || result.Certificate == "" {
				t.Errorf("status %d with %q is taken for a certificate", status, result.Certificate)
			}
			if leaf, err := result.leaf(); (leaf == nil) == (err == nil) {
				t.Errorf("both or none: %v, %v", leaf, err)
			}
			return
		}
		if errors.Is(err, signer.ErrPermanent) && status != http.StatusBadRequest {
			t.Errorf("status %d refuses for good", status)
		}
		if shown := err.Error(); len(shown) > 1500 || strings.Contains(strings.ToLower(shown), fuzzSecret) {
			t.Errorf("the error has %d bytes: %s", len(shown), shown)
		}
	})
}
