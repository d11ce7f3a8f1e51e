package main

import (
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/signer/cfssl/cfssltest"
	"github.com/chancery-ca/chancery/signer/local"
)

type cfsslKey struct{}

// TestCFSSLScripts runs the real binary in front of a CFSSL server that can misbehave.
func TestCFSSLScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "cfssl"), RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", raceOptions)
			env.Values[stateKey{}] = &scriptState{servers: make(map[string]*running), kept: make(map[string]string)}
			// an hour old: CFSSL's certificates begin before the full minute
			h, err := local.Create(spiffeid.RequireTrustDomainFromString("example.org"), time.Now().Add(-time.Hour))
			if err != nil {
				return err
			}
			server := newCFSSL(t, h)
			env.Values[cfsslKey{}] = server
			env.Setenv("CFSSL", server.Address)
			for name, text := range map[string][]byte{
				"roots.pem": pem.Encode("CERTIFICATE", h.Root.Raw), "issuer.pem": pem.Encode("CERTIFICATE", h.Issuer.Raw),
				"server-ca.pem": pem.Encode("CERTIFICATE", server.CA.Raw), "auth.key": []byte(server.Key + "\n"),
			} {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), text, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "grab": cmdGrab, "edit": cmdEdit, "set": cmdSet, "server": cmdServer, "signal": cmdSignal, "logged": cmdLogged, "ends": cmdEnds,
			"cfssl": cmdCFSSL, "says": cmdSays, "expand": cmdExpand,
		},
	})
}

func newCFSSL(t *testing.T, h *local.Hierarchy) *cfssltest.Server {
	profile := func(lifetime time.Duration, usages ...x509.ExtKeyUsage) cfssltest.Profile {
		return cfssltest.Profile{ExtKeyUsage: usages, Backdate: time.Minute, Expiry: lifetime, ClientSerials: true}
	}
	const hour = 58 * time.Minute // less the rounding to a minute
	return cfssltest.New(t, cfssltest.Config{
		Authority: cfssltest.Authority{Certificate: h.Issuer, Key: h.IssuerKey},
		Profiles: map[string]cfssltest.Profile{
			"svid": profile(hour, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), "web": profile(hour+23*time.Hour, x509.ExtKeyUsageServerAuth),
		},
	})
}

// cfssl well|away|refuses: how the server behaves from now on.
func cmdCFSSL(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "cfssl well|away|refuses")
	server, ok := ts.Value(cfsslKey{}).(*cfssltest.Server)
	if !ok {
		ts.Fatalf("there is no CFSSL server")
	}
	server.Answer(nil)
	server.Fault(nil)
	switch args[0] {
	case "away":
		server.Fault(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	case "refuses":
		server.Answer(func(cfssltest.Order) ([]byte, *cfssltest.Refusal) {
			return nil, &cfssltest.Refusal{Status: http.StatusBadRequest, Code: 5500, Message: "Request does not match policy whitelist"}
		})
	}
}

// says NAME PATH TEXT: waits until a page of a server has a text in it.
func cmdSays(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 3, "says NAME PATH TEXT")
	ts.Check(serverOf(ts, args[0]).says(args[1], args[2]))
}

// expand FILE: replaces $VARIABLES in a file.
func cmdExpand(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "expand FILE")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o600))
}
