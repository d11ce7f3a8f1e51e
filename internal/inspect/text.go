package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/chancery-ca/chancery/ca/pem"
)

// The bounds of a PEM text. Bundles of all public roots have some 150 blocks.
const (
	maxText   = 4 << 20
	maxBlocks = 1000
)

// labelParameters is what openssl writes before a key of its own. It says nothing that the key does not.
const labelParameters = "EC PARAMETERS"

// labels are those that are read, with what is in them: of RFC 7468, and the older ones of private keys.
var labels = map[string]struct {
	kind   Kind
	format string
}{
	"CERTIFICATE":             {KindCertificate, ""},
	"CERTIFICATE REQUEST":     {KindRequest, ""},
	"NEW CERTIFICATE REQUEST": {KindRequest, ""},
	"X509 CRL":                {KindRevocationList, ""},
	"PUBLIC KEY":              {KindPublicKey, ""},
	"PRIVATE KEY":             {KindPrivateKey, formatPKCS8},
	"EC PRIVATE KEY":          {KindPrivateKey, formatSEC1},
	"RSA PRIVATE KEY":         {KindPrivateKey, formatPKCS1},
	"ENCRYPTED PRIVATE KEY":   {KindPrivateKey, formatEncrypted},
	labelParameters:           {},
}

// text reads PEM.
func (in *reader) text(input []byte) ([]*Item, []Finding) {
	allowed := make([]string, 0, len(labels))
	for label := range labels {
		allowed = append(allowed, label)
	}
	items := []*Item{}
	blocks, err := pem.Decode(input, pem.Rules{Labels: allowed, MaxBytes: maxText, MaxBlocks: maxBlocks})
	if err != nil {
		return items, []Finding{textFinding(err)}
	}
	for _, block := range blocks {
		if block.Label == labelParameters {
			continue
		}
		label := labels[block.Label]
		item := in.one(label.kind, label.format, block.Bytes)
		item.Line = block.Line
		items = append(items, item)
	}
	number(items)
	relate(items)
	match(items)
	return items, together(items)
}

// textFinding says what is wrong with a text. Which labels there are is not said at length.
func textFinding(err error) Finding {
	finding := Finding{Refused, "pem", cmp.Or(SectionOf(err.Error()), "RFC 7468 §3"), err.Error()}
	var damage *pem.Error
	if errors.As(err, &damage) {
		finding.Rule = "pem-" + damage.Rule
		if damage.Rule == "label" {
			label, _, _ := strings.Cut(damage.Detail, " is not accepted here")
			finding.Detail = fmt.Sprintf("line %d: %s is not one that is read here", damage.Line, label)
		}
	}
	return finding
}

// together holds what stands in one text against what its readers take: certificates alone, revocation lists alone, one request.
func together(items []*Item) []Finding {
	findings := []Finding{}
	count := make(map[Kind]int)
	for _, item := range items {
		count[item.Kind]++
	}
	switch {
	case len(items) == 0:
		findings = append(findings, Finding{Refused, "pem-no-block", "RFC 7468 §2", "there is nothing but parameters in the text"})
	case len(count) > 1 && count[KindPrivateKey] > 0:
		findings = append(findings, Finding{Refused, "private-key-beside", "",
			"a private key stands beside something that others may see; keep it in a file of its own: readers of certificates refuse a text that holds one"})
	case len(count) > 1:
		findings = append(findings, Finding{Refused, "kinds-mixed", "",
			"things of different kinds stand in one text, and every reader takes one kind alone; put each into a file of its own"})
	case count[KindRequest] > 1:
		findings = append(findings, Finding{Refused, "requests", "RFC 7468 §7",
			fmt.Sprintf("there are %d certificate requests, and a reader takes one; put each into a file of its own", count[KindRequest])})
	}
	return findings
}
