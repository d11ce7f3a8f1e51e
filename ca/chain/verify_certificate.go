package chain

import (
	"crypto/rsa"
	"crypto/x509"
)

// checkCertificate applies the rules that hold for every certificate of a path, whatever stands around it. It decides once.
func (v *verification) checkCertificate(position int, m *member) *Error {
	if !m.checked {
		m.checked, m.refusal = true, v.decideCertificate(m)
	}
	if m.refusal == nil {
		return nil
	}
	refusal := *m.refusal
	refusal.Position = position
	return &refusal
}

func (v *verification) decideCertificate(m *member) *Error {
	certificate := m.certificate
	if err := m.facts(); err != nil {
		return refuse(0, m, "RFC 5280 §4.2", "an extension cannot be read: %v", err)
	}
	if !v.validAt(certificate) {
		return refuse(0, m, "RFC 5280 §6.1.3 (a)(2)", "it is valid from %s to %s; the time to verify for is %s", stamp(certificate.NotBefore),
			stamp(certificate.NotAfter), stamp(v.options.At))
	}
	if m.unprocessed != "" {
		return refuse(0, m, "RFC 5280 §4.2", "its critical extension %s is not processed here", bounded(m.unprocessed))
	}
	if refusal := v.checkKey(m); refusal != nil {
		return refusal
	}
	return v.checkConforming(m)
}

// maxRSABits bounds what a signature check may cost when the key policy is waived.
const maxRSABits = 16384

func (v *verification) checkKey(m *member) *Error {
	const rule = "RFC 5280 §4.1.2.7"
	public := m.certificate.PublicKey
	if key, ok := public.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return refuse(0, m, rule, "its RSA key has %d bits; at most %d are accepted", key.N.BitLen(), maxRSABits)
	}
	if v.options.AnyKey {
		return nil
	}
	if err := v.options.Keys.Check(public); err != nil {
		return refuse(0, m, rule, "its key is not accepted: %v", err)
	}
	return nil
}

// checkIssuer decides whether the last certificate of a path may have issued the one before it, and did: RFC 5280 §6.1.3 (a) to (c) and
// §6.1.4 (k) to (o). intermediates counts those below it that are not self-issued. Cheap rules come first.
func (v *verification) checkIssuer(path []*member, intermediates int) *Error {
	position := len(path)
	issuer, below := path[position-1], path[position-2]
	certificate := issuer.certificate
	if refusal := v.checkCertificate(position, issuer); refusal != nil {
		return refusal
	}
	switch {
	case certificate.Version != 3:
		return refuse(position, issuer, "RFC 5280 §6.1.4 (k)", "its version is %d; a certificate that issues others is version 3", certificate.Version)
	case !certificate.BasicConstraintsValid || !certificate.IsCA:
		return refuse(position, issuer, "RFC 5280 §6.1.4 (k)", "it signs certificates but is not a CA certificate")
	case (certificate.MaxPathLen > 0 || certificate.MaxPathLenZero) && intermediates > certificate.MaxPathLen:
		return refuse(position, issuer, "RFC 5280 §6.1.4 (l)", "its path length of %d does not allow %d intermediates below it", certificate.MaxPathLen,
			intermediates)
	case issuer.keyUsage && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return refuse(position, issuer, "RFC 5280 §6.1.4 (n)", "its key usage lacks keyCertSign")
	case v.options.Conforming && !identifiersFit(below.certificate, certificate):
		return refuse(position-1, below, "RFC 5280 §4.2.1.1", "its authority key identifier %s is not the issuer's subject key identifier %s",
			shownID(below.certificate.AuthorityKeyId), shownID(certificate.SubjectKeyId))
	}
	if refusal := v.checkSignature(position-1, below, issuer); refusal != nil {
		return refusal
	}
	return v.checkNames(path, position)
}
