package cfssl_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/signer/cfssl"
)

func TestLoadKey(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), mode))
		must(t, os.Chmod(path, mode))
		return "file:" + path
	}
	t.Setenv("CFSSL_SET", secret)
	t.Setenv("CFSSL_UPPER", " "+strings.ToUpper(secret)+"\n")
	t.Setenv("CFSSL_EMPTY", "")
	t.Setenv("CFSSL_BLANK", "  ")
	t.Setenv("CFSSL_SHORT", secret[:62])
	t.Setenv("CFSSL_ODD", secret+"a")
	t.Setenv("CFSSL_TEXT", "hunter2 hunter2 hunter2 hunter2 hunter2 hunter2 hunter2 hunter2 ")
	for _, test := range []struct {
		reference string
		want      string // in the error; empty if it is read
	}{
		{"env:CFSSL_SET", ""},
		{"env:CFSSL_UPPER", ""},
		{file("good", secret+"\n", 0o600), ""},
		{file("longer", secret+secret, 0o640), ""},
		{"env:CFSSL_UNSET", "CFSSL_UNSET is not set or empty"},
		{"env:CFSSL_EMPTY", "is not set or empty"},
		{"env:CFSSL_BLANK", "key of 0 bytes"},
		{"env:CFSSL_SHORT", "key of 31 bytes; at least 32"},
		{"env:CFSSL_ODD", "in hexadecimal"},
		{"env:CFSSL_TEXT", "in hexadecimal"},
		{file("empty", "", 0o600), "key of 0 bytes"},
		{file("open", secret, 0o604), "chmod 600"},
		{file("huge", strings.Repeat("ab", 1<<20), 0o600), "longer than"},
		{"file:" + dir, "not a regular file"},
		{"file:" + filepath.Join(dir, "none"), "no such file"},
		{"file:/dev/zero", "not a regular file"},
		{"env:", "file:PATH or env:NAME"},
		{"file:", "file:PATH or env:NAME"},
		{"", "file:PATH or env:NAME"},
		{secret, "file:PATH or env:NAME"},
		{"vault:" + secret, "file:PATH or env:NAME"},
	} {
		key, err := cfssl.LoadKey(test.reference)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.reference, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want an error with %q", test.reference, err, test.want)
		case err != nil && (strings.Contains(err.Error(), secret[:60]) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("the error shows the key: %v", err)
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("key", "key", key, "in", cfssl.Config{Key: key})
		for _, text := range []string{fmt.Sprintf("%v %+v %#v %s %x %q %d", key, key, key, key, key, key, key), fmt.Sprintf("%+v", cfssl.Config{Key: key}), log.String()} {
			if strings.Contains(strings.ToLower(text), secret[:60]) {
				t.Errorf("the key shows itself: %s", text)
			}
		}
	}
}
