package keypolicy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

func TestBlockedKeys(t *testing.T) {
	first, second := sha256.Sum256([]byte("first")), sha256.Sum256([]byte("second"))
	text := "# keys found in public repositories\n\n" + hex.EncodeToString(second[:]) + "\r\n  " +
		strings.ToUpper(hex.EncodeToString(first[:])) + "\t\n" + hex.EncodeToString(second[:]) // no line end
	list, err := keypolicy.ReadBlockedKeys(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if !list.Contains(first) || !list.Contains(second) || list.Contains(sha256.Sum256([]byte("third"))) || list.Len() != 2 {
		t.Errorf("the list of %d keys has others than the file", list.Len())
	}
	var none *keypolicy.BlockedKeys
	if none.Contains(first) || none.Len() != 0 {
		t.Error("the nil list is not empty")
	}
}

func TestBlockedKeysAreReadStrictly(t *testing.T) {
	hash := strings.Repeat("a1", 32)
	for name, test := range map[string]struct{ text, fragment string }{
		"short":            {hash + "\n" + hash[1:], "line 2: a SHA-256 hash is 64 hexadecimal digits, and here are 63"},
		"long":             {hash + "0", "line 1"},
		"not hexadecimal":  {"#\n\n" + hash[2:] + "xy", "line 3"},
		"trailing comment": {hash + " # leaked", "a comment with # on a line of its own"},
		"two on a line":    {hash + " " + hash, "line 1"},
		"SHA-1":            {hash[:40], "here are 40"},
		"binary":           {strings.Repeat("\x00", 64), "line 1"},
		"endless line":     {hash + "\n" + strings.Repeat("#", 1<<20), "after line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := keypolicy.ReadBlockedKeys(strings.NewReader(test.text))
			wants(t, err, test.fragment)
		})
	}
}
