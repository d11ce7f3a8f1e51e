package keypolicy

import "math/big"

// closeFactors runs Fermat's factorisation for some rounds: n = a² - b² = (a-b)(a+b), with a from the root of n upwards. It ends early
// only if the factors lie close together.
func closeFactors(n *big.Int, rounds int) bool {
	one := big.NewInt(1)
	a := new(big.Int).Sqrt(n)
	square := new(big.Int).Mul(a, a)
	if square.Cmp(n) == 0 {
		return true
	}
	a.Add(a, one)
	square.Mul(a, a)
	difference := square.Sub(square, n)
	step := new(big.Int).Lsh(a, 1)
	step.Add(step, one) // (a+1)² - a²
	two := big.NewInt(2)
	for range rounds {
		if isSquare(difference) {
			return true
		}
		difference.Add(difference, step)
		step.Add(step, two)
	}
	return false
}

// residuePrimes are odd primes whose product fits into a word. Modulo each of them about half of the numbers are squares, so that
// their remainders spare nearly all roots.
var residuePrimes = [...]uint64{3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47}

var (
	residueProduct = productOf(residuePrimes[:])
	residues       = squaresModulo(residuePrimes[:])
)

func productOf(primes []uint64) *big.Int {
	product := uint64(1)
	for _, prime := range primes {
		product *= prime
	}
	return new(big.Int).SetUint64(product)
}

// squaresModulo returns for each prime the squares modulo it, as bits of a word.
func squaresModulo(primes []uint64) []uint64 {
	out := make([]uint64, len(primes))
	for i, prime := range primes {
		for x := range prime {
			out[i] |= 1 << (x * x % prime)
		}
	}
	return out
}

func isSquare(n *big.Int) bool {
	// squares are 0, 1 or 4 modulo 8
	switch n.Bit(0) | n.Bit(1)<<1 | n.Bit(2)<<2 {
	case 0, 1, 4:
	default:
		return false
	}
	var quotient, remainder big.Int
	quotient.QuoRem(n, residueProduct, &remainder)
	word := remainder.Uint64()
	for i, prime := range residuePrimes {
		if residues[i]>>(word%prime)&1 == 0 {
			return false
		}
	}
	root := new(big.Int).Sqrt(n)
	return root.Mul(root, root).Cmp(n) == 0
}
