package keypolicy_test

import (
	"crypto/ed25519"
	"math/big"
	"slices"
	"testing"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// edwards is arithmetic on edwards25519 by the affine formulas of RFC 8032 §5.1.4, slow and independent of the package.
type edwards struct{ prime, d *big.Int }

func newEdwards() edwards {
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d := new(big.Int).ModInverse(big.NewInt(121666), prime)
	d.Mul(d, big.NewInt(-121665))
	return edwards{prime, d.Mod(d, prime)}
}

type edPoint struct{ x, y *big.Int }

func (e edwards) add(p, q edPoint) edPoint {
	mul := func(a, b *big.Int) *big.Int { c := new(big.Int).Mul(a, b); return c.Mod(c, e.prime) }
	sum := func(a, b *big.Int) *big.Int { c := new(big.Int).Add(a, b); return c.Mod(c, e.prime) }
	product := mul(e.d, mul(mul(p.x, q.x), mul(p.y, q.y)))
	one := big.NewInt(1)
	inverse := func(a *big.Int) *big.Int { return new(big.Int).ModInverse(new(big.Int).Mod(a, e.prime), e.prime) }
	return edPoint{
		mul(sum(mul(p.x, q.y), mul(p.y, q.x)), inverse(new(big.Int).Add(one, product))),
		mul(sum(mul(p.y, q.y), mul(p.x, q.x)), inverse(new(big.Int).Sub(one, product))),
	}
}

// lift returns a point with this y, if there is one.
func (e edwards) lift(y *big.Int) (edPoint, bool) {
	square := new(big.Int).Mul(y, y)
	numerator := new(big.Int).Sub(square, big.NewInt(1))
	denominator := new(big.Int).Mul(square, e.d)
	denominator.Add(denominator, big.NewInt(1))
	quotient := numerator.Mul(numerator, denominator.ModInverse(denominator.Mod(denominator, e.prime), e.prime))
	x := new(big.Int).ModSqrt(quotient.Mod(quotient, e.prime), e.prime)
	return edPoint{x, y}, x != nil
}

func encodeY(y *big.Int, sign byte) ed25519.PublicKey {
	out := y.FillBytes(make([]byte, 32))
	slices.Reverse(out)
	out[31] |= sign << 7
	return out
}

func TestEd25519SmallOrder(t *testing.T) {
	curve := newEdwards()
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.SetBit(order, 252, 1)
	// the multiples by the prime order of any point are the small subgroup; one of a few points generates it
	seen := map[string]bool{}
	for y := int64(2); len(seen) < 5; y++ {
		point, ok := curve.lift(big.NewInt(y))
		if !ok {
			wants(t, keypolicy.Default().Check(encodeY(big.NewInt(y), 0)), "not a point")
			continue
		}
		wants(t, keypolicy.Default().Check(encodeY(big.NewInt(y), 0)), "")
		small := edPoint{big.NewInt(0), big.NewInt(1)}
		for i := order.BitLen() - 1; i >= 0; i-- {
			small = curve.add(small, small)
			if order.Bit(i) == 1 {
				small = curve.add(small, point)
			}
		}
		for range 8 {
			seen[small.y.String()] = true
			for sign := range byte(2) {
				wants(t, keypolicy.Default().Check(encodeY(small.y, sign)), "small order")
			}
			small = curve.add(small, small)
		}
	}
}

func TestEd25519Encodings(t *testing.T) {
	prime := newEdwards().prime
	for offset := range int64(19) { // y of p and above, up to 2²⁵⁵-1
		wants(t, keypolicy.Default().Check(encodeY(new(big.Int).Add(prime, big.NewInt(offset)), 0)), "not a point")
	}
	wants(t, keypolicy.Default().Check(ed25519.PublicKey(nil)), "32 octets")
	wants(t, keypolicy.Default().Check(make(ed25519.PublicKey, 31)), "32 octets")
	wants(t, keypolicy.Default().Check(make(ed25519.PublicKey, 33)), "32 octets")
}
