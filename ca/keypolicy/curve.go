package keypolicy

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"errors"
	"math/big"
	"slices"
)

func (p Policy) checkECDSA(key *ecdsa.PublicKey) error {
	if key == nil || key.Curve == nil {
		return errors.New("public key: the ECDSA key is empty")
	}
	var kind Kind
	// compared by identity: a curve of somebody's own making may call itself P-256
	switch key.Curve {
	case elliptic.P256():
		kind = P256
	case elliptic.P384():
		kind = P384
	case elliptic.P521():
		kind = P521
	default:
		return p.refuse("ECDSA on this curve")
	}
	if err := p.require(kind); err != nil {
		return err
	}
	if key.X == nil || key.Y == nil { //nolint:staticcheck // SA1019: Bytes would panic
		return errors.New("public key: the ECDSA key is empty")
	}
	// Bytes refuses coordinates that are out of range, the point at infinity and points that are not on the curve (NIST SP 800-56A §5.6.2.3.3)
	if _, err := key.Bytes(); err != nil {
		return errors.New("public key: its point is not on the curve " + string(kind) + " (RFC 5480 §2.2); generate a new key")
	}
	return nil
}

// The field prime of edwards25519, 2²⁵⁵-19, its constant d (RFC 8032 §5.1), and the y coordinates of its points of order one, two, four and
// eight.
var (
	edwardsPrime = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	edwardsD     = mustHex("52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3")
	orderEight   = mustHex("05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826")
	smallOrder   = []*big.Int{
		big.NewInt(1), new(big.Int).Sub(edwardsPrime, big.NewInt(1)), new(big.Int),
		orderEight, new(big.Int).Sub(edwardsPrime, orderEight),
	}
)

func mustHex(text string) *big.Int {
	n, _ := new(big.Int).SetString(text, 16)
	return n
}

// checkEd25519 refuses what is not the canonical encoding of a point (RFC 8032 §5.1.3), which crypto/ed25519 lets pass in part, and
// points of small order: for these anybody can make signatures, so that one proves no possession.
func (p Policy) checkEd25519(key ed25519.PublicKey) error {
	if len(key) != ed25519.PublicKeySize {
		return errors.New("public key: an Ed25519 key is 32 octets (RFC 8032 §5.1.5)")
	}
	if err := p.require(Ed25519); err != nil {
		return err
	}
	encoded := slices.Clone([]byte(key))
	slices.Reverse(encoded)
	encoded[0] &= 0x7f // the sign of x
	y := new(big.Int).SetBytes(encoded)
	if y.Cmp(edwardsPrime) >= 0 || !onEdwards(y) {
		return errors.New("public key: its octets are not a point of edwards25519 (RFC 8032 §5.1.3); generate a new key")
	}
	if slices.ContainsFunc(smallOrder, func(small *big.Int) bool { return small.Cmp(y) == 0 }) {
		return errors.New("public key: its point has a small order, so that signatures under it prove nothing (RFC 8032 §5.1.7); generate a new key")
	}
	return nil
}

// onEdwards tells whether some x goes with y: whether (y²-1)/(dy²+1) is a square. The quotient is one exactly if the product is, and
// the denominator is never zero, as -1/d is no square.
func onEdwards(y *big.Int) bool {
	one := big.NewInt(1)
	square := new(big.Int).Mul(y, y)
	numerator := new(big.Int).Sub(square, one)
	denominator := new(big.Int).Mul(square, edwardsD)
	denominator.Add(denominator, one)
	product := numerator.Mul(numerator, denominator)
	return big.Jacobi(product.Mod(product, edwardsPrime), edwardsPrime) >= 0
}
