package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// TestQueriesUseIndexes: no query reads the whole roll or sorts it.
func TestQueriesUseIndexes(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	issuer := []byte("issuer")
	for _, test := range []struct {
		query ledger.Query
		span  bool
		index string
	}{
		{query: ledger.Query{}, index: "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{State: ledger.Issued}, index: "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{State: ledger.Failed}, index: "certificates_unissued (state=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{State: ledger.Reserved}, index: "certificates_unissued (state=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{Identity: "i"}, index: "certificates_identity (identity=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{Identity: "i", State: ledger.Issued}, index: "certificates_identity (identity=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{Identity: "i", ValidAt: time.Now()}, index: "certificates_identity (identity=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{ValidAt: time.Now()}, span: true, index: "certificates_span (span=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{IssuerKeyID: issuer}, index: "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{IssuerKeyID: issuer, State: ledger.Issued}, index: "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{IssuerKeyID: issuer, Identity: "i"}, index: "certificates_identity (identity=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{IssuerKeyID: issuer, ValidAt: time.Now()}, span: true, index: "certificates_span (span=? AND rowid>? AND rowid<?)"},
		{query: ledger.Query{Revoked: true}, index: "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{Revoked: true, ValidAt: time.Now()}, index: "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{Revoked: true, Identity: "i"}, index: "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{query: ledger.Query{Revoked: true, IssuerKeyID: issuer}, index: "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	} {
		c, err := bounds{Query: test.query, below: 1 << 62}.conditions()
		must(t, err)
		if test.span {
			c = c.and("c.span = ? AND c.span IS NOT NULL AND c.id >= ?", 3, 0)
		}
		text := planOf(t, l, c.query(), append(c.args, 10)...)
		if !strings.Contains(text, test.index) || strings.Contains(text, "SCAN") || strings.Contains(text, "B-TREE") {
			t.Errorf("%+v is planned as\n%s", test.query, text)
		}
	}
}

// TestCertificateIsFoundByIndex: a look-up, of which each renewal has one, reads a handful of rows.
func TestCertificateIsFoundByIndex(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	text := planOf(t, l, byLeafSerial, []byte("x"))
	if !strings.Contains(text, "certificates_serial (serial=?)") || !strings.Contains(text, "leaf_serials USING PRIMARY KEY (leaf=?)") || strings.Contains(text, "SCAN") {
		t.Errorf("it is planned as\n%s", text)
	}
}

func planOf(t *testing.T, l *Ledger, query string, args ...any) string {
	t.Helper()
	rows, err := l.readers.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	must(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		must(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	must(t, rows.Err())
	return strings.Join(plan, "\n")
}

// TestPlaceInTheOrderIsTaken: reservations of one millisecond whose counters have come around still both get a row.
func TestPlaceInTheOrderIsTaken(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	created := time.Now()
	for n := range 3 {
		l.counter.Store(1<<counterBits - 1)
		in := benchIntent(n)
		in.Created = created
		must(t, l.Reserve(t.Context(), in))
		must(t, l.Commit(t.Context(), outcomeOf(in)))
	}
	entries, err := l.Find(t.Context(), ledger.Query{})
	must(t, err)
	if len(entries) != 3 {
		t.Errorf("%d entries, want 3", len(entries))
	}
}

func TestOldTokensAreForgotten(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db"), Now: func() time.Time { return now }})
	add := func(name string) {
		t.Helper()
		must(t, l.AddToken(t.Context(), ledger.JoinToken{Hash: []byte(name), ID: name, Created: now, Expires: now.Add(time.Hour)}))
	}
	count := func() (n int) {
		t.Helper()
		must(t, l.readers.QueryRowContext(t.Context(), "SELECT count(*) FROM join_tokens").Scan(&n))
		return n
	}
	add("old")
	now = now.Add(time.Hour + keepTokens)
	add("on the day")
	if n := count(); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
	now = now.Add(time.Second)
	add("a second later")
	if n := count(); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
}

func TestWhatIsRefused(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	good := benchIntent(1)
	for name, change := range map[string]func(*ledger.Intent){
		"no serial":       func(in *ledger.Intent) { in.Serial = "" },
		"a long serial":   func(in *ledger.Intent) { in.Serial = ledger.Serial(strings.Repeat("x", 21)) },
		"a leading zero":  func(in *ledger.Intent) { in.Serial = "\x00x" },
		"no time":         func(in *ledger.Intent) { in.Created = time.Time{} },
		"a far time":      func(in *ledger.Intent) { in.Created = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		"an endless rule": func(in *ledger.Intent) { in.Rule = strings.Repeat("r", maxIntent) },
	} {
		in := good
		change(&in)
		if err := l.Reserve(t.Context(), in); err == nil {
			t.Errorf("an intent with %s was reserved", name)
		}
	}
	must(t, l.Reserve(t.Context(), good))
	for name, certificate := range map[string][]byte{"none": nil, "a huge one": make([]byte, maxCertificate+1)} {
		out := outcomeOf(good)
		out.Certificate = certificate
		if err := l.Commit(t.Context(), out); err == nil {
			t.Errorf("certificate %s was committed", name)
		}
	}
	// A certificate without a well-defined expiry (RFC 5280 §4.1.2.5) stays valid.
	out := outcomeOf(good)
	out.NotAfter = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	must(t, l.Commit(t.Context(), out))
	entries, err := l.Find(t.Context(), ledger.Query{ValidAt: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestLogIsBounded: the write-ahead log does not grow with the ledger.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	out := outcomeOf(benchIntent(0))
	out.Certificate = make([]byte, 512<<10)
	largest := int64(0)
	for n := range 160 {
		in := benchIntent(n)
		must(t, l.Reserve(t.Context(), in))
		out.Serial = in.Serial
		must(t, l.Commit(t.Context(), out))
		info, err := os.Stat(path + "-wal")
		must(t, err)
		largest = max(largest, info.Size())
	}
	if largest > 36<<20 {
		t.Errorf("the log has grown to %d MiB", largest>>20)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("spiffe://example.org/a", "DNS:a", "method", []byte{1, 2})
	f.Add("\xff\"\\\n", "\u2028", "\x00", []byte(nil))
	f.Fuzz(func(t *testing.T, identity, name, method string, key []byte) {
		in := benchIntent(1)
		in.Identity, in.Names, in.Origin.Method, in.KeyID, in.JoinToken = identity, []string{name, identity}, method, key, key
		l, err := encode(&in, 5)
		if err != nil {
			t.Skip() // too long
		}
		if strings.Count(l.text, "\n") != 1 {
			t.Fatalf("%q is not one line", l.text)
		}
		back, err := decodeAll(l.text + l.text)
		must(t, err)
		for _, b := range back {
			got, err := b.intent()
			must(t, err)
			valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
			// Bytes that are no UTF-8 may become one U+FFFD each or one for a run; how many does not matter.
			short := func(s string) string { return strings.ReplaceAll(valid(s), "\ufffd", "") }
			if b.id != l.id || got.Serial != in.Serial || short(got.Identity) != short(identity) || short(got.Names[0]) != short(name) ||
				short(got.Origin.Method) != short(method) || got.Origin.NodeUID != in.Origin.NodeUID || string(got.KeyID) != string(key) ||
				string(b.token) != string(key) || got.Created.UnixMilli() != in.Created.UnixMilli() {
				t.Fatalf("%+v came back as %+v", in, got)
			}
		}
	})
}
