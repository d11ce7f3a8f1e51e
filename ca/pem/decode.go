package pem

import (
	"bytes"
	"fmt"
	"slices"
)

// Decode returns every block of text in order, or an error of type *Error and no block. Text around blocks is allowed as long as it is
// text and nothing in it looks like a boundary (RFC 7468 §2, §5.2). It runs in time and memory linear in len(text).
func Decode(text []byte, rules Rules) ([]Block, error) {
	maxBytes, maxBlocks := rules.MaxBytes, rules.MaxBlocks
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	if maxBlocks == 0 {
		maxBlocks = DefaultMaxBlocks
	}
	if len(text) > maxBytes {
		return nil, &Error{Rule: "max-bytes", Detail: fmt.Sprintf("the PEM text has %d bytes, more than the %d allowed", len(text), maxBytes)}
	}
	var blocks []Block
	in := lines{rest: text}
	for in.next() {
		if !hasPrefix(in.line, beginPrefix) {
			if err := checkText(in.line, in.number); err != nil {
				return nil, err
			}
			continue
		}
		if len(blocks) == maxBlocks {
			return nil, &Error{in.number, "max-blocks", fmt.Sprintf("there are more than the %d PEM blocks allowed", maxBlocks)}
		}
		block, err := decodeBlock(&in, rules.Labels)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		return nil, &Error{Rule: "no-block", Detail: "there is no PEM block in the text; one starts with a line -----BEGIN and the label (RFC 7468 §2)"}
	}
	return blocks, nil
}

// decodeBlock reads one block, of which in stands at the BEGIN line.
func decodeBlock(in *lines, labels []string) (Block, error) {
	begin := in.number
	label, ok := boundaryLabel(in.line, beginPrefix)
	if !ok {
		return Block{}, &Error{begin, "begin-line",
			"a line that starts with -----BEGIN has to be -----BEGIN, a space, the label, ----- and nothing else (RFC 7468 §3)"}
	}
	if !slices.Contains(labels, string(label)) {
		return Block{}, &Error{begin, "label", fmt.Sprintf("the label %s is not accepted here; expected %s", shown(label), choice(labels))}
	}
	b := body{begin: begin}
	// the next END bounds what there is to keep; without one the block ends in an error whatever it holds
	if end := bytes.Index(in.rest, []byte(endPrefix)); end >= 0 {
		b.encoded = make([]byte, 0, end)
	} else {
		b.discard = true
	}
	for in.next() {
		if hasPrefix(in.line, endPrefix) {
			return endBlock(in, &b, label)
		}
		if err := b.add(in.line, in.number); err != nil {
			return Block{}, err
		}
	}
	return Block{}, &Error{begin, "end-missing",
		fmt.Sprintf("the text ends before the block's END %s; the file may be cut short (RFC 7468 §3)", shown(label))}
}

// endBlock finishes the block whose body is b; in stands at its END line.
func endBlock(in *lines, b *body, label []byte) (Block, error) {
	endLabel, ok := boundaryLabel(in.line, endPrefix)
	if !ok {
		return Block{}, &Error{in.number, "end-line",
			"a line that starts with -----END has to be -----END, a space, the label, ----- and nothing else (RFC 7468 §3)"}
	}
	if !bytes.Equal(endLabel, label) {
		return Block{}, &Error{in.number, "end-label",
			fmt.Sprintf("END says %s, BEGIN on line %d said %s (RFC 7468 §3)", shown(endLabel), b.begin, shown(label))}
	}
	decoded, err := b.decode(in.number)
	if err != nil {
		return Block{}, err
	}
	return Block{Label: string(label), Bytes: decoded, Line: b.begin}, nil
}

// choice lists the labels that the caller of Decode asked for.
func choice(labels []string) string {
	if len(labels) == 0 {
		return "no PEM block at all"
	}
	var list []byte
	for i, label := range labels {
		if i > 0 {
			list = append(list, " or "...)
		}
		list = fmt.Appendf(list, "%q", label)
	}
	return string(list)
}
