package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// opensslVersion returns the version of the openssl on the PATH, or an empty string.
func opensslVersion() string {
	output, err := exec.Command("openssl", "version").Output()
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(output))
	if len(fields) < 2 {
		return ""
	}
	return fields[0] + " " + fields[1]
}

// opensslInput is what openssl verify is given. The texts are PEM.
type opensslInput struct {
	roots, intermediates, leaf, lists []byte
	arguments                         []string
}

// verify returns nil if openssl verifies the leaf.
func (in opensslInput) verify() error {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	arguments := append([]string{"verify", "-no-CAfile", "-no-CApath", "-no-CAstore"}, in.arguments...)
	for _, file := range []struct {
		option string
		text   []byte
	}{{"-trusted", in.roots}, {"-untrusted", in.intermediates}, {"-CRLfile", in.lists}, {"", in.leaf}} {
		if len(file.text) == 0 {
			continue
		}
		path := filepath.Join(dir, "file"+file.option+".pem")
		if err := os.WriteFile(path, file.text, 0o600); err != nil {
			return err
		}
		if file.option != "" {
			arguments = append(arguments, file.option)
		}
		arguments = append(arguments, path)
	}
	return openssl(nil, arguments...)
}

// openssl returns nil if a command of it succeeds.
func openssl(input []byte, arguments ...string) error {
	command := exec.Command("openssl", arguments...)
	command.Stdin = bytes.NewReader(input)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("openssl: %s", bytes.TrimSpace(output))
	}
	return err
}

func toPEM(label string, encodings ...[]byte) []byte {
	var text []byte
	for _, encoding := range encodings {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: label, Bytes: encoding})...)
	}
	return text
}
