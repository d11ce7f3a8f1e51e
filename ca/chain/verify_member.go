package chain

import (
	"crypto/x509"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// member is a certificate that may stand in a path, with what path validation needs of it beyond crypto/x509's fields. It reads its
// extensions itself: crypto/x509 drops name constraints and names of kinds that it does not know.
type member struct {
	certificate *x509.Certificate
	anchor      bool

	subject, issuer distinguishedName

	// read by facts, which has to be called before
	read        bool
	unreadable  error
	keyUsage    bool   // there is a key usage extension
	extKeyUsage bool   // there is an extended key usage extension
	unprocessed string // a critical extension that is not processed here
	names       []generalName
	constraints *nameConstraints
	policies    policyFacts
	points      []distributionPoint

	// what checkCertificate found, its position aside
	checked bool
	refusal *Error
}

// newMember reads the names that paths are built by. What else there is waits until the certificate is wanted: most of a pool never is.
func newMember(certificate *x509.Certificate, anchor bool) (*member, error) {
	subject, err := readName(certificate.RawSubject)
	if err != nil {
		return nil, err
	}
	issuer, err := readName(certificate.RawIssuer)
	if err != nil {
		return nil, err
	}
	return &member{certificate: certificate, anchor: anchor, subject: subject, issuer: issuer}, nil
}

// selfIssued tells whether issuer and subject are the same entity (RFC 5280 §6.1).
func (m *member) selfIssued() bool { return m.subject.key == m.issuer.key }

// facts reads the extensions, once.
func (m *member) facts() error {
	if m.read {
		return m.unreadable
	}
	m.read = true
	m.unreadable = m.readExtensions()
	return m.unreadable
}

func (m *member) readExtensions() error {
	m.policies = noPolicies()
	m.points = []distributionPoint{pointOfIssuer(m.issuer)}
	for _, extension := range m.certificate.Extensions {
		value := cryptobyte.String(extension.Value)
		id := extension.Id.String()
		var err error
		switch id {
		case idKeyUsage:
			m.keyUsage = true
		case idExtKeyUsage:
			m.extKeyUsage = true
		case idSubjectAltName:
			m.names, err = readGeneralNames(value, cryptobyte_asn1.SEQUENCE)
		case idNameConstraints:
			m.constraints, err = readNameConstraints(value)
		case idDistributionPoints:
			m.points, err = readPoints(value, m.issuer)
		case idCertificatePolicies:
			err = m.policies.readPolicies(value)
		case idPolicyMappings:
			err = m.policies.readMappings(value)
		case idPolicyConstraints:
			err = m.policies.readConstraints(value)
		case idInhibitAnyPolicy:
			err = m.policies.readInhibitAny(value)
		case idSubjectKeyIdentifier, idAuthorityKeyIdentifier, idBasicConstraints:
			// crypto/x509 reads all that is used of them
		default:
			// Those that only inform, as authority information access, are not processed: who marks one critical asks for
			// something else than being ignored (RFC 5280 §4.2).
			if extension.Critical {
				m.unprocessed = id
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The extensions of RFC 5280 §4.2.1, as asn1.ObjectIdentifier prints them.
const (
	idSubjectKeyIdentifier   = "2.5.29.14"
	idKeyUsage               = "2.5.29.15"
	idSubjectAltName         = "2.5.29.17"
	idBasicConstraints       = "2.5.29.19"
	idNameConstraints        = "2.5.29.30"
	idDistributionPoints     = "2.5.29.31"
	idCertificatePolicies    = "2.5.29.32"
	idPolicyMappings         = "2.5.29.33"
	idAuthorityKeyIdentifier = "2.5.29.35"
	idPolicyConstraints      = "2.5.29.36"
	idExtKeyUsage            = "2.5.29.37"
	idInhibitAnyPolicy       = "2.5.29.54"
)
