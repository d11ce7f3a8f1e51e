package keypolicy

import (
	"math/big"
	"math/bits"
)

// smallPrimesBelow bounds the primes that a modulus is divided by: 302 of them.
const smallPrimesBelow = 2000

// rocaBelow bounds the primes that the vulnerable generator's smallest primorial has as factors. Those of the larger key sizes are its
// multiples, so that the fingerprint is the same for all (Nemec et al., "The Return of Coppersmith's Attack", CCS 2017, §2.1).
const rocaBelow = 168

// smallPrimes is built once and never changed.
var smallPrimes = newSieve(smallPrimesBelow)

// sieve is a list of odd primes, in groups whose products fit into a word, so that a modulus is divided once a group.
type sieve struct {
	primes []uint64
	groups []group
	// powers holds, for each of the first primes, the powers of 65537 modulo it.
	powers []map[uint64]bool
}

type group struct {
	product *big.Int
	primes  []uint64
}

func newSieve(below uint64) *sieve {
	s := &sieve{}
	for candidate := uint64(3); candidate < below; candidate += 2 {
		if s.isPrime(candidate) {
			s.primes = append(s.primes, candidate)
		}
	}
	for start := 0; start < len(s.primes); {
		product, end := uint64(1), start
		for end < len(s.primes) {
			high, low := bits.Mul64(product, s.primes[end])
			if high != 0 {
				break
			}
			product = low
			end++
		}
		s.groups = append(s.groups, group{new(big.Int).SetUint64(product), s.primes[start:end]})
		start = end
	}
	for _, prime := range s.primes {
		if prime >= rocaBelow {
			break
		}
		powers := map[uint64]bool{}
		for power := uint64(1); !powers[power]; power = power * exponent % prime {
			powers[power] = true
		}
		s.powers = append(s.powers, powers)
	}
	return s
}

func (s *sieve) isPrime(candidate uint64) bool {
	for _, prime := range s.primes {
		if candidate%prime == 0 {
			return false
		}
	}
	return true
}

// remainders returns n modulo each of the primes.
func (s *sieve) remainders(n *big.Int) []uint64 {
	out := make([]uint64, 0, len(s.primes))
	var quotient, remainder big.Int
	for _, group := range s.groups {
		quotient.QuoRem(n, group.product, &remainder)
		word := remainder.Uint64()
		for _, prime := range group.primes {
			out = append(out, word%prime)
		}
	}
	return out
}

// divisor returns the first prime with remainder zero, or zero.
func (s *sieve) divisor(remainders []uint64) uint64 {
	for i, remainder := range remainders {
		if remainder == 0 {
			return s.primes[i]
		}
	}
	return 0
}

// roca tells whether the modulus has the fingerprint of CVE-2017-15361. The generator makes primes k·M + 65537^a mod M, with M a
// primorial, so that the modulus is a power of 65537 modulo each of M's factors. Of other moduli about one in 2²⁷ is.
func (s *sieve) roca(remainders []uint64) bool {
	for i, powers := range s.powers {
		if !powers[remainders[i]] {
			return false
		}
	}
	return true
}
