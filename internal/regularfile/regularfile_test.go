package regularfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chancery-ca/chancery/internal/regularfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path  string
		limit int64
		want  string // in the error; empty if it is read
	}{
		"a file":               {at("file"), 5, ""},
		"through a link":       {at("link"), 5, ""},
		"one byte too many":    {at("file"), 4, "longer than the 4 bytes"},
		"nothing there":        {at("none"), 5, "no such file"},
		"a directory":          {dir, 5, "not a regular file"},
		"a pipe nobody fills":  {at("pipe"), 5, "not a regular file"},
		"a device without end": {"/dev/zero", 5, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := regularfile.Read(test.path, test.limit)
			switch {
			case test.want == "" && (err != nil || string(data) != "12345"):
				t.Errorf("%q, %v", data, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want an error with %q", err, test.want)
			}
		})
	}
}
