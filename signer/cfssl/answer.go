package cfssl

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
)

// maxAnswer bounds what is read of an answer. A certificate with a hundred names has a tenth of it.
const maxAnswer = 128 << 10

// answer is what every endpoint answers.
type answer struct {
	Success bool      `json:"success"`
	Result  *result   `json:"result"`
	Errors  []problem `json:"errors"`
}

// result holds what authsign and info have in common. The rest is not needed.
type result struct {
	Certificate string `json:"certificate"`
}

// problem is an error of the server's, by its code (category in thousands, reason below) and a sentence.
type problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The codes of problems that lie in the order itself, whatever the operator changes about the key, the server or its profile's usages.
const (
	codesOfCSR    = 9 // in thousands: the request does not parse, or its signature does not fit
	codeWhitelist = 5500
)

func (p problem) permanent() bool { return p.Code/1000 == codesOfCSR || p.Code == codeWhitelist }

// hints say what an operator does about problems that he alone can mend.
func (p problem) hint() string {
	switch {
	case p.Code == http.StatusBadRequest && p.Message == "invalid token":
		return "; the server has another authentication key for this profile"
	case p.Code == http.StatusBadRequest && p.Message == "no authentication provider":
		return "; the server's profile, or its default if it does not know the profile, needs an \"auth_key\""
	case p.Code == 1400:
		return "; the server's profile wants our serial numbers (serials: reserved)"
	case p.Code/1000 == 5:
		return "; the server's policy does not fit"
	}
	return ""
}

// readAnswer reads the body of an answer with a status. Errors hold a part of the server's sentence at most, and that is not for requesters.
func readAnswer(status int, body io.Reader, key Key) (*result, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		// json's errors quote a character at most; still, what a proxy wrote helps nobody
		return nil, fmt.Errorf("it answered with status %d and no JSON of CFSSL's form", status)
	}
	switch {
	case len(a.Errors) > 0 || !a.Success:
		return nil, refusal(status, a.Errors, key)
	case status != http.StatusOK:
		return nil, fmt.Errorf("it answered with status %d", status)
	case a.Result == nil || a.Result.Certificate == "":
		return nil, errors.New("its answer holds no certificate")
	}
	return a.Result, nil
}

// refusal classifies an error of the server's. Only CFSSL itself refuses for good, and it says so with status 400; what else answers, a proxy or a server
// about to stop, does not know the order.
func refusal(status int, problems []problem, key Key) error {
	if len(problems) == 0 {
		return fmt.Errorf("it answered with status %d and without success", status)
	}
	first := problems[0]
	sentence := quoted(first.Message)
	if key.in(first.Message) {
		sentence = "(withheld: it shows the key)"
	}
	err := fmt.Errorf("it refused with status %d, code %d: %s%s", status, first.Code, sentence, first.hint())
	if status == http.StatusBadRequest && first.permanent() {
		return fmt.Errorf("%w: %w", signer.ErrPermanent, err)
	}
	return err
}

// maxSentence is how much of a server's sentence an error shows.
const maxSentence = 160

func quoted(text string) string {
	if len(text) > maxSentence {
		text = strings.ToValidUTF8(text[:maxSentence], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// leaf returns the certificate of an answer to authsign: exactly one, of strict encoding.
func (r *result) leaf() (*x509.Certificate, error) {
	certificates, err := r.certificates()
	if err != nil {
		return nil, err
	}
	if len(certificates) != 1 {
		return nil, fmt.Errorf("it answered with %d certificates; one is expected", len(certificates))
	}
	return certificates[0], nil
}

func (r *result) certificates() ([]*x509.Certificate, error) {
	certificates, err := chain.ParsePEM(bytes.TrimSpace([]byte(r.Certificate)))
	if err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	return certificates, nil
}
