package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// The files of the token keys: the one that signs, and those that tokens are verified by.
const (
	signingKeyFile = "sa.key"
	publicKeysFile = "sa.pub"
)

// RotateTokenKey gives the control plane a new key for service account tokens, and restarts it, since an API server reads its keys once. Tokens by the keys from
// before stay good until DropOldTokenKeys.
func (c *Cluster) RotateTokenKey(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making a token key: %v", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("encoding a token key: %v", err)
	}
	old, err := os.ReadFile(filepath.Join(c.Dir, publicKeysFile))
	if err != nil {
		t.Fatalf("reading the token keys: %v", err)
	}
	c.Stop(t)
	c.write(t, signingKeyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	c.write(t, publicKeysFile, append(publicKeyPEM(t, &key.PublicKey), old...))
	c.StartAgain(t)
}

// DropOldTokenKeys ends every token that the present key has not signed, and restarts the control plane for it.
func (c *Cluster) DropOldTokenKeys(t testing.TB) {
	t.Helper()
	c.Stop(t)
	c.write(t, publicKeysFile, publicKeyPEM(t, &c.ServiceAccountKey(t).PublicKey))
	c.StartAgain(t)
}

// KeySet returns the public keys of service account tokens as the API server publishes them, a JWK set (RFC 7517 §5).
func (c *Cluster) KeySet(t testing.TB) []byte {
	t.Helper()
	set, err := c.Client.Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("reading the key set: %v", err)
	}
	return set
}

// write replaces a file of the stopped control plane.
func (c *Cluster) write(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, name), text, 0o600); err != nil {
		t.Fatalf("writing %s: %v", name, err)
	}
}

func publicKeyPEM(t testing.TB, key *ecdsa.PublicKey) []byte {
	t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatalf("encoding a token key: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
}
