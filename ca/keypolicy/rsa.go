package keypolicy

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
)

// exponent is the only public exponent that is accepted (CA/Browser Forum BR §6.1.6 asks for 2¹⁶+1 to 2²⁵⁶-1; every generator in use
// makes this one, and small ones have broken padding checks more than once).
const exponent = 65537

// checkRSA takes the rules in the order of their cost. None of them proves that a modulus is good; each finds one known way of being bad.
func (p Policy) checkRSA(key *rsa.PublicKey) error {
	if key == nil || key.N == nil || key.N.Sign() <= 0 {
		return errors.New("public key: the RSA key has no modulus")
	}
	if err := p.checkSize(key.N.BitLen()); err != nil {
		return err
	}
	if key.E != exponent {
		return fmt.Errorf("public key: the RSA exponent is %d, and only %d is certified (CA/Browser Forum BR §6.1.6); generate a new key",
			key.E, exponent)
	}
	rounds := p.fermatRounds
	if rounds == 0 {
		rounds = defaultFermatRounds
	}
	return checkModulus(key.N, rounds)
}

// CheckModulus returns nil unless an RSA modulus, of whatever size, shows one of the known ways of being bad, and otherwise a sentence that says which. It
// is for keys that are not certified but relied on: those of an issuer of tokens.
func CheckModulus(n *big.Int) error {
	if n == nil || n.Sign() <= 0 {
		return errors.New("public key: the RSA key has no modulus")
	}
	return checkModulus(n, defaultFermatRounds)
}

func checkModulus(n *big.Int, rounds int) error {
	if n.Bit(0) == 0 {
		return errors.New("public key: the RSA modulus is even, hence no product of two large primes; generate a new key")
	}
	remainders := smallPrimes.remainders(n)
	if factor := smallPrimes.divisor(remainders); factor != 0 {
		return fmt.Errorf("public key: the RSA modulus is divisible by %d (NIST SP 800-89 §5.3.3); generate a new key", factor)
	}
	if smallPrimes.roca(remainders) {
		return errors.New("public key: the RSA modulus has the ROCA fingerprint (CVE-2017-15361), so that it can be factored; " +
			"generate the key with another library or device")
	}
	if closeFactors(n, rounds) {
		return errors.New("public key: the RSA modulus is the product of two primes that are too close (FIPS 186-5 §A.1.1, CVE-2022-26320); " +
			"generate the key with another library or device")
	}
	return nil
}

func (p Policy) checkSize(bits int) error {
	switch bits {
	case 2048:
		return p.require(RSA2048)
	case 3072:
		return p.require(RSA3072)
	case 4096:
		return p.require(RSA4096)
	default:
		return p.refuse(fmt.Sprintf("RSA with %d bits", bits))
	}
}
