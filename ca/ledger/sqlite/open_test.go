package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// refuse opens a ledger that must be refused, with all the words.
func refuse(t testing.TB, config Config, words ...string) {
	t.Helper()
	l, err := Open(t.Context(), config)
	if err == nil {
		l.Close()
		t.Fatalf("%+v was opened", config)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal %q does not say %q", err, word)
		}
	}
}

// alter runs SQL on the file of a ledger that nobody has open.
func alter(t testing.TB, path, text string) {
	t.Helper()
	c, err := connect(path)
	must(t, err)
	defer c.close()
	must(t, c.exec(text))
}

func TestSecondServerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	refuse(t, Config{Path: path}, path, "in use by another server", fmt.Sprintf("process %d", os.Getpid()))
	in := benchIntent(1)
	must(t, l.Reserve(t.Context(), in))
	must(t, l.Commit(t.Context(), outcomeOf(in)))
	must(t, l.Close())
	mustOpen(t, Config{Path: path})
}

// TestOpenThatFailsReleases: what could not be opened is not left locked.
func TestOpenThatFailsReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	must(t, os.WriteFile(path, []byte(strings.Repeat("this is no database ", 1000)), 0o600))
	for range 2 {
		refuse(t, Config{Path: path}, "not a Chancery ledger")
	}
	must(t, os.Remove(path))
	mustOpen(t, Config{Path: path})
}

func TestReaderCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	refuse(t, Config{Path: path, ReadOnly: true}, "no such file")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a reader has made the file: %v", err)
	}
	refuse(t, Config{Path: path, ReadOnly: true, Shared: true}, "either")
	server := mustOpen(t, Config{Path: path})
	in := benchIntent(1)
	must(t, server.Reserve(t.Context(), in))
	reader := mustOpen(t, Config{Path: path, ReadOnly: true})
	beside := mustOpen(t, Config{Path: path, Shared: true})
	for name, err := range map[string]error{
		"reader reserves": reader.Reserve(t.Context(), benchIntent(2)),
		"reader settles":  reader.Commit(t.Context(), outcomeOf(in)),
		"reader probes":   reader.Probe(t.Context()),
		"tool reserves":   beside.Reserve(t.Context(), benchIntent(2)),
		"tool settles":    beside.Fail(t.Context(), ledger.Outcome{Serial: in.Serial}),
	} {
		if err == nil || errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: %v, want an error that does not ask to try again", name, err)
		}
	}
	if _, err := reader.readers.ExecContext(t.Context(), "DELETE FROM probe"); err == nil {
		t.Error("a reader's connection can write")
	}
	must(t, beside.Probe(t.Context()))
	if stuck := reader.Stuck(time.Now()); stuck != 0 {
		t.Errorf("a reader is stuck for %v", stuck)
	}
}

// TestReadingAfterACrash: an operator can look into the ledger of a server that is down.
func TestReadingAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	server := mustOpen(t, Config{Path: path})
	issued, open := benchIntent(1), benchIntent(2)
	must(t, server.Reserve(t.Context(), issued))
	must(t, server.Commit(t.Context(), outcomeOf(issued)))
	must(t, server.Reserve(t.Context(), open))
	after := filepath.Join(t.TempDir(), "ledger.db")
	copyFile(t, after, path)
	copyFile(t, after+"-wal", path+"-wal")
	reader := mustOpen(t, Config{Path: after, ReadOnly: true})
	for in, state := range map[*ledger.Intent]ledger.State{&issued: ledger.Issued, &open: ledger.Reserved} {
		if e, err := reader.Get(t.Context(), in.Serial); err != nil || e.State != state {
			t.Errorf("got %s, %v, want %s", e.State, err, state)
		}
	}
}

// TestToolBeforeTheFirstServer: tokens can be made before the server has ever run.
func TestToolBeforeTheFirstServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	tool := mustOpen(t, Config{Path: path, Shared: true})
	token := ledger.JoinToken{Hash: []byte("hash"), ID: "id", Created: time.Now(), Expires: time.Now().Add(time.Hour)}
	must(t, tool.AddToken(t.Context(), token))
	server := mustOpen(t, Config{Path: path})
	if _, err := server.Token(t.Context(), token.Hash, time.Now()); err != nil {
		t.Error(err)
	}
}

func TestSchemaVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	must(t, mustOpen(t, Config{Path: path}).Close())
	alter(t, path, "PRAGMA user_version = 99")
	for _, config := range []Config{{Path: path}, {Path: path, Shared: true}, {Path: path, ReadOnly: true}} {
		refuse(t, config, "schema 99", "newer Chancery", "schema 3")
	}
	// An older file: a reader leaves it alone, and so does a tool while a server has it open.
	alter(t, path, "PRAGMA user_version = 0")
	refuse(t, Config{Path: path, ReadOnly: true}, "schema 0", "start this version's server once")
	held, err := acquire(path)
	must(t, err)
	defer held.release()
	refuse(t, Config{Path: path, Shared: true}, "older than this program")
}

// TestUpgrade opens files as earlier versions left them.
func TestUpgrade(t *testing.T) {
	texts, err := steps()
	must(t, err)
	in := benchIntent(1)
	out := outcomeOf(in)
	record, err := encode(&in, 7)
	must(t, err)
	first := fmt.Sprintf(`INSERT INTO identities (id, name) VALUES (1, '%s');
		INSERT INTO certificates (id, serial, identity, state, settled, span, not_before, not_after, issuer, detail, certificate)
		VALUES (%d, x'%s', 1, 1, %d, 10, %[4]d, %[5]d, x'01', '%[6]s', x'%[7]x');`, in.Identity, record.id, in.Serial, in.Created.UnixMilli(),
		out.NotAfter.UnixMilli(), record.detail, out.Certificate)
	second := first + fmt.Sprintf("INSERT INTO revocations (serial, revoked, reason, by) VALUES (x'%s', %d, 1, 'a test')", in.Serial, in.Created.UnixMilli())
	for version, rows := range map[int]string{1: first, 2: second} {
		t.Run(fmt.Sprintf("schema %d", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			must(t, create(path))
			alter(t, path, strings.Join(texts[:version], "\n")+rows+fmt.Sprintf(";PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version))
			refuse(t, Config{Path: path, ReadOnly: true}, fmt.Sprintf("schema %d", version), "start this version's server once")

			upgraded := mustOpen(t, Config{Path: path})
			entry, err := upgraded.Certificate(t.Context(), in.Serial, out.Certificate)
			must(t, err)
			if entry.Identity != in.Identity || entry.Origin != in.Origin || (entry.Revoked != nil) != (version > 1) {
				t.Errorf("it is %+v", entry)
			}
			must(t, upgraded.Revoke(t.Context(), in.Serial, ledger.Revocation{At: in.Created.Add(time.Hour), Reason: ledger.KeyCompromise, By: "a test"}))
			found, err := upgraded.Find(t.Context(), ledger.Query{Revoked: true, IssuerKeyID: []byte{1}})
			must(t, err)
			wanted := in.Created // what was revoked stays so
			if version == 1 {
				wanted = wanted.Add(time.Hour)
			}
			if len(found) != 1 || found[0].Revoked.Reason != ledger.KeyCompromise || found[0].Revoked.At.UnixMilli() != wanted.UnixMilli() {
				t.Errorf("found %+v", found)
			}
			next := benchIntent(2)
			must(t, upgraded.Reserve(t.Context(), next))
			must(t, upgraded.Commit(t.Context(), outcomeOf(next)))
		})
	}
}

func TestForeignFilesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, path string)
		words   string
	}{
		"a text": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("text ", 4000)), 0o600))
		}, "not a Chancery ledger"},
		"a short text":       {func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("text"), 0o600)) }, "not a Chancery ledger"},
		"another database":   {func(t *testing.T, path string) { must(t, create(path)); alter(t, path, "CREATE TABLE t (x)") }, "not a Chancery ledger"},
		"another's database": {func(t *testing.T, path string) { must(t, create(path)); alter(t, path, "PRAGMA application_id = 7") }, "not a Chancery ledger"},
		"a directory":        {func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			test.prepare(t, path)
			before, _ := os.ReadFile(path)
			for _, config := range []Config{{Path: path}, {Path: path, Shared: true}, {Path: path, ReadOnly: true}} {
				refuse(t, config, path, test.words)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	refuse(t, Config{Path: filepath.Join(t.TempDir(), "missing", "ledger.db")}, "no such file")
}

// TestDamagedFile: damage is reported as what it is, not as something that passes, and nothing makes it worse.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	var intents []ledger.Intent
	for n := range 40 {
		in := benchIntent(n)
		intents = append(intents, in)
		must(t, l.Reserve(t.Context(), in))
		must(t, l.Commit(t.Context(), outcomeOf(in)))
	}
	must(t, l.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	// All but the schema's page.
	for i := 4096; i < len(whole); i++ {
		whole[i] ^= 0x5a
	}
	must(t, os.WriteFile(path, whole, 0o600))

	refuse(t, Config{Path: path}, path, "damaged", "restore a copy", "docs/operations.md")
	reader := mustOpen(t, Config{Path: path, ReadOnly: true})
	if _, err := reader.Get(t.Context(), intents[20].Serial); err == nil || errors.Is(err, ledger.ErrUnavailable) ||
		errors.Is(err, ledger.ErrNotFound) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v, want the damage", err)
	}
}

func TestFileModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a directory?mode=ro#x%41")
	must(t, os.Mkdir(path, 0o700))
	path = filepath.Join(path, "ledger.db")
	l := mustOpen(t, Config{Path: path})
	must(t, l.Probe(t.Context()))
	modes := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			info, err := os.Stat(path + suffix)
			must(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", info.Name(), info.Mode())
			}
		}
	}
	modes()
	must(t, l.Close())
	must(t, os.Chmod(path, 0o644))
	l = mustOpen(t, Config{Path: path})
	must(t, l.Probe(t.Context()))
	modes()
}

// TestSettings looks at what the connections really do.
func TestSettings(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	got := map[string]string{}
	must(t, l.submit(t.Context(), "testing", &request{write: func(g *group) (answer, broken error) {
		for _, pragma := range []string{"journal_mode", "synchronous", "foreign_keys", "application_id", "user_version"} {
			s, err := g.conn.prepare("PRAGMA " + pragma)
			if err != nil {
				return err, nil
			}
			defer s.close()
			row, err := s.row(1)
			if err != nil {
				return err, nil
			}
			got[pragma] = fmt.Sprint(row[0])
		}
		return nil, nil
	}}, false))
	want := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "application_id": fmt.Sprint(applicationID), "user_version": "3",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOthersDuringWrites: while the server writes without a pause, one process reads and another adds tokens. They get in.
func TestOthersDuringWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	ctx, stop := context.WithCancel(t.Context())
	var server sync.WaitGroup
	for caller := range 16 {
		server.Go(func() {
			for n := caller; ctx.Err() == nil; n += 16 {
				in := benchIntent(n)
				if err := l.Reserve(t.Context(), in); err != nil {
					t.Error(err)
				}
				if err := l.Commit(t.Context(), outcomeOf(in)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	tool := exec.Command(os.Args[0], "-test.run=^TestTool$", "-test.count=1", "-test.v")
	tool.Env = append(os.Environ(), toolEnv+"="+path)
	output, err := tool.CombinedOutput()
	stop()
	server.Wait()
	if err != nil || !strings.Contains(string(output), "PASS: TestTool") {
		t.Fatalf("%v\n%s", err, output)
	}
	for n := range toolTokens {
		if _, err := l.Token(t.Context(), []byte{byte(n)}, time.Now()); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%s", output)
}

const (
	toolEnv    = "CHANCERY_TEST_TOOL_LEDGER"
	toolTokens = 50
)

// TestTool is the other process of TestOthersDuringWrites.
func TestTool(t *testing.T) {
	path := os.Getenv(toolEnv)
	if path == "" {
		t.Skip("runs in the child process of TestOthersDuringWrites")
	}
	tool := mustOpen(t, Config{Path: path, Shared: true})
	reader := mustOpen(t, Config{Path: path, ReadOnly: true})
	var longest time.Duration
	for n := range toolTokens {
		began := time.Now()
		must(t, tool.AddToken(t.Context(), ledger.JoinToken{Hash: []byte{byte(n)}, ID: "t", Created: began, Expires: began.Add(time.Hour)}))
		longest = max(longest, time.Since(began))
		if _, err := reader.Token(t.Context(), []byte{byte(n)}, began); err != nil {
			t.Error(err)
		}
		entries, err := reader.Find(t.Context(), ledger.Query{})
		must(t, err)
		for i, e := range entries {
			if i > 0 && e.Created.After(entries[i-1].Created) {
				t.Error("not the newest first")
			}
			if e.Outcome.Reason != "" {
				t.Errorf("%s has the reason %q", e.Serial, e.Outcome.Reason)
			}
		}
	}
	t.Logf("the longest addition took %v", longest)
}
