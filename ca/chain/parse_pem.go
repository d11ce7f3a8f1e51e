package chain

import (
	"crypto/x509"
	"fmt"

	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/pem"
)

// labelCertificate is the label of RFC 7468 §5.1. X509 CERTIFICATE and X.509 CERTIFICATE, which it mentions, are not read.
const labelCertificate = "CERTIFICATE"

// PositionError says which certificate of an input was refused.
type PositionError struct {
	Position int    // counted from 1
	Line     int    // of the BEGIN boundary, counted from 1; zero if the input is not PEM
	Subject  string // at most a short part; empty if it could not be read or is empty
	Err      error  // a *ParseError or a *der.Error
}

// Error returns a sentence that names the certificate and what is wrong with it.
func (e *PositionError) Error() string {
	where := fmt.Sprintf("certificate %d", e.Position)
	switch {
	case e.Line > 0 && e.Subject != "":
		where += fmt.Sprintf(" (line %d, subject %q)", e.Line, e.Subject)
	case e.Line > 0:
		where += fmt.Sprintf(" (line %d)", e.Line)
	case e.Subject != "":
		where += fmt.Sprintf(" (subject %q)", e.Subject)
	}
	return where + ": " + e.Err.Error()
}

// Unwrap returns the error of the certificate.
func (e *PositionError) Unwrap() error { return e.Err }

// ParsePEM reads PEM text that holds certificates and nothing else, in order, each as ParseCertificate does. Any damaged block and any
// refused certificate refuses the whole text. Errors are of type *pem.Error or *PositionError.
func ParsePEM(text []byte) ([]*x509.Certificate, error) {
	certificates, _, err := parseText(text, false)
	return certificates, err
}

// ParseTolerant reads certificates as PEM text or one certificate as DER, and tolerates the BER that der.Normalize describes. It
// says whether anything was normalised, so that who handed it in can be told; what it returns holds DER only. Errors are of type
// *pem.Error or *PositionError.
func ParseTolerant(input []byte) (certificates []*x509.Certificate, normalised bool, err error) {
	// a SEQUENCE too long for the short form of a length, as every certificate is: text does not start with such octets
	if len(input) > 1 && input[0] == 0x30 && input[1] >= 0x80 {
		certificate, normalised, err := parseOne(input, 1, 0, true)
		if err != nil {
			return nil, false, err
		}
		return []*x509.Certificate{certificate}, normalised, nil
	}
	return parseText(input, true)
}

func parseText(text []byte, tolerant bool) ([]*x509.Certificate, bool, error) {
	blocks, err := pem.Decode(text, pem.Rules{Labels: []string{labelCertificate}})
	if err != nil {
		return nil, false, err
	}
	certificates := make([]*x509.Certificate, len(blocks))
	normalised := false
	for i, block := range blocks {
		certificate, changed, err := parseOne(block.Bytes, i+1, block.Line, tolerant)
		if err != nil {
			return nil, false, err
		}
		certificates[i] = certificate
		normalised = normalised || changed
	}
	return certificates, normalised, nil
}

// parseOne reads one certificate at a position of an input.
func parseOne(encoding []byte, position, line int, tolerant bool) (*x509.Certificate, bool, error) {
	normalised := false
	if tolerant {
		var err error
		if encoding, normalised, err = der.Normalize(encoding, der.Limits{}); err != nil {
			return nil, false, &PositionError{Position: position, Line: line, Err: err}
		}
	}
	certificate, err := ParseCertificate(encoding)
	if err != nil {
		return nil, false, &PositionError{Position: position, Line: line, Subject: subjectOf(encoding), Err: err}
	}
	return certificate, normalised, nil
}

// maxShownSubject is up to which size a subject is written as text for an error: that takes time quadratic in its attributes.
const maxShownSubject = 1024

// subjectOf returns the subject of a refused certificate for its error.
func subjectOf(encoding []byte) string {
	certificate, _ := Inspect(encoding)
	if certificate == nil || len(certificate.RawSubject) > maxShownSubject {
		return ""
	}
	return bounded(certificate.Subject.String())
}
