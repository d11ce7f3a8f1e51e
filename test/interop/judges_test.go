//go:build e2e

package interop

import (
	"crypto/x509"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/signer/local"
)

// question is what a judge is asked about a certificate.
type question struct {
	about   *issued
	purpose string // "server" or "client"
	host    string // that a server is reached by; empty if nothing is asked about it
	root    string // file of what is trusted
	at      time.Time
	good    bool // whether the judge has to accept
	why     string
}

func (q question) String() string {
	text := q.about.name + " as " + q.purpose
	if q.host != "" {
		text += " for " + q.host
	}
	return text + ", " + q.why
}

// judge is a program or a library of others.
type judge struct {
	name string
	// version is for the log of the tests.
	version func(t *testing.T) string
	// can tells whether the judge can be asked this at all.
	can func(q question) bool
	// ask returns an answer to each question: empty if the judge accepts, otherwise its words.
	ask func(t *testing.T, questions []question) []string
	// limits are certificates that the judge refuses though they are good: by what is in the question, words of its answer.
	limits []limit
}

// limit is something that a judge cannot do. When it learns it, the test says so.
type limit struct {
	holds  func(q question) bool
	words  string
	reason string
}

func TestJudges(t *testing.T) {
	python(t) // installs them all
	questions := askable(t)
	for _, j := range judges {
		t.Run(j.name, func(t *testing.T) {
			var asked []question
			for _, q := range questions {
				if j.can == nil || j.can(q) {
					asked = append(asked, q)
				}
			}
			answers := j.ask(t, asked)
			if len(answers) != len(asked) {
				t.Fatalf("%d answers to %d questions", len(answers), len(asked))
			}
			right := 0
			for i, q := range asked {
				if j.judged(t, q, answers[i]) {
					right++
				}
			}
			t.Logf("%s: %d of %d answers as expected; %d questions are not for it", j.version(t), right, len(asked), len(questions)-len(asked))
		})
	}
}

// judged holds an answer against the question.
func (j judge) judged(t *testing.T, q question, answer string) bool {
	t.Helper()
	for _, l := range j.limits {
		if !q.good || !l.holds(q) {
			continue
		}
		switch {
		case answer == "":
			t.Errorf("%s: accepted. It was not, once: %s. Take that out of its limits", q, l.reason)
			return false
		case !strings.Contains(answer, l.words):
			t.Errorf("%s: refused, but not for %q: %s", q, l.words, answer)
			return false
		}
		return true
	}
	switch {
	case q.good && answer != "":
		t.Errorf("%s: refused: %s", q, answer)
	case !q.good && answer == "":
		t.Errorf("%s: accepted", q)
	default:
		return true
	}
	return false
}

// askable issues certificates and returns what there is to ask about them: most have to be accepted, and those that must not be show that the
// judge judges.
func askable(t *testing.T) []question {
	t.Helper()
	b := newBed(t)
	stranger := filepath.Join(t.TempDir(), "stranger.pem")
	writeFile(t, stranger, strangerRoot(t))
	var questions []question
	for _, c := range b.issueAll(t) {
		now := time.Now()
		ask := func(good bool, purpose, host, why string) {
			questions = append(questions, question{c, purpose, host, c.file("root.pem"), now, good, why})
		}
		ask(!c.serving, "client", "", "now")
		if c.serving {
			for _, host := range append(append([]string(nil), dnsNames...), addresses...) {
				ask(true, "server", host, "now")
			}
			ask(false, "server", otherHost, notNamed)
		} else {
			ask(false, "server", "www.interop.test", notNamed)
		}
		ask(true, "server", "", "now")
		good := questions[len(questions)-1]
		for why, change := range map[string]func(*question){
			"with another root trusted": func(q *question) { q.root = stranger },
			"after its end":             func(q *question) { q.at = c.chain[0].NotAfter.Add(time.Minute) },
			"before its start":          func(q *question) { q.at = c.chain[0].NotBefore.Add(-25 * time.Hour) }, // NSS waives a day
		} {
			q := good
			q.good, q.why = false, why
			if c.serving {
				q.host = dnsNames[1]
			}
			change(&q)
			questions = append(questions, q)
		}
		last := good
		last.at, last.why = c.chain[0].NotAfter.Add(-time.Minute), "near its end"
		questions = append(questions, last)
	}
	return questions
}

// strangerRoot returns the root of an authority that has nothing to do with the certificates.
func strangerRoot(t *testing.T) []byte {
	t.Helper()
	hierarchy, err := local.Create(spiffeid.RequireTrustDomainFromString(trustDomain), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pem.Encode("CERTIFICATE", hierarchy.Root.Raw)
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// notNamed is why a judge has to refuse a certificate for a host that is not among its names.
const notNamed = "which it does not name"

// isNow tells whether a question is about the time at which it is asked, for judges that know no other.
func isNow(q question) bool { return time.Since(q.at).Abs() < time.Hour/4 }

func isEd25519(q question) bool { return q.about.chain[0].PublicKeyAlgorithm == x509.Ed25519 }
