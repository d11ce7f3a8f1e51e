package keypolicy_test

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // a kind of key that must be refused
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

func newECDSA(t testing.TB, curve elliptic.Curve) *ecdsa.PublicKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

func newRSA(t testing.TB, bits int) *rsa.PublicKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

func newEd25519(t testing.TB) ed25519.PublicKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// wants fails the test unless err is nil and fragment empty, or err holds the fragment.
func wants(t *testing.T, err error, fragment string) {
	t.Helper()
	switch {
	case fragment == "" && err != nil:
		t.Errorf("refused: %v", err)
	case fragment != "" && err == nil:
		t.Errorf("accepted; want an error with %q", fragment)
	case fragment != "" && !strings.Contains(err.Error(), fragment):
		t.Errorf("error %q does not say %q", err, fragment)
	}
}

func TestDefaultTakesEveryKnownKind(t *testing.T) {
	keys := map[string]crypto.PublicKey{
		"P-256": newECDSA(t, elliptic.P256()), "P-384": newECDSA(t, elliptic.P384()), "P-521": newECDSA(t, elliptic.P521()),
		"Ed25519": newEd25519(t), "RSA-2048": newRSA(t, 2048), "RSA-3072": newRSA(t, 3072),
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			wants(t, keypolicy.Default().Check(key), "")
			wants(t, keypolicy.Policy{}.Check(key), "")
		})
	}
}

func TestDefaultRefusesOtherKinds(t *testing.T) {
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := newECDSA(t, elliptic.P256())
	for name, key := range map[string]crypto.PublicKey{
		"P-224":            newECDSA(t, elliptic.P224()),
		"X25519":           x25519.PublicKey(),
		"DSA":              &dsa.PublicKey{},
		"nil":              nil,
		"ECDSA by value":   *good,
		"private key":      ed25519.NewKeyFromSeed(make([]byte, 32)),
		"curve of its own": &ecdsa.PublicKey{Curve: impostor{elliptic.P256()}, X: good.X, Y: good.Y}, //nolint:staticcheck // SA1019: to build a bad key
	} {
		t.Run(name, func(t *testing.T) { wants(t, keypolicy.Default().Check(key), "use P-256, P-384") })
	}
}

// impostor is a curve that calls itself P-256.
type impostor struct{ elliptic.Curve }

func TestRefusesBrokenPoints(t *testing.T) {
	good := newECDSA(t, elliptic.P256())
	point := func(x, y *big.Int) *ecdsa.PublicKey {
		return &ecdsa.PublicKey{Curve: elliptic.P256(), X: x, Y: y} //nolint:staticcheck // SA1019: to build a bad key
	}
	x, y := good.X, good.Y //nolint:staticcheck // SA1019: to build a bad key
	prime := elliptic.P256().Params().P
	for name, key := range map[string]*ecdsa.PublicKey{
		"off the curve":    point(x, new(big.Int).Xor(y, big.NewInt(1))),
		"at infinity":      point(new(big.Int), new(big.Int)),
		"out of range":     point(new(big.Int).Add(x, prime), y),
		"negative":         point(new(big.Int).Neg(x), y),
		"too large by far": point(new(big.Int).Lsh(x, 4096), y),
	} {
		t.Run(name, func(t *testing.T) { wants(t, keypolicy.Default().Check(key), "not on the curve") })
	}
	wants(t, keypolicy.Default().Check((*ecdsa.PublicKey)(nil)), "empty")
	wants(t, keypolicy.Default().Check(&ecdsa.PublicKey{}), "empty")
	wants(t, keypolicy.Default().Check(&ecdsa.PublicKey{Curve: elliptic.P256()}), "empty")
}

func TestAllowNarrows(t *testing.T) {
	policy, err := keypolicy.New(keypolicy.Config{Allow: []keypolicy.Kind{keypolicy.P384, keypolicy.RSA3072}})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, policy.Check(newECDSA(t, elliptic.P384())), "")
	wants(t, policy.Check(newRSA(t, 3072)), "")
	const refusal = "not allowed by the key policy; use P-384, RSA-3072"
	for name, key := range map[string]crypto.PublicKey{
		"P-256": newECDSA(t, elliptic.P256()), "P-521": newECDSA(t, elliptic.P521()), "Ed25519": newEd25519(t), "RSA-2048": newRSA(t, 2048),
	} {
		t.Run(name, func(t *testing.T) { wants(t, policy.Check(key), refusal) })
	}
}

func TestNewRefusesBadConfig(t *testing.T) {
	for fragment, config := range map[string]keypolicy.Config{
		`unknown kind of key "RSA-1024"; the kinds are P-256`: {Allow: []keypolicy.Kind{"RSA-1024"}},
		"fermatRounds: -1": {FermatRounds: -1},
		"fermatRounds: 1001 is not between 1 and 1000": {FermatRounds: 1001},
	} {
		_, err := keypolicy.New(config)
		wants(t, err, fragment)
	}
}

func TestBlockedGetsTheHashOfTheSPKI(t *testing.T) {
	for name, key := range map[string]crypto.PublicKey{
		"P-256": newECDSA(t, elliptic.P256()), "Ed25519": newEd25519(t), "RSA-2048": newRSA(t, 2048),
	} {
		t.Run(name, func(t *testing.T) {
			spki, err := x509.MarshalPKIXPublicKey(key)
			if err != nil {
				t.Fatal(err)
			}
			want := sha256.Sum256(spki)
			policy, err := keypolicy.New(keypolicy.Config{Blocked: func(hash [32]byte) bool { return hash == want }})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, policy.Check(key), "compromised")
			wants(t, policy.Check(newECDSA(t, elliptic.P256())), "")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, bench := range []struct {
		name string
		key  crypto.PublicKey
	}{
		{"P-256", newECDSA(b, elliptic.P256())}, {"P-384", newECDSA(b, elliptic.P384())}, {"P-521", newECDSA(b, elliptic.P521())},
		{"Ed25519", newEd25519(b)}, {"RSA-2048", newRSA(b, 2048)}, {"RSA-4096", newRSA(b, 4096)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := keypolicy.Default().Check(bench.key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
