package chain

import "unicode/utf8"

// The parameters of Punycode (RFC 3492 §5).
const (
	punycodeBase = 36
	punycodeTMin = 1
	punycodeTMax = 26
	punycodeSkew = 38
	punycodeDamp = 700
)

// isPunycode tells whether the letters after xn-- decode to code points of which at least one is not ASCII (RFC 3492 §6.2). Which code
// points IDNA allows is not judged.
func isPunycode(encoded []byte) bool {
	basic := 0
	for i, c := range encoded {
		if c == '-' {
			basic = i
		}
	}
	count, at := basic, basic
	if basic > 0 {
		at++
	}
	n, bias := 128, 72
	for i := 0; at < len(encoded); count++ {
		old, weight := i, 1
		for k := punycodeBase; ; k += punycodeBase {
			if at == len(encoded) {
				return false
			}
			digit, ok := punycodeDigit(encoded[at])
			at++
			if !ok || digit > (utf8.MaxRune*maxLabel-i)/weight {
				return false
			}
			i += digit * weight
			threshold := min(max(k-bias, punycodeTMin), punycodeTMax)
			if digit < threshold {
				break
			}
			weight *= punycodeBase - threshold
		}
		bias = punycodeAdapt(i-old, count+1, old == 0)
		n += i / (count + 1)
		if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) { //nolint:gosec // at most MaxRune
			return false
		}
		i = i%(count+1) + 1
	}
	return count > basic
}

func punycodeDigit(c byte) (int, bool) {
	switch {
	case isLetter(c):
		return int(c | 0x20 - 'a'), true
	case isDecimal(c):
		return int(c-'0') + 26, true
	}
	return 0, false
}

// punycodeAdapt is the bias adaptation of RFC 3492 §6.1.
func punycodeAdapt(delta, points int, first bool) int {
	if first {
		delta /= punycodeDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (punycodeBase-punycodeTMin)*punycodeTMax/2; k += punycodeBase {
		delta /= punycodeBase - punycodeTMin
	}
	return k + (punycodeBase-punycodeTMin+1)*delta/(delta+punycodeSkew)
}
