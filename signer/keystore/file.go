// Package keystore finds the private keys of a signing backend and hands them out as crypto.Signer.
//
// This version knows files. A key is never logged, never written with a mode wider than 0600 and never overwritten.
package keystore

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/internal/regularfile"
)

// fileMode is the mode of new key files.
const fileMode = 0o600

// maxKeyFile bounds what is read of a key file; an RSA-4096 key in PEM is a quarter of it.
const maxKeyFile = 16 << 10

// LoadFile reads a private key: one PEM block with PKCS #8 (RFC 5958), SEC 1 (RFC 5915) or PKCS #1 (RFC 8017 Appendix A.1.2) contents, of
// at most 16 KiB. A file that every user of the machine may read, write or execute is refused; one that its group may read is not, since that
// is how Kubernetes mounts Secrets. Errors name the file and hold nothing of its text.
func LoadFile(path string) (crypto.Signer, error) {
	file, err := regularfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf("key %s has mode %04o, so that every user of this machine can reach it; run: chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("key %s is longer than %d bytes: not a private key", path, maxKeyFile)
	}
	key, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", path, err)
	}
	return key, nil
}

// Parse reads one PEM private key. Its errors hold nothing of the text but a short label.
func Parse(text []byte) (crypto.Signer, error) {
	blocks, err := pem.Decode(text, pem.Rules{Labels: []string{"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"}, MaxBlocks: 1})
	switch {
	case err != nil && bytes.Contains(text, []byte("ENCRYPTED")):
		return nil, errors.New("the key is encrypted, and nobody is there to type its password; decrypt it with: openssl pkey -in FILE -out NEW")
	case err != nil && bytes.Contains(text, []byte("EC PARAMETERS")):
		return nil, errors.New("curve parameters stand before the key; write it anew with: openssl pkey -in FILE -out NEW")
	case err != nil:
		return nil, err
	}
	var key any
	switch blocks[0].Label {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(blocks[0].Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(blocks[0].Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(blocks[0].Bytes)
	}
	if err != nil {
		return nil, errors.New("it does not parse as the private key that its label says")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// Encode returns a key as PKCS #8 in PEM.
func Encode(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	return pem.Encode("PRIVATE KEY", der), nil
}

// Create writes a key to a new file with mode 0600, whatever the umask, durably. It refuses a path where something stands. On an error
// nothing is left there.
func Create(path string, key crypto.Signer) error {
	text, err := Encode(key)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	// the umask can only have taken bits away
	err = errors.Join(file.Chmod(fileMode), write(file, text), file.Close())
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("writing the key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

func write(file *os.File, text []byte) error {
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
