// Package pem reads and writes the textual encodings of RFC 7468, strictly.
//
// The reader takes the standard grammar of RFC 7468 §3 (Figure 1) and refuses the whole text if any block in it is damaged: it never
// skips a block, since a certificate that silently vanishes from a chain makes its neighbour the leaf. Headers, stray boundaries,
// labels that were not asked for and base64 with more than one reading are errors. The writer emits the canonical form.
//
// The package never looks inside a block, never repairs anything, and shows of the caller's text at most a short quoted label.
package pem

import "fmt"

// The bounds that zero values in Rules stand for.
const (
	DefaultMaxBytes  = 1 << 20
	DefaultMaxBlocks = 100
)

// Block is one decoded block.
type Block struct {
	Label string
	Bytes []byte // never empty
	Line  int    // of the BEGIN boundary, counted from 1
}

// Rules says what Decode accepts.
type Rules struct {
	// Labels are the allowed labels, matched exactly; any other label is an error. With no labels every block is one.
	Labels []string
	// MaxBytes bounds the text, MaxBlocks the blocks in it. Zero means DefaultMaxBytes and DefaultMaxBlocks.
	MaxBytes, MaxBlocks int
}

// Error says which rule a text broke and where.
type Error struct {
	Line   int    // counted from 1; zero if the whole text is meant
	Rule   string // a short and stable identifier, as "end-label"
	Detail string // a sentence that names the section and holds nothing of the text but a quoted label
}

// Error returns the line and the sentence.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Detail
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Detail)
}

// maxShownLabel is how many bytes of a label an error shows: enough for every label in use, too few for a key pasted there.
const maxShownLabel = 32

// shown quotes a label for an error.
func shown(label []byte) string {
	if len(label) > maxShownLabel {
		return fmt.Sprintf("%+q and %d bytes more", label[:maxShownLabel], len(label)-maxShownLabel)
	}
	return fmt.Sprintf("%+q", label)
}
