package chain

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
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
	oidSubjectAltName    = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidBasicConstraints  = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidPolicyConstraints = asn1.ObjectIdentifier{2, 5, 29, 36}
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

// approvedAlone is the invariant that a backend breaks by saying more than was approved.
const approvedAlone = "a backend cannot widen a certificate"

// checkLeaf holds a leaf against what was approved.
func checkLeaf(leaf *x509.Certificate, want Leaf, now time.Time) error {
	switch {
	case leaf.Version != 3:
		return broken(1, leaf, "RFC 5280 §4.1.2.1", "its version is %d; a certificate with extensions is version 3", leaf.Version)
	case leaf.SerialNumber.Sign() <= 0 || leaf.SerialNumber.BitLen() > maxSerialBits:
		return broken(1, leaf, "RFC 5280 §4.1.2.2", "its serial number is not positive and of at most 159 bits")
	case want.Serial != nil && leaf.SerialNumber.Cmp(want.Serial) != 0:
		return broken(1, leaf, "the serial is the reserved one", "its serial is %x, reserved was %x", leaf.SerialNumber, want.Serial)
	case !bytes.Equal(leaf.RawSubjectPublicKeyInfo, want.SPKI):
		return broken(1, leaf, "the key is the request's", "its public key is not the one of the request")
	case !bytes.Equal(leaf.RawSubject, want.subject()):
		return broken(1, leaf, approvedAlone, "its subject was not approved")
	case leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return broken(1, leaf, approvedAlone, "it can sign certificates or CRLs")
	case leaf.KeyUsage != want.KeyUsage:
		return broken(1, leaf, approvedAlone, "its key usage is %#x, approved was %#x", int(leaf.KeyUsage), int(want.KeyUsage))
	case !sameUsages(leaf.ExtKeyUsage, want.ExtKeyUsage) || len(leaf.UnknownExtKeyUsage) > 0:
		return broken(1, leaf, approvedAlone, "its extended key usages are %v and %v, approved were %v", leaf.ExtKeyUsage, leaf.UnknownExtKeyUsage,
			want.ExtKeyUsage)
	case len(leaf.UnhandledCriticalExtensions) > 0:
		return broken(1, leaf, approvedAlone, "it has the critical extension %s", leaf.UnhandledCriticalExtensions[0])
	}
	if err := checkLeafNames(leaf, want); err != nil {
		return err
	}
	if err := checkLeafExtensions(leaf); err != nil {
		return err
	}
	return checkLeafTimes(leaf, want, now)
}

// checkLeafNames compares the names as they stand in the encoding: crypto/x509 drops names of kinds that it does not know, and changes the
// text of URIs.
func checkLeafNames(leaf *x509.Certificate, want Leaf) error {
	got, err := subjectAltNames(leaf)
	if err != nil {
		return err
	}
	if !got.Equal(want.Names.Normalize()) {
		return broken(1, leaf, approvedAlone, "it names %s, approved was %s", got, want.Names)
	}
	return nil
}

// otherNames are the kinds of GeneralName that no profile grants, by their number (RFC 5280 §4.2.1.6).
var otherNames = [...]string{0: "otherName", 1: "rfc822Name", 3: "x400Address", 4: "directoryName", 5: "ediPartyName", 8: "registeredID"}

// subjectAltNames returns the names of a certificate, sorted, and refuses kinds that are never approved.
func subjectAltNames(certificate *x509.Certificate) (identity.Names, error) {
	var names identity.Names
	i := slices.IndexFunc(certificate.Extensions, func(found pkix.Extension) bool { return found.Id.Equal(oidSubjectAltName) })
	if i < 0 {
		return names, nil
	}
	const malformed = "its subject alternative names are malformed"
	input := cryptobyte.String(certificate.Extensions[i].Value)
	var list cryptobyte.String
	if !input.ReadASN1(&list, cryptobyte_asn1.SEQUENCE) || !input.Empty() {
		return names, broken(1, certificate, "RFC 5280 §4.2.1.6", malformed)
	}
	for !list.Empty() {
		var name cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !list.ReadAnyASN1(&name, &tag) {
			return names, broken(1, certificate, "RFC 5280 §4.2.1.6", malformed)
		}
		switch tag {
		case tagDNSName:
			names.DNS = append(names.DNS, string(name))
		case tagURI:
			names.URIs = append(names.URIs, string(name))
		case tagIPAddress:
			addr, ok := netip.AddrFromSlice(name)
			if !ok {
				return names, broken(1, certificate, "RFC 5280 §4.2.1.6", "an IP address in it has %d octets", len(name))
			}
			names.IPs = append(names.IPs, addr)
		default:
			kind := fmt.Sprintf("tag %#x", uint8(tag))
			if number := int(tag & 0x1f); number < len(otherNames) && otherNames[number] != "" {
				kind = otherNames[number]
			}
			return names, broken(1, certificate, approvedAlone, "it has a subject alternative name of the kind %s, which was not approved", kind)
		}
	}
	slices.Sort(names.URIs)
	slices.Sort(names.DNS)
	slices.SortFunc(names.IPs, netip.Addr.Compare)
	return names, nil
}

func checkLeafExtensions(leaf *x509.Certificate) error {
	for _, found := range leaf.Extensions {
		i := slices.IndexFunc(leafExtensions, func(known extension) bool { return known.id.Equal(found.Id) })
		if i < 0 {
			return broken(1, leaf, approvedAlone, "it has the extension %s, which no profile asks for", found.Id)
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
		return broken(1, leaf, approvedAlone, "its notAfter is %s, approved was %s", stamp(leaf.NotAfter), stamp(want.NotAfter))
	case leaf.NotBefore.Before(want.NotBefore):
		return broken(1, leaf, approvedAlone, "its notBefore is %s, approved was %s", stamp(leaf.NotBefore), stamp(want.NotBefore))
	}
	return checkDates(1, leaf, now)
}

func sameUsages(got, want []x509.ExtKeyUsage) bool {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}
