package der

// tree is a BER element and all that it holds, in the order of the input.
type tree []node

type node struct {
	tag           byte
	parent        int // index in the tree; -1 for the root
	contents, end int // of the contents octets, for a primitive node
	length        int // of the contents octets in DER
}

// readTree reads the BER element at offset at, which has to end within ber[:limit], without recursion. It returns the offset
// after it. Strings cut into segments are refused: every place where one could stand has a primitive form, and readers differ.
func readTree(ber []byte, at, limit, maxElements int) (tree, int, *Error) {
	var t tree
	var stack [MaxDepth]struct {
		node       int
		end        int // for an indefinite length, how far it may reach
		indefinite bool
	}
	for depth := 0; ; {
		parent := -1
		if depth > 0 {
			top := &stack[depth-1] //nolint:gosec // depth is from 1 to MaxDepth
			closes := !top.indefinite && at == top.end
			if top.indefinite && isEndOfContents(ber, at, top.end) {
				at += 2
				closes = true
			}
			if closes {
				if depth--; depth == 0 {
					return t.measured(), at, nil
				}
				continue
			}
			parent, limit = top.node, top.end
		}
		if len(t) == maxElements {
			return nil, at, &Error{at, "", "the input has more elements than allowed"}
		}
		h, err := readHeader(ber, at, limit)
		switch {
		case err != nil:
			return nil, at, err
		case h.tag == 0:
			return nil, at, &Error{at, "§8.1.5", "end-of-contents octets stand in a definite length"}
		case h.universal() && h.constructed() && h.tag != tagSequence && h.tag != tagSet:
			return nil, at, &Error{at, "§10.2", "a string is cut into segments; it has to be primitive"}
		case h.indefinite && !h.constructed():
			return nil, at, &Error{at, "§8.1.3.2", "a primitive value has an indefinite length"}
		}
		t = append(t, node{tag: h.tag, parent: parent, contents: h.contents, end: h.end(), length: h.length})
		switch {
		case !h.constructed() && depth == 0:
			return t, h.end(), nil
		case !h.constructed():
			at = h.end()
		case depth == MaxDepth:
			return nil, at, &Error{at, "", "elements nest deeper than 16 levels"}
		default:
			stack[depth].node, stack[depth].end, stack[depth].indefinite = len(t)-1, h.end(), h.indefinite
			if h.indefinite {
				stack[depth].end = limit
			}
			depth++
			at = h.contents
		}
	}
}

// measured sets the DER lengths of constructed nodes, from the last to the first: children come after their parents.
func (t tree) measured() tree {
	for i := range t {
		if t[i].tag&0x20 != 0 {
			t[i].length = 0
		}
	}
	for i := len(t) - 1; i > 0; i-- {
		t[t[i].parent].length += 1 + lengthOctets(t[i].length) + t[i].length
	}
	return t
}

// append appends the tree in DER to dst; ber is what it was read from.
func (t tree) append(dst, ber []byte) []byte {
	for _, n := range t {
		dst = appendHeader(dst, n.tag, n.length)
		if n.tag&0x20 == 0 {
			dst = append(dst, ber[n.contents:n.end]...)
		}
	}
	return dst
}
