package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"chancery": main}) }

// TestFileScripts runs the scripts of the commands that look at files, over fixtures that are made for each. UPDATE_SCRIPTS=1 writes what
// they print into the scripts.
func TestFileScripts(t *testing.T) {
	var files []string
	for _, pattern := range []string{"inspect*.txt", "verify*.txt", "lint*.txt", "policy*.txt"} {
		found, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files: files, Setup: func(env *testscript.Env) error { return writeFixtures(env.WorkDir) }, RequireExplicitExec: true, RequireUniqueNames: true,
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": cmdExits},
	})
}
