package keypolicy

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxBlockedLine bounds a line of a list, in bytes.
const maxBlockedLine = 4096

// BlockedKeys is an immutable list of keys that must not be certified, by the SHA-256 hash of their DER SubjectPublicKeyInfo. The nil
// list is empty.
type BlockedKeys struct {
	sorted [][32]byte
}

// ReadBlockedKeys reads a list: each line holds 64 hexadecimal digits, or nothing, or a comment that begins with #. Blanks around them do not
// matter; anything else is an error that names the line, since a line that is skipped is a key that is not blocked.
func ReadBlockedKeys(r io.Reader) (*BlockedKeys, error) {
	list := &BlockedKeys{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxBlockedLine), maxBlockedLine)
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		var hash [32]byte
		if len(text) != hex.EncodedLen(len(hash)) {
			return nil, fmt.Errorf("line %d: a SHA-256 hash is 64 hexadecimal digits, and here are %d characters; begin a comment with # on a line of its own",
				number, len(text))
		}
		if _, err := hex.Decode(hash[:], []byte(text)); err != nil {
			return nil, fmt.Errorf("line %d: a SHA-256 hash is 64 hexadecimal digits: %w", number, err)
		}
		list.sorted = append(list.sorted, hash)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", number, err)
	}
	slices.SortFunc(list.sorted, compareHashes)
	list.sorted = slices.Clip(slices.Compact(list.sorted))
	return list, nil
}

// Contains tells whether a key is on the list. It is safe for concurrent use and takes well below a microsecond.
func (b *BlockedKeys) Contains(spkiSHA256 [32]byte) bool {
	if b == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(b.sorted, spkiSHA256, compareHashes)
	return found
}

// Len returns the number of keys on the list.
func (b *BlockedKeys) Len() int {
	if b == nil {
		return 0
	}
	return len(b.sorted)
}

func compareHashes(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) }
