package inspect

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net/netip"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// maxName is up to which size a distinguished name is written as text: that takes time quadratic in its attributes.
const maxName = 4096

// distinguished returns a DER Name in the form of RFC 4514.
func distinguished(raw []byte) string {
	if len(raw) > maxName {
		return fmt.Sprintf("(a name of %d bytes, too long to show)", len(raw))
	}
	var rdns pkix.RDNSequence
	if rest, err := asn1.Unmarshal(raw, &rdns); err != nil || len(rest) > 0 {
		return "(unreadable)"
	}
	return rdns.String()
}

// The kinds of GeneralName (RFC 5280 §4.2.1.6), by their number, as names are shown.
var generalNameKinds = [...]string{"OTHER", "EMAIL", "DNS", "X400", "DN", "EDI", "URI", "IP", "RID"}

// alternativeNames returns every name of a subjectAltName value with its kind, "DNS:example.org", in order, whatever its kind.
func alternativeNames(value []byte) []string {
	input := cryptobyte.String(value)
	var names cryptobyte.String
	if !input.ReadASN1(&names, cryptobyte_asn1.SEQUENCE) {
		return nil
	}
	var out []string
	for !names.Empty() {
		var contents cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !names.ReadAnyASN1(&contents, &tag) {
			return append(out, "(unreadable)")
		}
		out = append(out, generalName(tag, contents))
	}
	return out
}

func generalName(tag cryptobyte_asn1.Tag, contents cryptobyte.String) string {
	n := int(tag & 0x1f)
	if n >= len(generalNameKinds) {
		return fmt.Sprintf("(a name of the unknown kind %d)", n)
	}
	kind := generalNameKinds[n] + ":"
	switch kind {
	case "EMAIL:", "DNS:", "URI:":
		return kind + string(contents)
	case "IP:":
		if address, ok := netip.AddrFromSlice(contents); ok {
			return kind + address.String()
		}
	case "DN:":
		return kind + distinguished(contents)
	case "RID:", "OTHER:":
		// an otherName starts with its type, a registeredID is nothing else
		element := contents
		if kind == "RID:" {
			element = append([]byte{byte(cryptobyte_asn1.OBJECT_IDENTIFIER), byte(len(contents))}, contents...) //nolint:gosec // a longer one is unreadable
		}
		var id asn1.ObjectIdentifier
		if element.ReadASN1ObjectIdentifier(&id) {
			return kind + id.String()
		}
	}
	return kind + fmt.Sprintf("%x", []byte(contents))
}
