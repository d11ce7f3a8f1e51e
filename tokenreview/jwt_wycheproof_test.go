package tokenreview

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// wycheproofWrong are the vectors that are valid and refused here, with the reason.
var wycheproofWrong = map[string]string{
	"json_web_signature 347": "the vector's key says alg ES521, which is no algorithm",
	"json_web_signature 351": "the vector's key says alg ES521, which is no algorithm",
}

// TestWycheproof runs the vectors through the reader of keys and the check of signatures. Their payloads are no claims, so that the rest of a token's
// rules is left out but for its header's. Valid ones of other algorithms than ours have to be refused.
func TestWycheproof(t *testing.T) {
	for file, least := range map[string]int{"json_web_signature": 330, "json_web_key": 26} {
		text, err := os.ReadFile("testdata/wycheproof/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var vectors struct {
			TestGroups []struct {
				Public, Private json.RawMessage
				Tests           []struct {
					TcID            int
					Comment, Result string
					JWS             json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(text, &vectors); err != nil {
			t.Fatal(err)
		}
		ran, taken := 0, 0
		for _, group := range vectors.TestGroups {
			set := group.Public
			if set == nil {
				set = group.Private // of a shared key there is no other half
			}
			if file == "json_web_signature" {
				set = fmt.Appendf(nil, `{"keys":[%s]}`, set)
			}
			for _, test := range group.Tests {
				ran++
				name := fmt.Sprintf("%s %d", file, test.TcID)
				var token string
				if json.Unmarshal(test.JWS, &token) != nil {
					token = string(test.JWS) // in JSON serialisation
				}
				ours := slices.Contains(verifiable, algorithmOf(token))
				want := test.Result == "valid" && ours && wycheproofWrong[name] == ""
				got := wycheproofVerdict(set, token)
				if got != want {
					t.Errorf("%s, %s, is %s, alg %q: accepted %v", name, test.Comment, test.Result, algorithmOf(token), got)
				}
				if got {
					taken++
				}
			}
		}
		t.Logf("%s: %d vectors, %d accepted", file, ran, taken)
		if ran < least || taken == 0 {
			t.Errorf("%s: %d vectors, %d accepted, want at least %d", file, ran, taken, least)
		}
	}
}

func algorithmOf(token string) string {
	head, _, _ := strings.Cut(token, ".")
	text, _ := decodeSegment(head)
	header, err := parseObject(text)
	if err != nil {
		return ""
	}
	algorithm, _ := header.text("alg")
	return algorithm
}

func wycheproofVerdict(set []byte, token string) bool {
	keys, err := parseKeySet(set)
	if err != nil || strings.Count(token, ".") != 2 {
		return false
	}
	head, rest, _ := strings.Cut(token, ".")
	text, _ := decodeSegment(head)
	header, err := parseObject(text)
	if err != nil {
		return false
	}
	if body, _, _ := strings.Cut(rest, "."); body != "" {
		if _, ok := decodeSegment(body); !ok {
			return false
		}
	}
	for _, name := range foreign {
		if header[name] != nil {
			return false
		}
	}
	id, _ := header.text("kid")
	algorithm, _ := header.text("alg")
	return signedBy(token, algorithm, keys.find(id, algorithm))
}
