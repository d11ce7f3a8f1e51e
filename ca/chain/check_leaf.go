package chain

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/identity"
)

// extension is a kind of extension that a leaf may carry.
type extension struct {
	id          asn1.ObjectIdentifier
	mayCritical bool
}

var (
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidBasicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
)

// leafExtensions are the only extensions that a leaf may carry, with whether they may be critical (RFC 5280 §4.2.1).
var leafExtensions = []extension{
	{asn1.ObjectIdentifier{2, 5, 29, 15}, true},                      // key usage
	{asn1.ObjectIdentifier{2, 5, 29, 37}, true},                      // extended key usage
	{oidBasicConstraints, true},                                      // basic constraints
	{asn1.ObjectIdentifier{2, 5, 29, 14}, false},                     // subject key identifier
	{asn1.ObjectIdentifier{2, 5, 29, 35}, false},                     // authority key identifier
	{oidSubjectAltName, true},                                        // subject alternative name
	{asn1.ObjectIdentifier{2, 5, 29, 31}, false},                     // CRL distribution points
	{asn1.ObjectIdentifier{2, 5, 29, 32}, false},                     // certificate policies
	{asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 1}, false},        // authority information access
	{asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, false}, // signed certificate timestamps
}

// checkLeaf holds a leaf against what was approved.
func checkLeaf(leaf *x509.Certificate, want Leaf, now time.Time) error {
	const approved = "a backend cannot widen a certificate"
	switch {
	case leaf.Version != 3:
		return broken(1, leaf, "RFC 5280 §4.1.2.1", "its version is %d; a certificate with extensions is version 3", leaf.Version)
	case leaf.SerialNumber.Sign() <= 0 || leaf.SerialNumber.BitLen() > 159:
		return broken(1, leaf, "RFC 5280 §4.1.2.2", "its serial number is not positive and of at most 159 bits")
	case want.Serial != nil && leaf.SerialNumber.Cmp(want.Serial) != 0:
		return broken(1, leaf, "the serial is the reserved one", "its serial is %x, reserved was %x", leaf.SerialNumber, want.Serial)
	case !bytes.Equal(leaf.RawSubjectPublicKeyInfo, want.SPKI):
		return broken(1, leaf, "the key is the request's", "its public key is not the one of the request")
	case !bytes.Equal(leaf.RawSubject, want.subject()):
		return broken(1, leaf, approved, "its subject %q was not approved", leaf.Subject.String())
	case leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return broken(1, leaf, approved, "it can sign certificates or CRLs")
	case leaf.KeyUsage != want.KeyUsage:
		return broken(1, leaf, approved, "its key usage is %b, approved was %b", leaf.KeyUsage, want.KeyUsage)
	case !sameUsages(leaf.ExtKeyUsage, want.ExtKeyUsage) || len(leaf.UnknownExtKeyUsage) > 0:
		return broken(1, leaf, approved, "its extended key usages are %v and %v, approved were %v", leaf.ExtKeyUsage, leaf.UnknownExtKeyUsage,
			want.ExtKeyUsage)
	case len(leaf.UnhandledCriticalExtensions) > 0:
		return broken(1, leaf, approved, "it has the critical extension %s", leaf.UnhandledCriticalExtensions[0])
	}
	if err := checkLeafNames(leaf, want); err != nil {
		return err
	}
	if err := checkLeafExtensions(leaf); err != nil {
		return err
	}
	return checkLeafTimes(leaf, want, now)
}

func checkLeafNames(leaf *x509.Certificate, want Leaf) error {
	got := identity.Names{DNS: leaf.DNSNames}
	for _, uri := range leaf.URIs {
		got.URIs = append(got.URIs, uri.String())
	}
	for _, ip := range leaf.IPAddresses {
		addr, ok := netip.AddrFromSlice(ip)
		if !ok {
			return broken(1, leaf, "RFC 5280 §4.2.1.6", "an IP address in it has %d octets", len(ip))
		}
		got.IPs = append(got.IPs, addr.Unmap())
	}
	slices.Sort(got.URIs)
	slices.Sort(got.DNS)
	slices.SortFunc(got.IPs, netip.Addr.Compare)
	if !got.Equal(want.Names.Normalize()) || len(leaf.EmailAddresses) > 0 {
		return broken(1, leaf, "a backend cannot widen a certificate", "it names %s and %d e-mail addresses, approved was %s", got, len(leaf.EmailAddresses),
			want.Names)
	}
	// Go drops names of kinds that it does not know, so the entries are counted as well
	entries, err := countNames(leaf)
	if err != nil {
		return broken(1, leaf, "RFC 5280 §4.2.1.6", "%v", err)
	}
	if named := len(got.URIs) + len(got.DNS) + len(got.IPs); entries != named {
		return broken(1, leaf, "a backend cannot widen a certificate", "its subject alternative names have %d entries, approved were %d", entries, named)
	}
	return nil
}

func checkLeafExtensions(leaf *x509.Certificate) error {
	for _, found := range leaf.Extensions {
		i := slices.IndexFunc(leafExtensions, func(known extension) bool { return known.id.Equal(found.Id) })
		if i < 0 {
			return broken(1, leaf, "a backend cannot widen a certificate", "it has the extension %s, which no profile asks for", found.Id)
		}
		if found.Critical && !leafExtensions[i].mayCritical {
			return broken(1, leaf, "RFC 5280 §4.2.1", "its extension %s is critical and must not be", found.Id)
		}
	}
	return nil
}

// checkLeafTimes allows a shorter life than approved (a backend may clamp to its issuer), never a longer one.
func checkLeafTimes(leaf *x509.Certificate, want Leaf, now time.Time) error {
	switch {
	case leaf.NotAfter.Before(leaf.NotBefore):
		return broken(1, leaf, "RFC 5280 §4.1.2.5", "its notAfter %s is before its notBefore %s", stamp(leaf.NotAfter), stamp(leaf.NotBefore))
	case leaf.NotAfter.After(want.NotAfter):
		return broken(1, leaf, "a backend cannot widen a certificate", "its notAfter is %s, approved was %s", stamp(leaf.NotAfter), stamp(want.NotAfter))
	case leaf.NotBefore.Before(want.NotBefore):
		return broken(1, leaf, "a backend cannot widen a certificate", "its notBefore is %s, approved was %s", stamp(leaf.NotBefore), stamp(want.NotBefore))
	case now.Before(leaf.NotBefore) || now.After(leaf.NotAfter):
		return broken(1, leaf, "RFC 5280 §6.1.3 (a)(2)", "it is valid from %s to %s; the clock says %s", stamp(leaf.NotBefore), stamp(leaf.NotAfter), stamp(now))
	}
	return nil
}

func sameUsages(got, want []x509.ExtKeyUsage) bool {
	if len(got) != len(want) {
		return false
	}
	for _, usage := range want {
		if !slices.Contains(got, usage) {
			return false
		}
	}
	return true
}

// countNames counts the GeneralNames of a certificate's subjectAltName, whatever their kind.
func countNames(certificate *x509.Certificate) (int, error) {
	for _, extension := range certificate.Extensions {
		if !extension.Id.Equal(oidSubjectAltName) {
			continue
		}
		input := cryptobyte.String(extension.Value)
		var names cryptobyte.String
		if !input.ReadASN1(&names, cryptobyte_asn1.SEQUENCE) || !input.Empty() {
			return 0, errors.New("its subject alternative names are not one SEQUENCE")
		}
		count := 0
		for ; !names.Empty(); count++ {
			var name cryptobyte.String
			var tag cryptobyte_asn1.Tag
			if !names.ReadAnyASN1(&name, &tag) {
				return 0, errors.New("its subject alternative names are malformed")
			}
		}
		return count, nil
	}
	return 0, nil
}
