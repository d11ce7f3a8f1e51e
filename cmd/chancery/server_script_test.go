package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/signer/keystore"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/tokenreview"
)

// TestServerScripts runs the scripts of the commands that make, run and ask a server, on the real binary.
func TestServerScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "server"), RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", raceOptions)
			env.Values[stateKey{}] = &scriptState{servers: make(map[string]*running), kept: make(map[string]string)}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "grab": cmdGrab, "edit": cmdEdit, "mode": cmdMode, "keep": cmdKeep, "kept": cmdKept, "hierarchy": cmdHierarchy, "set": cmdSet,
			"expired": cmdExpired, "ended": cmdEnded,
			"server": cmdServer, "signal": cmdSignal, "ends": cmdEnds, "logged": cmdLogged, "hold": cmdHold, "release": cmdRelease, "metric": cmdMetric,
		},
	})
}

// exits CODE COMMAND...: runs a command and holds its exit code against CODE.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) >= 2, "exits CODE COMMAND...")
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// grab VARIABLE PATTERN: sets a variable to the pattern's first group in what the last command printed.
func cmdGrab(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "grab VARIABLE PATTERN")
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("%s is not in the output", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// edit FILE OLD NEW: replaces a text that stands in a file once.
func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 3, "edit FILE OLD NEW")
	path, text := ts.MkAbs(args[0]), ts.ReadFile(args[0])
	if n := strings.Count(text, args[1]); n != 1 {
		ts.Fatalf("%q stands %d times in %s", args[1], n, args[0])
	}
	ts.Check(os.WriteFile(path, []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}

// mode FILE MODE: holds a file's permissions against MODE; of a link, those of what it leads to.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "mode FILE MODE")
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// keep DIR: remembers all that is in a directory, for kept.
func cmdKeep(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "keep DIR")
	stateOf(ts).kept[args[0]] = contents(ts, args[0])
}

// kept DIR: holds a directory against what keep remembered, byte for byte.
func cmdKept(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "kept DIR")
	before, after := stateOf(ts).kept[args[0]], contents(ts, args[0])
	if before != after {
		ts.Fatalf("%s held\n%s\nand holds\n%s", args[0], before, after)
	}
}

// contents lists everything below a directory, with mode and hash.
func contents(ts *testscript.TestScript, dir string) string {
	var list strings.Builder
	ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var sum [sha256.Size]byte
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(data)
		}
		fmt.Fprintf(&list, "%s %s %s %x\n", path, info.Mode(), info.ModTime(), sum[:8])
		return nil
	}))
	return list.String()
}

// hierarchy DIR [YEARS]: writes a new root and issuer into DIR, as pki is laid out, made so many years ago.
func cmdHierarchy(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1 || len(args) == 2, "hierarchy DIR [YEARS]")
	made := time.Now()
	if len(args) == 2 {
		years, err := strconv.Atoi(args[1])
		ts.Check(err)
		made = made.AddDate(-years, 0, 0)
	}
	h, err := local.Create(spiffeid.RequireTrustDomainFromString("example.org"), made)
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	for name, key := range map[string]crypto.Signer{"root-key.pem": h.RootKey, "issuer-key.pem": h.IssuerKey} {
		text, err := keystore.Encode(key)
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	ts.Check(os.WriteFile(filepath.Join(dir, "roots.pem"), pem.Encode("CERTIFICATE", h.Root.Raw), 0o600))
	ts.Check(os.WriteFile(filepath.Join(dir, "issuer.pem"), pem.Encode("CERTIFICATE", h.Issuer.Raw), 0o600))
}

// expired LEDGER FILE: puts a join token into a ledger that has expired, and the token into a file.
func cmdExpired(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "expired LEDGER FILE")
	token, id, hash, err := tokenreview.NewJoinToken(rand.Reader)
	ts.Check(err)
	roll, err := sqlite.Open(context.Background(), sqlite.Config{Path: ts.MkAbs(args[0]), Shared: true})
	ts.Check(err)
	now := time.Now()
	ts.Check(roll.AddToken(context.Background(), ledger.JoinToken{
		Hash: hash, ID: id, Identity: "spiffe://example.org/vm/web-1", Created: now.Add(-time.Hour), Expires: now.Add(-time.Second),
	}))
	ts.Check(roll.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(token.Reveal()), 0o600))
}

// ended FILE: waits until the first certificate in a file has ended.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "ended FILE")
	certificates, err := chain.ParsePEM([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	<-time.After(time.Until(certificates[0].NotAfter.Add(time.Second)))
}

// set DIR NAME...: checks what request has written: modes, a key that fits the chain, a chain that leads to the bundle, just these names in it.
func cmdSet(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) >= 2, "set DIR NAME...")
	cmdMode(ts, false, []string{args[0] + "/key.pem", "0600"})
	cmdMode(ts, false, []string{args[0] + "/chain.pem", "0644"})
	cmdMode(ts, false, []string{args[0] + "/bundle.pem", "0644"})
	key, err := keystore.LoadFile(ts.MkAbs(args[0] + "/key.pem"))
	ts.Check(err)
	certificates, err := chain.ParsePEM([]byte(ts.ReadFile(args[0] + "/chain.pem")))
	ts.Check(err)
	anchors, err := chain.ParsePEM([]byte(ts.ReadFile(args[0] + "/bundle.pem")))
	ts.Check(err)
	leaf, roots, between := certificates[0], x509.NewCertPool(), x509.NewCertPool()
	for _, anchor := range anchors {
		roots.AddCert(anchor)
	}
	for _, certificate := range certificates[1:] {
		between.AddCert(certificate)
	}
	if public, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.Public()) {
		ts.Fatalf("key.pem is not the key of chain.pem")
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	ts.Check(err)
	var names []string
	for _, uri := range leaf.URIs {
		names = append(names, uri.String())
	}
	names = append(names, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	if !slices.Equal(names, args[1:]) {
		ts.Fatalf("the certificate is for %v, want %v", names, args[1:])
	}
}

// server NAME CONFIG: starts a server and waits until it is ready. NAME_GRPC and NAME_HTTP say where it listens.
func cmdServer(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "server NAME CONFIG")
	r, err := startServer(args[1], ts.MkAbs("."))
	ts.Check(err)
	ts.Defer(r.kill)
	stateOf(ts).servers[args[0]] = r
	ts.Setenv(args[0]+"_GRPC", r.grpc)
	ts.Setenv(args[0]+"_HTTP", r.http)
}

// signal NAME HUP|TERM|INT: sends a signal to a server.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "signal NAME HUP|TERM|INT")
	signals := map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT}
	ts.Check(serverOf(ts, args[0]).signal(signals[args[1]]))
}

// ends NAME CODE: waits until a server has ended, with an exit code.
func cmdEnds(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "ends NAME CODE")
	code, err := serverOf(ts, args[0]).ends()
	ts.Check(err)
	if fmt.Sprint(code) != args[1] {
		ts.Fatalf("exit code %d, want %s; the log:\n%s", code, args[1], serverOf(ts, args[0]).text())
	}
}

// logged NAME PATTERN: waits until a server has logged a pattern. With ! it must not have so far.
func cmdLogged(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, false, len(args) == 2, "[!] logged NAME PATTERN")
	if neg {
		if text := serverOf(ts, args[0]).text(); regexp.MustCompile("(?m)" + args[1]).MatchString(text) {
			ts.Fatalf("%s is in the log:\n%s", args[1], text)
		}
		return
	}
	_, err := serverOf(ts, args[0]).logged(args[1])
	ts.Check(err)
}

// hold NAME: opens a connection to a server and sends nothing, until release.
func cmdHold(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "hold NAME")
	conn, err := net.Dial("tcp", ts.Getenv(args[0]+"_GRPC"))
	ts.Check(err)
	stateOf(ts).held = append(stateOf(ts).held, conn)
}

// release closes what hold has opened.
func cmdRelease(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 0, "release")
	for _, conn := range stateOf(ts).held {
		ts.Check(conn.Close())
	}
	stateOf(ts).held = nil
}

// metric NAME LINE: holds a line of a server's metrics.
func cmdMetric(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "metric NAME LINE")
	text, err := serverOf(ts, args[0]).get("/metrics")
	ts.Check(err)
	name, _, _ := strings.Cut(args[1], " ")
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == args[1] {
			return
		}
		if strings.HasPrefix(line, name+" ") {
			ts.Logf("it is %s", line)
		}
	}
	ts.Fatalf("%s is not among the metrics", args[1])
}

// scriptState is what the commands of one script share.
type scriptState struct {
	servers map[string]*running
	kept    map[string]string
	held    []net.Conn
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *scriptState {
	state, ok := ts.Value(stateKey{}).(*scriptState)
	if !ok {
		ts.Fatalf("the script has no state")
	}
	return state
}

func serverOf(ts *testscript.TestScript, name string) *running {
	server, ok := stateOf(ts).servers[name]
	if !ok {
		ts.Fatalf("there is no server %s", name)
	}
	return server
}

func usage(ts *testscript.TestScript, neg, ok bool, text string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", text)
	}
}
