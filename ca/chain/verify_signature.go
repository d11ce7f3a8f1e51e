package chain

import (
	"crypto/x509"
	"encoding/hex"
	"errors"
)

// signatureOf is something that is signed, a *member or a *CRL, and the key that may have done it. A key that stands in many certificates, as
// after cross-signing, is tried once.
type signatureOf struct {
	signed any
	key    string
}

const ruleSignature = "RFC 5280 §6.1.3 (a)(1)"

// checkSignature checks that issuer's key signed a certificate, by an algorithm that is accepted.
func (v *verification) checkSignature(position int, m, issuer *member) *Error {
	certificate := m.certificate
	if !acceptedAlgorithm(certificate.SignatureAlgorithm) {
		return refuse(position, m, "RFC 5280 §4.1.1.2", "its signature algorithm %s is not accepted; SHA-256 or better is", certificate.SignatureAlgorithm)
	}
	err := v.signature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature, m, issuer)
	switch {
	case v.work.spent:
		return v.work.exhausted(position, m)
	case err != nil:
		return refuse(position, m, ruleSignature, "its signature is not by %s: %v", bounded(issuer.certificate.Subject.String()), err)
	}
	return nil
}

var errSpent = errors.New("too many signatures to check")

// signature checks one signature, once.
func (v *verification) signature(algorithm x509.SignatureAlgorithm, message, signature []byte, signed any, issuer *member) error {
	key := signatureOf{signed, string(issuer.certificate.RawSubjectPublicKeyInfo)}
	if err, known := v.signed[key]; known {
		return err
	}
	if !v.work.spend(&v.work.signatures, 1) {
		return errSpent
	}
	err := issuer.certificate.CheckSignature(algorithm, message, signature)
	v.signed[key] = err
	return err
}

// acceptedAlgorithm refuses MD2, MD5 and SHA-1 (RFC 6151, RFC 9155), DSA and what crypto/x509 does not know.
func acceptedAlgorithm(algorithm x509.SignatureAlgorithm) bool {
	switch algorithm {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519:
		return true
	}
	return false
}

// shownID returns a key identifier for an error.
func shownID(id []byte) string { return bounded(hex.EncodeToString(id)) }
