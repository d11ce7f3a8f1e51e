//go:build e2e

package interop

import (
	"crypto/x509"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

var judges = []judge{
	{
		name:    "openssl",
		version: func(t *testing.T) string { return firstLine(t, "openssl", "version") },
		ask:     eachBy(askOpenSSL),
	},
	{
		name:    "gnutls",
		version: func(t *testing.T) string { return firstLine(t, "certtool", "--version") },
		can:     isNow, // certtool takes no time
		ask:     eachBy(askGnuTLS),
	},
	{
		name: "nss",
		version: func(t *testing.T) string {
			return "libnss3-tools " + firstLine(t, "dpkg-query", "-W", "-f", "${Version}", "libnss3-tools")
		},
		can: func(q question) bool { return q.why != notNamed }, // certutil knows no hosts
		ask: askNSS,
		limits: []limit{
			{isEd25519, "SEC_ERROR_ADDING_CERT", "the NSS of Debian 12 takes no certificate with an Ed25519 key into its database"},
		},
	},
	{
		name: "cryptography",
		version: func(t *testing.T) string {
			return "cryptography " + firstLine(t, python(t), "-c", "import cryptography; print(cryptography.__version__)")
		},
		can: func(q question) bool { return q.purpose == "client" || q.host != "" }, // it judges servers by their name
		ask: askPython,
	},
	{
		name:    "java",
		version: func(t *testing.T) string { return firstLine(t, "java", "--version") },
		ask:     askJava,
	},
	{
		name:    "crypto-x509",
		version: func(*testing.T) string { return runtime.Version() },
		ask:     eachBy(askGo),
	},
}

func firstLine(t *testing.T, name string, args ...string) string {
	t.Helper()
	line, _, _ := strings.Cut(mustRun(t, exec.CommandContext(t.Context(), name, args...)), "\n")
	return line
}

func eachBy(ask func(t *testing.T, q question) string) func(*testing.T, []question) []string {
	return func(t *testing.T, questions []question) []string {
		t.Helper()
		answers := make([]string, len(questions))
		for i, q := range questions {
			answers[i] = ask(t, q)
		}
		return answers
	}
}

// verdictOf runs a program whose exit status is its verdict.
func verdictOf(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err == nil {
		return ""
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		return text
	}
	return err.Error()
}

func askOpenSSL(t *testing.T, q question) string {
	t.Helper()
	args := []string{"verify", "-x509_strict", "-purpose", "ssl" + q.purpose, "-attime", strconv.FormatInt(q.at.Unix(), 10), "-no-CApath", "-no-CAstore",
		"-CAfile", q.root, "-untrusted", q.about.file("intermediates.pem")}
	switch {
	case isAddress(q.host):
		args = append(args, "-verify_ip", q.host)
	case q.host != "":
		args = append(args, "-verify_hostname", q.host)
	}
	return verdictOf(t, "openssl", append(args, q.about.file("leaf.pem"))...)
}

// The object identifiers of extended key usages, as GnuTLS takes them.
var purposes = map[string]string{"server": "1.3.6.1.5.5.7.3.1", "client": "1.3.6.1.5.5.7.3.2"}

func askGnuTLS(t *testing.T, q question) string {
	t.Helper()
	args := []string{"--verify", "--verify-profile", "medium", "--load-ca-certificate", q.root, "--verify-purpose", purposes[q.purpose], "--infile",
		q.about.file("chain.pem")}
	if q.host != "" {
		args = append(args, "--verify-hostname", q.host)
	}
	return verdictOf(t, "certtool", args...)
}

// nssDatabase is a database of NSS that trusts one root.
type nssDatabase struct {
	path  string
	added map[*issued]string // what it said to a certificate: empty if it took it
}

func newNSSDatabase(t *testing.T, root string) *nssDatabase {
	t.Helper()
	d := &nssDatabase{"sql:" + t.TempDir(), make(map[*issued]string)}
	for _, args := range [][]string{{"-N", "--empty-password"}, {"-A", "-n", "root", "-t", "CT,C,C", "-i", root}} {
		mustRun(t, exec.CommandContext(t.Context(), "certutil", append(args, "-d", d.path)...))
	}
	return d
}

// add adds a certificate and its issuer, once.
func (d *nssDatabase) add(t *testing.T, c *issued) string {
	t.Helper()
	answer, known := d.added[c]
	if known {
		return answer
	}
	for _, args := range [][]string{{"-n", "issuer of " + c.name, "-i", c.file("intermediates.pem")}, {"-n", c.name, "-i", c.file("leaf.pem")}} {
		if answer == "" {
			answer = verdictOf(t, "certutil", append(args, "-A", "-t", ",,", "-d", d.path)...)
		}
	}
	d.added[c] = answer
	return answer
}

// askNSS asks certutil, in a database for each root.
func askNSS(t *testing.T, questions []question) []string {
	t.Helper()
	databases := make(map[string]*nssDatabase)
	answers := make([]string, len(questions))
	for i, q := range questions {
		if databases[q.root] == nil {
			databases[q.root] = newNSSDatabase(t, q.root)
		}
		d := databases[q.root]
		if answers[i] = d.add(t, q.about); answers[i] == "" {
			usage := map[string]string{"server": "V", "client": "C"}[q.purpose]
			answers[i] = verdictOf(t, "certutil", "-V", "-e", "-u", usage, "-n", q.about.name, "-b", q.at.UTC().Format("060102150405Z"), "-d", d.path)
		}
	}
	return answers
}

func askPython(t *testing.T, questions []question) []string {
	t.Helper()
	type asked struct {
		Chain   string `json:"chain"`
		Root    string `json:"root"`
		At      int64  `json:"at"`
		Purpose string `json:"purpose"`
		Host    string `json:"host"`
	}
	list := make([]asked, len(questions))
	for i, q := range questions {
		list[i] = asked{q.about.file("chain.pem"), q.root, q.at.Unix(), q.purpose, q.host}
	}
	var answers []string
	runPython(t, "cryptography", list, &answers)
	return answers
}

func runPython(t *testing.T, judge string, questions, answers any) {
	t.Helper()
	text, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python(t), filepath.Join("judges", "judge.py"), judge)
	cmd.Stdin = strings.NewReader(string(text))
	if err := json.Unmarshal([]byte(mustRun(t, cmd)), answers); err != nil {
		t.Fatal(err)
	}
}

func askJava(t *testing.T, questions []question) []string {
	t.Helper()
	var text strings.Builder
	for _, q := range questions {
		host := q.host
		if host == "" {
			host = "-"
		}
		text.WriteString(strings.Join([]string{q.about.file("chain.pem"), q.root, strconv.FormatInt(q.at.Unix(), 10), q.purpose, host}, "\t") + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-exports", "java.base/sun.security.util=ALL-UNNAMED", filepath.Join("judges", "Judge.java"))
	cmd.Stdin = strings.NewReader(text.String())
	answers := strings.Split(strings.TrimSuffix(mustRun(t, cmd), "\n"), "\n")
	for i, answer := range answers {
		if answer == "ok" {
			answers[i] = ""
		}
	}
	return answers
}

func askGo(t *testing.T, q question) string {
	t.Helper()
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: q.at, DNSName: q.host,
		KeyUsages: []x509.ExtKeyUsage{map[string]x509.ExtKeyUsage{"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth}[q.purpose]},
	}
	for _, certificate := range readCertificates(t, q.root) {
		options.Roots.AddCert(certificate)
	}
	for _, certificate := range q.about.chain[1:] {
		options.Intermediates.AddCert(certificate)
	}
	if isAddress(q.host) {
		options.DNSName = "[" + q.host + "]"
	}
	if _, err := q.about.chain[0].Verify(options); err != nil {
		return err.Error()
	}
	return ""
}
