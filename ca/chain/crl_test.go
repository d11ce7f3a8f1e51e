package chain

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
)

func crlIssuer(t testing.TB) *entity { return issue(t, rootTemplate(), testKey(t, 1), nil) }

func TestCRLDraftIsGood(t *testing.T) {
	issuer := crlIssuer(t)
	d := newCRLDraft(issuer)
	d.entries = [][]byte{crlEntry(big.NewInt(3)), crlEntry(big.NewInt(4), crlReason(1))}
	list, err := ParseIssuedCRL(d.sign(t, issuer.key))
	if err != nil {
		t.Fatal(err)
	}
	if list.Delta() || list.Indirect() || list.List().Number.Int64() != 7 || len(list.List().RevokedCertificateEntries) != 2 {
		t.Errorf("found %+v", list)
	}
	if err := list.List().CheckSignatureFrom(issuer.certificate); err != nil {
		t.Error(err)
	}
}

const (
	crlNumberOID = "551d14"
	crlDeltaOID  = "551d1b"
	crlScopeOID  = "551d1c"
	crlIssuerOID = "551d1d"
)

func TestCRLFindings(t *testing.T) {
	issuer := crlIssuer(t)
	number := func(digits string) func(d *crlDraft) {
		return func(d *crlDraft) { d.set(crlNumberOID, crlExtensionOf(crlNumberOID, false, decodeHex(digits))) }
	}
	scope := func(digits string) func(d *crlDraft) {
		return func(d *crlDraft) { d.set(crlScopeOID, crlExtensionOf(crlScopeOID, true, decodeHex(digits))) }
	}
	entry := func(extensions ...[]byte) func(d *crlDraft) {
		return func(d *crlDraft) { d.entries = [][]byte{crlEntry(big.NewInt(3), extensions...)} }
	}
	for name, c := range map[string]struct {
		change   func(d *crlDraft)
		rule     string // the first finding's; empty for none
		severity Severity
	}{
		"nothing":                        {func(*crlDraft) {}, "", 0},
		"no version":                     {func(d *crlDraft) { d.version = nil }, "crl-version", Malformed},
		"version 1 written out":          {func(d *crlDraft) { d.version = decodeHex("020100") }, "crl-version", Malformed},
		"version 3":                      {func(d *crlDraft) { d.version = decodeHex("020102") }, "crl-version", Malformed},
		"an empty issuer":                {func(d *crlDraft) { d.issuer = decodeHex("3000") }, "issuer-empty", Malformed},
		"no nextUpdate":                  {func(d *crlDraft) { d.nextUpdate = nil }, "crl-next-update", Malformed},
		"nextUpdate before thisUpdate":   {func(d *crlDraft) { d.nextUpdate = element(0x17, []byte("270115105959Z")) }, "crl-update-order", Malformed},
		"a GeneralizedTime before 2050":  {func(d *crlDraft) { d.nextUpdate = element(0x18, []byte("20270115130000Z")) }, "time-generalized", Nonconforming},
		"something after the last field": {func(d *crlDraft) { d.tail = decodeHex("0500") }, "crl-trailing", Malformed},
		"an empty list of entries":       {func(d *crlDraft) { d.entries = [][]byte{} }, "crl-entries-empty", Nonconforming},
		"an entry twice":                 {func(d *crlDraft) { d.entries = [][]byte{crlEntry(big.NewInt(3)), crlEntry(big.NewInt(3))} }, "crl-entry-repeated", Nonconforming},
		"an entry of the future": {func(d *crlDraft) {
			d.entries = [][]byte{crlEntry(big.NewInt(3))}
			d.thisUpdate = element(0x17, []byte("270115105959Z"))
		}, "crl-entry-date", Nonconforming},
		"an entry with serial number zero": {func(d *crlDraft) { d.entries = [][]byte{element(0x30, decodeHex("020100"), d.thisUpdate)} }, "serial", Nonconforming},
		"an entry without a date":          {func(d *crlDraft) { d.entries = [][]byte{element(0x30, decodeHex("020103"))} }, "time-type", Malformed},
		"an empty list of entry extensions": {func(d *crlDraft) {
			d.entries = [][]byte{element(0x30, decodeHex("020103"), d.thisUpdate, decodeHex("3000"))}
		}, "crl-entry", Malformed},
		"a reason":                            {entry(crlReason(9)), "", 0},
		"a reason unspecified":                {entry(crlReason(0)), "crl-reason-unspecified", Nonconforming},
		"the reason that does not exist":      {entry(crlReason(7)), "crl-reason", Malformed},
		"a reason beyond the list":            {entry(crlReason(11)), "crl-reason", Malformed},
		"a removal in a complete list":        {entry(crlReason(8)), "crl-reason-remove", Malformed},
		"a critical reason":                   {entry(crlExtensionOf("551d15", true, []byte{0x0a, 1, 1})), "crl-reason-critical", Nonconforming},
		"a reason twice":                      {entry(crlReason(1), crlReason(1)), "extension-repeated", Malformed},
		"an invalidity date":                  {entry(crlExtensionOf("551d18", false, element(0x18, []byte("20270114120000Z")))), "", 0},
		"an invalidity date as UTCTime":       {entry(crlExtensionOf("551d18", false, element(0x17, []byte("270114120000Z")))), "crl-invalidity", Malformed},
		"an unknown entry extension":          {entry(crlExtensionOf("2a03", false, decodeHex("0500"))), "", 0},
		"an unknown critical entry extension": {entry(crlExtensionOf("2a03", true, decodeHex("0500"))), "crl-entry-critical", Malformed},
		"a certificate issuer in a direct list": {entry(crlExtensionOf(crlIssuerOID, true, element(0x30, element(0xa4, issuer.certificate.RawSubject)))),
			"crl-entry-issuer", Malformed},
		"no number":                  {func(d *crlDraft) { d.drop(crlNumberOID) }, "crl-number-missing", Malformed},
		"a critical number":          {func(d *crlDraft) { d.set(crlNumberOID, crlExtensionOf(crlNumberOID, true, decodeHex("020107"))) }, "crl-number-critical", Malformed},
		"a negative number":          {number("0201ff"), "crl-number", Malformed},
		"a number of 21 octets":      {number("0215" + strings.Repeat("01", 21)), "crl-number-length", Nonconforming},
		"no authority key":           {func(d *crlDraft) { d.drop("551d23") }, "authority-key-id-missing", Nonconforming},
		"no extensions":              {func(d *crlDraft) { d.extensions = nil }, "crl-number-missing", Malformed},
		"an extension twice":         {func(d *crlDraft) { d.extensions = append(d.extensions, d.extensions[1]) }, "extension-repeated", Malformed},
		"an unknown extension":       {func(d *crlDraft) { d.set("2a03", crlExtensionOf("2a03", false, decodeHex("0500"))) }, "", 0},
		"an unknown critical one":    {func(d *crlDraft) { d.set("2a03", crlExtensionOf("2a03", true, decodeHex("0500"))) }, "extension-critical", Malformed},
		"a scope":                    {scope("3003 8101ff"), "", 0},
		"a scope that is optional":   {func(d *crlDraft) { d.set(crlScopeOID, crlExtensionOf(crlScopeOID, false, decodeHex("30038101ff"))) }, "crl-scope-critical", Nonconforming},
		"an empty scope":             {scope("3000"), "crl-scope-empty", Nonconforming},
		"a scope that writes FALSE":  {scope("3003 810100"), "crl-scope-flag", Malformed},
		"a scope of two kinds":       {scope("3006 8101ff 8201ff"), "crl-scope-only", Malformed},
		"a scope of a seventh field": {scope("3003 8601ff"), "crl-scope", Malformed},
		"a scope of no reasons":      {scope("3003 830100"), "crl-scope-reasons", Malformed},
		"a scope of some reasons":    {scope("3004 83020640"), "", 0},
		"a scope with a name":        {scope("300e a00c a00a 8608 687474703a2f2f61"), "", 0},
		"a scope with two names":     {scope("3008 a006 a000 a102 0500"), "distribution-point-name", Malformed},
		"a delta":                    {func(d *crlDraft) { d.set(crlDeltaOID, crlExtensionOf(crlDeltaOID, true, decodeHex("020106"))) }, "", 0},
		"a delta that is optional":   {func(d *crlDraft) { d.set(crlDeltaOID, crlExtensionOf(crlDeltaOID, false, decodeHex("020106"))) }, "crl-delta-critical", Malformed},
		"a delta older than its base": {func(d *crlDraft) { d.set(crlDeltaOID, crlExtensionOf(crlDeltaOID, true, decodeHex("020108"))) },
			"crl-delta-base", Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newCRLDraft(issuer)
			c.change(d)
			encoding := d.sign(t, issuer.key)
			_, findings := InspectCRL(encoding)
			if c.rule == "" && len(findings) > 0 || c.rule != "" && (len(findings) == 0 || findings[0].Rule != c.rule || findings[0].Severity != c.severity) {
				t.Errorf("found %v, want %s", findings, c.rule)
			}
			if _, err := ParseCRL(encoding); (err == nil) != (c.severity < Malformed) {
				t.Errorf("ParseCRL: %v", err)
			}
			if _, err := ParseIssuedCRL(encoding); (err == nil) != (c.severity == 0) {
				t.Errorf("ParseIssuedCRL: %v", err)
			}
		})
	}
}

func TestParseCRLs(t *testing.T) {
	issuer := crlIssuer(t)
	encoding := newCRLDraft(issuer).sign(t, issuer.key)
	block := pem.Encode("X509 CRL", encoding)
	for name, c := range map[string]struct {
		input []byte
		want  int // zero for a refusal
	}{
		"DER":                        {encoding, 1},
		"a block":                    {block, 1},
		"two blocks and text":        {slices.Concat([]byte("one\n"), block, []byte("two\n"), block), 2},
		"something after DER":        {append(slices.Clone(encoding), 0), 0},
		"another label":              {pem.Encode("CRL", encoding), 0},
		"a certificate among them":   {slices.Concat(block, pem.Encode("CERTIFICATE", issuer.certificate.Raw)), 0},
		"a certificate":              {issuer.certificate.Raw, 0},
		"a damaged block among them": {slices.Concat(block, block[:len(block)-5]), 0},
		"nothing":                    {nil, 0},
	} {
		lists, err := ParseCRLs(c.input)
		if len(lists) != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s: %d lists, %v", name, len(lists), err)
		}
	}
	_, err := ParseCRLs(pem.Encode("X509 CRL", issuer.certificate.Raw))
	var refused *ParseError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("found %v", err)
	}
}

func TestReasonsAreNamed(t *testing.T) {
	if found := []string{Unspecified.String(), KeyCompromise.String(), RemoveFromCRL.String(), AACompromise.String()}; !slices.Equal(found,
		[]string{"unspecified", "keyCompromise", "removeFromCRL", "aACompromise"}) {
		t.Errorf("found %v", found)
	}
}
