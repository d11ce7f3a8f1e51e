// Package csr turns the untrusted bytes of a PKCS #10 certificate request (RFC 2986) into a checked *Request.
//
// Parse is the only way to get a Request. It reads one PEM block or strict DER of at most 16 KiB, holds the public key against the
// key policy before it spends anything on the signature, proves that the requester has the private key, and reads every name and
// every extension that is asked for, raw, so that none goes unseen.
//
// The package never decides whether a requester may have a name, never copies an extension or a subject to a certificate, never
// accepts BER, and never reads or shows a challenge password. A request that breaks a rule is refused, not repaired. All its errors are
// errkind.Invalid: the same bytes will fail again.
package csr

import (
	"crypto/x509"
	"encoding/asn1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// Limits on the input, checked before it is decoded.
const (
	// MaxDER is the longest DER that is read. An RSA-4096 request with a hundred names of 60 octets needs half of it.
	MaxDER = 16 << 10
	// MaxPEM is the longest PEM text that is read: MaxDER in base64, with line ends and some text around it.
	MaxPEM = 24 << 10
)

// defaultMaxNames is the cap on subject alternative names where the rules set none.
const defaultMaxNames = 100

// Rules say what Parse lets through beyond what no one may ask. The zero Rules are strict, and each switch widens them. What they let
// through is reported by the Request and stays for the issuing policy to grant: Rules never put anything into a certificate.
type Rules struct {
	// Keys is the policy on public keys. The zero Policy is keypolicy.Default().
	Keys keypolicy.Policy
	// MaxNames caps the subject alternative names, counted raw. Zero means 100.
	MaxNames int
	// Emails lets rfc822Name subject alternative names through.
	Emails bool
	// Wildcards lets dNSNames through whose leftmost label is "*" and that have at least two more.
	Wildcards bool
	// CA lets requests for a CA certificate through: cA TRUE, keyCertSign or cRLSign. Request.RequestsCA tells them.
	CA bool
	// SystemSubjects lets subject attributes that begin with "system:" through, which Kubernetes takes for its own users
	// and groups. "system:masters" is refused all the same.
	SystemSubjects bool
	// StrayCommonName lets a commonName through that is a host name, or an IP address, which the subject alternative
	// names leave out although they list others of its kind.
	StrayCommonName bool
	// EncodedDefaults lets extensions through that spell out critical FALSE or cA FALSE, against X.690 §11.5, as old
	// releases of certmonger do.
	EncodedDefaults bool
	// Extensions lists extensions that may be asked for, and are ignored, beyond those that Parse knows: subjectAltName, keyUsage,
	// extKeyUsage, basicConstraints, subjectKeyIdentifier and authorityKeyIdentifier.
	Extensions []asn1.ObjectIdentifier

	// verify stands in for the signature check in tests that count calls.
	verify verifier
}

func (r *Rules) maxNames() int {
	if r.MaxNames > 0 {
		return r.MaxNames
	}
	return defaultMaxNames
}

// Parse reads one certificate request, as DER or as PEM with the label CERTIFICATE REQUEST or NEW CERTIFICATE REQUEST (RFC 7468 §7), and
// checks it against the rules. It works in bounded time: what costs most is one signature check, and for RSA the key policy.
//
// A request for a CA certificate, or for a subject that begins with "system:", is refused unless the rules let it through.
// subjectKeyIdentifier and authorityKeyIdentifier may be asked for and are ignored, since the issuer computes both. The attributes may
// be empty or left out, an extension request may be empty, and a subject may be empty or hold an empty organization (Istio agents send
// that). Attributes other than the extension request are ignored.
func Parse(input []byte, rules Rules) (*Request, error) {
	der, err := decode(input)
	if err != nil {
		return nil, err
	}
	return parseDER(der, &rules)
}

// parseDER orders the checks by cost, the key's policy before all that depends on the requester's wishes and the signature last.
func parseDER(der []byte, rules *Rules) (*Request, error) {
	outline, err := readOutline(der)
	if err != nil {
		return nil, err
	}
	request := &Request{der: der, spki: outline.spki, rawSubject: outline.subject}
	if request.publicKey, err = readPublicKey(outline.spki); err != nil {
		return nil, err
	}
	if err := rules.Keys.Check(request.publicKey); err != nil {
		return nil, refused(errkind.KeyRefused, "%v", err)
	}
	algorithm, err := readAlgorithm(outline.algorithm, request.publicKey)
	if err != nil {
		return nil, err
	}
	if err := request.readSubject(outline.subject, rules); err != nil {
		return nil, err
	}
	if err := request.readAttributes(outline.attributes, rules); err != nil {
		return nil, err
	}
	if err := request.checkCommonName(rules); err != nil {
		return nil, err
	}
	verify := rules.verify
	if verify == nil {
		verify = verifySignature
	}
	if err := verify(request.publicKey, algorithm, outline.info, outline.signature); err != nil {
		return nil, errkind.Wrap(errkind.Invalid, err, "certificate request: the signature does not verify with the request's own public key, "+
			"which proves possession of the private key (RFC 2986 §3); sign the request with the key that it names").Because(errkind.BadCSR)
	}
	return request, nil
}

// verifier checks a signature over message.
type verifier func(public any, algorithm x509.SignatureAlgorithm, message, signature []byte) error

// invalid returns the refusal of a request that cannot be read, or breaks a rule for all requests.
func invalid(format string, args ...any) error {
	return refused(errkind.BadCSR, format, args...)
}

// refused returns an error that is the requester's fault.
func refused(reason errkind.Reason, format string, args ...any) error {
	return errkind.New(errkind.Invalid, "certificate request: "+format, args...).Because(reason)
}
