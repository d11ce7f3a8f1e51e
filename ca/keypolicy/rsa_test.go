package keypolicy_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// random returns an odd number of exactly so many bits, the two highest set, so that a product of two has twice as many.
func random(t testing.TB, bits int) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	if err != nil {
		t.Fatal(err)
	}
	n.SetBit(n, 0, 1).SetBit(n, bits-1, 1).SetBit(n, bits-2, 1)
	return n
}

// rough returns the first number from n upwards, in steps, that no prime below the bound divides. To the rules it is as good as a prime, and far
// cheaper to find.
func rough(n *big.Int, step, below int64) *big.Int {
	out := new(big.Int).Set(n)
	for divisibleBelow(out, below) {
		out.Add(out, big.NewInt(step))
	}
	return out
}

func divisibleBelow(n *big.Int, below int64) bool {
	for divisor := int64(2); divisor < below; divisor++ {
		if new(big.Int).Mod(n, big.NewInt(divisor)).Sign() == 0 {
			return true
		}
	}
	return false
}

func rsaKey(n *big.Int) *rsa.PublicKey { return &rsa.PublicKey{N: n, E: 65537} }

func TestRSASizes(t *testing.T) {
	for _, bits := range []int{512, 1023, 1024, 2040, 2047, 2049, 2056, 4095, 4104, 8192, 1 << 17} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
			n.Add(n, big.NewInt(1))
			wants(t, keypolicy.Default().Check(rsaKey(n)), fmt.Sprintf("RSA with %d bits is not allowed", bits))
		})
	}
	wants(t, keypolicy.Default().Check((*rsa.PublicKey)(nil)), "no modulus")
	wants(t, keypolicy.Default().Check(&rsa.PublicKey{E: 65537}), "no modulus")
	wants(t, keypolicy.Default().Check(rsaKey(big.NewInt(-7))), "no modulus")
}

func TestRSAExponents(t *testing.T) {
	good := newRSA(t, 2048)
	for _, e := range []int{-1, 0, 1, 2, 3, 17, 65535, 65536, 65539, 1<<31 - 1} {
		wants(t, keypolicy.Default().Check(&rsa.PublicKey{N: good.N, E: e}), fmt.Sprintf("the RSA exponent is %d,", e))
	}
}

// TestCheckModulus holds that a modulus of a size that is not certified is looked at all the same.
func TestCheckModulus(t *testing.T) {
	wants(t, keypolicy.CheckModulus(nil), "no modulus")
	wants(t, keypolicy.CheckModulus(big.NewInt(-7)), "no modulus")
	for _, bits := range []int{2049, 8192} {
		n := rough(random(t, bits), 2, 2000)
		if err := keypolicy.CheckModulus(n); err != nil {
			t.Errorf("%d bits: %v", bits, err)
		}
		wants(t, keypolicy.CheckModulus(new(big.Int).Mul(n, big.NewInt(7))), "divisible by 7")
		wants(t, keypolicy.CheckModulus(new(big.Int).Lsh(n, 1)), "even")
		wants(t, keypolicy.CheckModulus(new(big.Int).Mul(n, n)), "too close")
	}
}

func TestRSAEvenModulus(t *testing.T) {
	n := new(big.Int).Set(newRSA(t, 2048).N)
	wants(t, keypolicy.Default().Check(rsaKey(n.SetBit(n, 0, 0))), "even")
}

func TestRSASmallPrimes(t *testing.T) {
	for _, factor := range []int64{3, 5, 7, 167, 251, 257, 751, 997, 1009, 1999} {
		t.Run(fmt.Sprint(factor), func(t *testing.T) {
			n := random(t, 2048)
			n.Sub(n, new(big.Int).Mod(n, big.NewInt(2*factor)))
			n = rough(n.Add(n, big.NewInt(factor)), 2*factor, factor)
			wants(t, keypolicy.Default().Check(rsaKey(n)), fmt.Sprintf("divisible by %d ", factor))
		})
	}
}

// TestRSAROCA builds moduli as the vulnerable generator does: from numbers k·M + (65537^a mod M), with M the product of the first primes.
func TestRSAROCA(t *testing.T) {
	for _, test := range []struct{ bits, factors int }{{2048, 126}, {3072, 126}, {4096, 225}} {
		t.Run(fmt.Sprint(test.bits), func(t *testing.T) {
			primorial, count := big.NewInt(1), 0
			for candidate := int64(2); count < test.factors; candidate++ {
				if p := big.NewInt(candidate); p.ProbablyPrime(10) {
					primorial.Mul(primorial, p)
					count++
				}
			}
			n := new(big.Int)
			for n.BitLen() != test.bits {
				n.Mul(rocaFactor(t, primorial, test.bits/2), rocaFactor(t, primorial, test.bits/2))
			}
			wants(t, keypolicy.Default().Check(rsaKey(n)), "CVE-2017-15361")
		})
	}
}

func rocaFactor(t testing.TB, primorial *big.Int, bits int) *big.Int {
	t.Helper()
	a := random(t, primorial.BitLen())
	power := a.Exp(big.NewInt(65537), a, primorial)
	for {
		k := random(t, bits)
		k.Div(k, primorial)
		p := k.Mul(k, primorial)
		p.Add(p, power)
		if p.BitLen() == bits && !divisibleBelow(p, 2000) {
			return p
		}
	}
}

func TestRSACloseFactors(t *testing.T) {
	for _, bits := range []int{2048, 4096} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			p := rough(random(t, bits/2), 2, 2000)
			neighbour := rough(new(big.Int).Add(p, big.NewInt(2)), 2, 2000)
			wants(t, keypolicy.Default().Check(rsaKey(new(big.Int).Mul(p, p))), "too close")
			wants(t, keypolicy.Default().Check(rsaKey(new(big.Int).Mul(p, neighbour))), "too close")
			// apart by a little less than the fourth root of n times a small factor: found only after some rounds
			distance := new(big.Int).Lsh(big.NewInt(9), uint(bits/4))
			distant := rough(new(big.Int).Add(p, distance), 2, 2000)
			key := rsaKey(new(big.Int).Mul(p, distant))
			wants(t, keypolicy.Default().Check(key), "too close")
			few, err := keypolicy.New(keypolicy.Config{FermatRounds: 1})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, few.Check(key), "")
		})
	}
}

// TestRSAIsBounded is far above what is measured, and far below what an unbounded factorisation takes.
func TestRSAIsBounded(t *testing.T) {
	n := new(big.Int).Mul(rough(random(t, 2048), 2, 2000), rough(random(t, 2048), 2, 2000))
	policy, err := keypolicy.New(keypolicy.Config{FermatRounds: 1000})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	wants(t, policy.Check(rsaKey(n)), "")
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
}
