package cfssl

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/cloudflare/cfssl/auth"

	"github.com/chancery-ca/chancery/internal/regularfile"
)

// minKey is the least number of bytes of an authentication key: the output size of SHA-256 (RFC 2104 §3). maxKeyFile bounds what is read of a file.
const (
	minKey     = 32
	maxKeyFile = 4 << 10
)

// Key is the key that a CFSSL server knows us by (HMAC-SHA-256). It shows itself in no text.
type Key struct {
	provider *auth.Standard
	text     string // lower-case hexadecimal, to keep it out of errors
}

// LoadKey reads a key, at least 32 bytes in hexadecimal, from a file (file:PATH) or an environment variable (env:NAME). A file that every user of the
// machine may reach, and a variable that is not set, are refused. Errors hold nothing of the key.
func LoadKey(reference string) (Key, error) {
	scheme, name, _ := strings.Cut(reference, ":")
	switch {
	case scheme == "file" && name != "":
		text, err := readKey(name)
		if err != nil {
			return Key{}, err
		}
		return parseKey(text, name)
	case scheme == "env" && name != "":
		text, set := os.LookupEnv(name)
		if !set || text == "" {
			return Key{}, fmt.Errorf("the environment variable %s is not set or empty", name)
		}
		return parseKey(text, "the environment variable "+name)
	}
	// the reference may be the key itself, pasted
	return Key{}, errors.New("an authentication key is named as file:PATH or env:NAME; the key itself does not belong into the configuration")
}

func readKey(path string) (string, error) {
	file, err := regularfile.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the authentication key: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("reading the authentication key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return "", fmt.Errorf("%s has mode %04o, so that every user of this machine can reach it; run: chmod 600 %s", path, mode, path)
	}
	text, err := regularfile.Read(path, maxKeyFile)
	return string(text), err
}

func parseKey(text, source string) (Key, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	octets, err := hex.DecodeString(text)
	switch {
	case err != nil:
		return Key{}, fmt.Errorf("%s does not hold a key in hexadecimal; make one with: openssl rand -hex 32", source)
	case len(octets) < minKey:
		return Key{}, fmt.Errorf("%s holds a key of %d bytes; at least %d are needed, as from: openssl rand -hex 32", source, len(octets), minKey)
	}
	provider, err := auth.New(text, nil)
	if err != nil {
		return Key{}, fmt.Errorf("%s holds no key that CFSSL takes", source)
	}
	return Key{provider: provider, text: text}, nil
}

func (k Key) usable() bool { return k.provider != nil }

// in tells whether a text shows the key.
func (k Key) in(text string) bool {
	return k.text != "" && strings.Contains(strings.ToLower(text), k.text)
}

const hidden = "[authentication key]"

// String hides the key.
func (Key) String() string { return hidden }

// GoString hides the key.
func (Key) GoString() string { return hidden }

// Format hides the key from every verb.
func (Key) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(hidden)) }

// LogValue hides the key.
func (Key) LogValue() slog.Value { return slog.StringValue(hidden) }
