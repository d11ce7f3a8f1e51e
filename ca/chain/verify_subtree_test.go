package chain

import (
	"crypto/x509/pkix"
	"net/netip"
	"slices"
	"testing"

	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

func TestSubtrees(t *testing.T) {
	for _, c := range []struct {
		kind               cryptobyte_asn1.Tag
		base, name         string
		permitted, exclude bool
	}{
		// RFC 5280: labels may stand before a dNSName
		{tagDNSName, "example.test", "example.test", true, true},
		{tagDNSName, "example.test", "a.b.example.test", true, true},
		{tagDNSName, "Example.TEST", "A.example.test", true, true},
		{tagDNSName, "example.test", "anexample.test", false, false},
		{tagDNSName, "a.example.test", "example.test", false, false},
		{tagDNSName, "", "example.test", true, true},
		// not of RFC 5280: the doubt is against the name
		{tagDNSName, ".example.test", "a.example.test", true, true},
		{tagDNSName, ".example.test", "example.test", false, true},
		// a wildcard stands for every label
		{tagDNSName, "example.test", "*.example.test", true, true},
		{tagDNSName, "example.test", "*.a.example.test", true, true},
		{tagDNSName, "a.example.test", "*.example.test", false, true},
		{tagDNSName, ".a.example.test", "*.example.test", false, true},
		{tagDNSName, "b.a.example.test", "*.example.test", false, false},
		{tagDNSName, "a.other.test", "*.example.test", false, false},
		{tagDNSName, "test", "*.example.test", true, true},

		// a host of a URI is that host alone, which crypto/x509 and others get wrong
		{tagURI, "example.test", "https://example.test/a", true, true},
		{tagURI, "example.test", "https://a.example.test/", false, false},
		{tagURI, ".example.test", "https://a.b.example.test/", true, true},
		{tagURI, ".example.test", "https://example.test/", false, false},
		{tagURI, "example.test", "spiffe://EXAMPLE.test/ns/a", true, true},
		{tagURI, "example.test", "https://other.test@example.test:8443?x", true, true},
		{tagURI, "example.test", "https://example.test@other.test/", false, false},
		{tagURI, "example.test", "https://other.test/https://example.test", false, false},
		{tagURI, "example.test", "https://other.test\\@example.test/", false, false},

		{tagRFC822Name, "a@example.test", "a@EXAMPLE.test", true, true},
		{tagRFC822Name, "a@example.test", "A@example.test", false, false},
		{tagRFC822Name, "a@example.test", `"a"@example.test`, true, true},
		{tagRFC822Name, "a@example.test", `"\a"@example.test`, true, true},
		{tagRFC822Name, "example.test", "a@example.test", true, true},
		{tagRFC822Name, "example.test", "a@b.example.test", false, false},
		{tagRFC822Name, ".example.test", "a@b.example.test", true, true},
		{tagRFC822Name, ".example.test", "a@example.test", false, false},

		{tagIPAddress, "192.0.2.0/24", "192.0.2.7", true, true},
		{tagIPAddress, "192.0.2.0/24", "192.0.3.7", false, false},
		{tagIPAddress, "192.0.2.7/25", "192.0.2.9", true, true},
		{tagIPAddress, "0.0.0.0/0", "192.0.2.7", true, true},
		{tagIPAddress, "0.0.0.0/0", "::ffff:192.0.2.7", false, false},
		{tagIPAddress, "2001:db8::/32", "2001:db8::1", true, true},
		{tagIPAddress, "::/0", "192.0.2.7", false, false},
	} {
		name, base := constraintName(t, c.kind, c.name), constraintName(t, c.kind, c.base)
		matches := matcherOf(name)
		if matches == nil {
			t.Errorf("%s cannot be matched", c.name)
			continue
		}
		if found := matches(base, false); found != c.permitted {
			t.Errorf("%s permits %s: %v", c.base, c.name, found)
		}
		if found := matches(base, true); found != c.exclude {
			t.Errorf("%s excludes %s: %v", c.base, c.name, found)
		}
	}
}

// constraintName encodes a name or a base of a subtree.
func constraintName(t *testing.T, kind cryptobyte_asn1.Tag, text string) generalName {
	t.Helper()
	if kind != tagIPAddress {
		return generalName{tag: kind, value: []byte(text)}
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return generalName{tag: kind, value: address.AsSlice()}
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	octets := prefix.Addr().AsSlice()
	mask := make([]byte, len(octets))
	for i := range prefix.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return generalName{tag: kind, value: slices.Concat(octets, mask)}
}

// TestNamesThatCannotBeMatched: RFC 5280 §4.2.1.10 wants them refused once a constraint is on their kind.
func TestNamesThatCannotBeMatched(t *testing.T) {
	for _, name := range []generalName{
		{tag: tagURI, value: []byte("urn:uuid:1")},
		{tag: tagURI, value: []byte("https://192.0.2.7/")},
		{tag: tagURI, value: []byte("https://[2001:db8::1]/")},
		{tag: tagURI, value: []byte("https://0x7f.1/")},
		{tag: tagURI, value: []byte("https:///path")},
		{tag: tagURI, value: []byte("https://ex%61mple.test/")},
		{tag: tagURI, value: []byte("https://example.test./")},
		{tag: tagDNSName, value: []byte("")},
		{tag: tagDNSName, value: []byte("*")},
		{tag: tagDNSName, value: []byte("a*.example.test")},
		{tag: tagDNSName, value: []byte("a..test")},
		{tag: tagRFC822Name, value: []byte("example.test")},
		{tag: tagRFC822Name, value: []byte("a@b@c d")},
		{tag: tagIPAddress, value: make([]byte, 5)},
		{tag: tagOtherName},
		{tag: tagRegisteredID},
		{tag: tagX400Address},
		{tag: tagEDIPartyName},
	} {
		if matcherOf(name) != nil {
			t.Errorf("%s %q can be matched", describeKind(name.tag), name.value)
		}
	}
}

func TestDirectoryNameSubtrees(t *testing.T) {
	attribute := func(oid string, tag byte, value string) []byte {
		return element(0x31, element(0x30, element(0x06, []byte(oid)), element(tag, []byte(value))))
	}
	const country, organization, unit = "\x55\x04\x06", "\x55\x04\x0a", "\x55\x04\x0b"
	base := [][]byte{attribute(country, 0x13, "DE"), attribute(organization, 0x13, "Example  Inc")}
	for name, c := range map[string]struct {
		rdns [][]byte
		want bool
	}{
		"the same":                      {base, true},
		"below":                         {append(slices.Clone(base), attribute(unit, 0x0c, "x")), true},
		"above":                         {base[:1], false},
		"another":                       {[][]byte{base[0], attribute(organization, 0x13, "Other")}, false},
		"another order":                 {[][]byte{base[1], base[0]}, false},
		"another case":                  {[][]byte{attribute(country, 0x13, "de"), attribute(organization, 0x13, "EXAMPLE INC")}, true},
		"other spaces":                  {[][]byte{base[0], attribute(organization, 0x13, " Example Inc ")}, true},
		"as UTF8String":                 {[][]byte{base[0], attribute(organization, 0x0c, "Example Inc")}, true},
		"as TeletexString":              {[][]byte{base[0], attribute(organization, 0x14, "Example Inc")}, true},
		"as BMPString":                  {[][]byte{base[0], attribute(organization, 0x1e, "\x00E\x00x\x00a\x00m\x00p\x00l\x00e\x00 \x00I\x00n\x00c")}, true},
		"in full width":                 {[][]byte{base[0], attribute(organization, 0x0c, "Ｅｘａｍｐｌｅ Inc")}, true},
		"with a character of no width":  {[][]byte{base[0], attribute(organization, 0x0c, "Exam\u200bple Inc")}, true},
		"with a letter that looks like": {[][]byte{base[0], attribute(organization, 0x0c, "Ехample Inc")}, false},
	} {
		within, err := readName(element(0x30, c.rdns...))
		if err != nil {
			t.Fatal(err)
		}
		root, err := readName(element(0x30, base...))
		if err != nil {
			t.Fatal(err)
		}
		if found := within.within(root); found != c.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// TestNamesOfSeveralAttributesHaveNoOrder: a relative name is a set.
func TestNamesOfSeveralAttributesHaveNoOrder(t *testing.T) {
	pair := func(oid, value string) []byte {
		return element(0x30, element(0x06, []byte(oid)), element(0x13, []byte(value)))
	}
	a, b := pair("\x55\x04\x0a", "B"), pair("\x55\x04\x0a", "a")
	one, err := readName(element(0x30, element(0x31, a, b)))
	if err != nil {
		t.Fatal(err)
	}
	two, err := readName(element(0x30, element(0x31, pair("\x55\x04\x0a", "A"), pair("\x55\x04\x0a", "b"))))
	if err != nil {
		t.Fatal(err)
	}
	if one.key != two.key {
		t.Error("the same attributes in another order are another name")
	}
}

func TestNameConstraintsOfAPath(t *testing.T) {
	subtree := func(tag byte, value string) []byte { return element(0x30, element(tag, []byte(value))) }
	constraints := func(critical bool, list byte, subtrees ...[]byte) func(f *fixture) {
		return func(f *fixture) {
			value := element(0x30, element(list, subtrees...))
			f.intermediate.ExtraExtensions = append(f.intermediate.ExtraExtensions, testExtension(testIDNameConstraints, critical, value))
		}
	}
	const permitted, excluded = 0xa0, 0xa1
	for name, c := range map[string]struct {
		change func(f *fixture)
		ok     bool
	}{
		"all names permitted":            {constraints(true, permitted, subtree(0x82, "example.test"), subtree(0x86, "example.test")), true},
		"a kind that is not constrained": {constraints(true, permitted, subtree(0x81, "example.test")), true},
		"a name not permitted":           {constraints(true, permitted, subtree(0x82, "leaf.example.test")), false},
		"a URI's host not permitted":     {constraints(true, permitted, subtree(0x86, ".example.test")), false},
		"a name excluded":                {constraints(true, excluded, subtree(0x82, "leaf.example.test")), false},
		"constraints that are optional":  {constraints(false, excluded, subtree(0x82, "leaf.example.test")), false},
		"an address excluded":            {constraints(true, excluded, subtree(0x87, "\xc0\x00\x02\x00\xff\xff\xff\x00")), false},
		"every address excluded":         {constraints(true, excluded, subtree(0x87, "\x00\x00\x00\x00\x00\x00\x00\x00")), false},
		"IPv6 excluded":                  {constraints(true, excluded, subtree(0x87, string(make([]byte, 32)))), true},
		"another kind unknown":           {constraints(true, excluded, element(0x30, element(0x88, []byte{0x2a}))), true},
		"a maximum":                      {constraints(true, excluded, element(0x30, element(0x81, []byte("other.test")), element(0x81, []byte{1}))), false},
		"the subject excluded":           {constraints(true, excluded, element(0x30, element(0xa4, element(0x30)))), false},
		"a mailbox of the subject": {func(f *fixture) {
			constraints(true, permitted, subtree(0x81, "example.test"))(f)
			f.leaf.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: []int{1, 2, 840, 113549, 1, 9, 1}, Value: "a@other.test"}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.change(f)
			_, err := f.verify(t)
			if (err == nil) != c.ok {
				t.Errorf("found %v", err)
			}
		})
	}
}

func TestUnknownKindsOfConstrainedNames(t *testing.T) {
	registered := element(0x30, element(0x88, []byte{0x2a, 0x03}), element(0x82, []byte("leaf.example.test")))
	f := newFixture(t)
	f.leaf.DNSNames, f.leaf.URIs, f.leaf.IPAddresses = nil, nil, nil
	f.leaf.ExtraExtensions = []pkix.Extension{testExtension([]int{2, 5, 29, 17}, false, registered)}
	f.intermediate.ExtraExtensions = []pkix.Extension{testExtension(testIDNameConstraints, true, element(0x30, element(0xa1, element(0x30, element(0x88, []byte{0x2a})))))}
	_, err := f.verify(t)
	wantRefusal(t, err, 1, "§4.2.1.10")
}
