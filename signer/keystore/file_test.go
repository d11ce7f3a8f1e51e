package keystore_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/signer/keystore"
)

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return der
}

func TestParseReadsEveryForm(t *testing.T) {
	p256 := newKey(t)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	sec1, err := x509.MarshalECPrivateKey(p256)
	must(t, err)
	for name, test := range map[string]struct {
		text []byte
		want crypto.Signer
	}{
		"PKCS #8, P-256":           {pem.Encode("PRIVATE KEY", pkcs8(t, p256)), p256},
		"PKCS #8, P-384":           {pem.Encode("PRIVATE KEY", pkcs8(t, p384)), p384},
		"PKCS #8, Ed25519":         {pem.Encode("PRIVATE KEY", pkcs8(t, edwards)), edwards},
		"PKCS #8, RSA":             {pem.Encode("PRIVATE KEY", pkcs8(t, rivest)), rivest},
		"SEC 1":                    {pem.Encode("EC PRIVATE KEY", sec1), p256},
		"PKCS #1":                  {pem.Encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rivest)), rivest},
		"with a comment before it": {append([]byte("made yesterday\n"), pem.Encode("PRIVATE KEY", pkcs8(t, p256))...), p256},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := keystore.Parse(test.text)
			must(t, err)
			if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(test.want.Public()) {
				t.Error("it is another key")
			}
			// what is written is read again
			text, err := keystore.Encode(key)
			must(t, err)
			again, err := keystore.Parse(text)
			must(t, err)
			if private, ok := again.(interface{ Equal(crypto.PrivateKey) bool }); !ok || !private.Equal(key) {
				t.Error("Encode changes the key")
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	key := newKey(t)
	sec1, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(t, err)
	good := pem.Encode("PRIVATE KEY", pkcs8(t, key))
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":                   {nil, "no PEM block"},
		"DER":                       {pkcs8(t, key), "control character"},
		"a certificate's label":     {pem.Encode("CERTIFICATE", pkcs8(t, key)), `label "CERTIFICATE" is not accepted`},
		"a public key's label":      {pem.Encode("PUBLIC KEY", pkcs8(t, key)), `label "PUBLIC KEY" is not accepted`},
		"encrypted, PKCS #8":        {pem.Encode("ENCRYPTED PRIVATE KEY", pkcs8(t, key)), "the key is encrypted"},
		"encrypted, PKCS #1":        {[]byte(strings.Replace(string(good), "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n", 1)), "the key is encrypted"},
		"parameters before it":      {append(pem.Encode("EC PARAMETERS", []byte("\x06\x08*\x86H\xce=\x03\x01\x07")), pem.Encode("EC PRIVATE KEY", sec1)...), "curve parameters stand before"},
		"two keys":                  {append(append([]byte{}, good...), pem.Encode("PRIVATE KEY", pkcs8(t, newKey(t)))...), "more than the 1 PEM block"},
		"another form than labeled": {pem.Encode("RSA PRIVATE KEY", pkcs8(t, key)), "does not parse as the private key that its label says"},
		"SEC 1 labeled PKCS #8":     {pem.Encode("PRIVATE KEY", sec1), "does not parse as the private key"},
		"PKCS #8 labeled SEC 1":     {pem.Encode("EC PRIVATE KEY", pkcs8(t, key)), "does not parse as the private key"},
		"a key that cannot sign":    {pem.Encode("PRIVATE KEY", pkcs8(t, exchange)), "cannot sign"},
		"cut short":                 {good[:len(good)-30], "cut short"},
		"no bytes of a key":         {pem.Encode("PRIVATE KEY", []byte("hello")), "does not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := keystore.Parse(test.text)
			if err == nil || read != nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, %v, want an error that says %q", read, err, test.want)
			}
			wantNoKey(t, err, test.text)
		})
	}
}

// wantNoKey wants an error that shows no line of a key's text, whole or in part.
func wantNoKey(t testing.TB, err error, text []byte) {
	t.Helper()
	const part = 16
	for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if _, decodeErr := base64.StdEncoding.DecodeString(line); decodeErr != nil || len(line) < part {
				continue
			}
			for i := 0; i+part <= len(line); i++ {
				if strings.Contains(shown, line[i:i+part]) {
					t.Fatalf("the error shows a part of the key: %s", shown)
				}
			}
		}
	}
}

func TestLoadFileModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	key := newKey(t)
	text, err := keystore.Encode(key)
	must(t, err)
	must(t, os.WriteFile(path, text, 0o600))
	good := []os.FileMode{0o600, 0o400, 0o640, 0o660, 0o440}
	for _, mode := range append(good, 0o604, 0o666, 0o602, 0o601, 0o644, 0o777) {
		ok := slices.Contains(good, mode)
		t.Run(fmt.Sprintf("%04o", mode), func(t *testing.T) {
			must(t, os.Chmod(path, mode))
			read, err := keystore.LoadFile(path)
			if ok {
				must(t, err)
				if !key.Equal(read) {
					t.Error("it is another key")
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("mode %04o", mode)) || !strings.Contains(err.Error(), "chmod 600 "+path) {
				t.Errorf("got %v, want an error with the mode and the remedy", err)
			}
		})
	}
}

func TestLoadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := keystore.LoadFile(filepath.Join(dir, "missing.pem"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "missing.pem") {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := keystore.LoadFile(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory: %v", err)
	}
	text, err := keystore.Encode(newKey(t))
	must(t, err)
	for name, content := range map[string][]byte{"long.pem": append(text, strings.Repeat("\n", 17<<10)...), "bad.pem": text[:len(text)-30]} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		_, err := keystore.LoadFile(path)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: got %v, want an error with the path", name, err)
		}
		wantNoKey(t, err, content)
	}
}

func TestCreate(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o277, 0o777} {
		t.Run(fmt.Sprintf("umask %03o", umask), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key.pem")
			key := newKey(t)
			// the mask is the whole process's: no test of this package runs beside another
			old := syscall.Umask(umask)
			err := keystore.Create(path, key)
			syscall.Umask(old)
			must(t, err)
			info, err := os.Stat(path)
			must(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("the mode is %04o", info.Mode().Perm())
			}
			read, err := keystore.LoadFile(path)
			must(t, err)
			if !key.Equal(read) {
				t.Error("it is another key")
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	key := newKey(t)
	existing, dangling := filepath.Join(dir, "key.pem"), filepath.Join(dir, "link.pem")
	must(t, os.WriteFile(existing, []byte("the old key"), 0o600))
	must(t, os.Symlink(filepath.Join(dir, "elsewhere.pem"), dangling))
	for _, path := range []string{existing, dangling} {
		if err := keystore.Create(path, key); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: got %v, want a refusal", path, err)
		}
	}
	if text, err := os.ReadFile(existing); err != nil || string(text) != "the old key" {
		t.Errorf("the old key is now %q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link was followed")
	}
	if err := keystore.Create(filepath.Join(dir, "missing", "key.pem"), key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := keystore.Create(filepath.Join(dir, "fake.pem"), unknown{key}); err == nil {
		t.Error("a key without an encoding was written")
	}
	if _, err := os.Lstat(filepath.Join(dir, "fake.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a refused key left a file")
	}
}

// TestCreateLeavesNothing has the disk fill up while a key is written.
func TestCreateLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	small := old
	small.Cur = 10
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
	err := keystore.Create(path, newKey(t))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if err == nil {
		t.Fatal("a key was written past the limit")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a part of a key is left")
	}
}

// unknown is a key that only a device knows.
type unknown struct{ crypto.Signer }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
