package chain

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"testing"
	"time"
)

// revocationFixture is the fixture with an intermediate that signs lists; the leaf's serial number is 3.
func revocationFixture(t *testing.T, lists func(root, intermediate *entity) []*CRL) *fixture {
	t.Helper()
	f := newFixture(t)
	f.signed = func(root, intermediate *entity) { f.options.CRLs = lists(root, intermediate) }
	return f
}

var leafSerial = big.NewInt(3)

// pointOf encodes CRLDistributionPoints with one URI.
func pointOf(uri string) pkix.Extension {
	return testExtension([]int{2, 5, 29, 31}, false, element(0x30, element(0x30, element(0xa0, element(0xa0, element(0x86, []byte(uri)))))))
}

// scopeOf encodes an issuing distribution point with one URI and more fields.
func scopeOf(uri string, more ...[]byte) []byte {
	var fields [][]byte
	if uri != "" {
		fields = append(fields, element(0xa0, element(0xa0, element(0x86, []byte(uri)))))
	}
	return crlExtensionOf(crlScopeOID, true, element(0x30, append(fields, more...)...))
}

func TestRevocation(t *testing.T) {
	const ok, revoked, undetermined = "", "§6.1.3 (a)(3)", "§6.3.3"
	entry := func(reason byte) [][]byte { return [][]byte{crlEntry(leafSerial, crlReason(reason))} }
	one := func(change func(d *crlDraft)) func(t *testing.T, f *fixture, i *entity) []*CRL {
		return func(t *testing.T, _ *fixture, i *entity) []*CRL {
			d := newCRLDraft(i)
			change(d)
			return []*CRL{d.parsed(t, i)}
		}
	}
	two := func(first, second func(d *crlDraft)) func(t *testing.T, f *fixture, i *entity) []*CRL {
		return func(t *testing.T, f *fixture, i *entity) []*CRL {
			return slices.Concat(one(first)(t, f, i), one(second)(t, f, i))
		}
	}
	delta := func(number, base byte, change func(d *crlDraft)) func(d *crlDraft) {
		return func(d *crlDraft) {
			d.current(testNow.Add(-time.Minute), number)
			d.set(crlDeltaOID, crlExtensionOf(crlDeltaOID, true, []byte{2, 1, base}))
			change(d)
		}
	}
	nothing := func(*crlDraft) {}
	for name, c := range map[string]struct {
		lists func(t *testing.T, f *fixture, i *entity) []*CRL
		leaf  func(leaf *x509.Certificate)
		want  string
	}{
		"a list without the leaf":    {one(func(d *crlDraft) { d.entries = [][]byte{crlEntry(big.NewInt(4))} }), nil, ok},
		"a list with the leaf":       {one(func(d *crlDraft) { d.entries = entry(1) }), nil, revoked},
		"a leaf on hold":             {one(func(d *crlDraft) { d.entries = entry(6) }), nil, revoked},
		"a list that is out of date": {one(func(d *crlDraft) { d.nextUpdate = element(0x17, []byte("270115115959Z")) }), nil, undetermined},
		"a list of the last second":  {one(func(d *crlDraft) { d.nextUpdate = element(0x17, []byte("270115120000Z")) }), nil, ok},
		"a list of the future":       {one(func(d *crlDraft) { d.thisUpdate = element(0x17, []byte("270115120001Z")) }), nil, undetermined},
		"an old list beside a good":  {two(nothing, func(d *crlDraft) { d.nextUpdate = element(0x17, []byte("270115115959Z")); d.entries = entry(1) }), nil, ok},
		"a newer list with the leaf": {two(nothing, func(d *crlDraft) { d.current(testNow, 8); d.entries = entry(1) }), nil, revoked},
		"a newer list without it":    {two(func(d *crlDraft) { d.entries = entry(6) }, func(d *crlDraft) { d.current(testNow, 8) }), nil, ok},
		"the same second, a later number": {two(func(d *crlDraft) { d.entries = entry(6) }, func(d *crlDraft) {
			d.set(crlNumberOID, crlExtensionOf(crlNumberOID, false, []byte{2, 1, 8}))
		}), nil, ok},
		"a forged list": {func(t *testing.T, _ *fixture, i *entity) []*CRL {
			return []*CRL{newCRLDraft(i).parsed(t, &entity{testKey(t, 5), i.certificate})}
		}, nil, undetermined},
		"a forged list beside a good": {func(t *testing.T, f *fixture, i *entity) []*CRL {
			forged := newCRLDraft(i)
			forged.current(testNow, 9)
			return append(one(func(d *crlDraft) { d.entries = entry(1) })(t, f, i), forged.parsed(t, &entity{testKey(t, 5), i.certificate}))
		}, nil, revoked},

		"a shard of the leaf":     {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("http://a/1")); d.entries = entry(1) }), func(l *x509.Certificate) { l.ExtraExtensions = []pkix.Extension{pointOf("http://a/1")} }, revoked},
		"a shard without it":      {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("http://a/1")) }), func(l *x509.Certificate) { l.ExtraExtensions = []pkix.Extension{pointOf("http://a/1")} }, ok},
		"a shard for others":      {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("http://a/2")); d.entries = entry(1) }), func(l *x509.Certificate) { l.ExtraExtensions = []pkix.Extension{pointOf("http://a/1")} }, ok},
		"a shard, no point":       {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("http://a/1")); d.entries = entry(1) }), nil, ok},
		"a point, a full list":    {one(func(d *crlDraft) { d.entries = entry(1) }), func(l *x509.Certificate) { l.ExtraExtensions = []pkix.Extension{pointOf("http://a/1")} }, revoked},
		"a list for CAs":          {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x82, 1, 0xff})); d.entries = entry(1) }), nil, ok},
		"a list for users":        {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x81, 1, 0xff})); d.entries = entry(1) }), nil, revoked},
		"a list for attributes":   {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x85, 1, 0xff})); d.entries = entry(1) }), nil, ok},
		"a list for some reasons": {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x83, 2, 6, 0x40})) }), nil, undetermined},
		"lists for all reasons":   {two(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x83, 2, 6, 0x40})) }, func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x83, 3, 7, 0x3f, 0x80})) }), nil, ok},
		"revoked by one of two": {two(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x83, 2, 6, 0x40})) }, func(d *crlDraft) {
			d.set(crlScopeOID, scopeOf("", []byte{0x83, 3, 7, 0x3f, 0x80}))
			d.entries = entry(4)
		}), nil, revoked},
		"an indirect list by the issuer": {one(func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x84, 1, 0xff})); d.entries = entry(1) }), nil, revoked},

		"a delta with the leaf":       {two(nothing, delta(8, 7, func(d *crlDraft) { d.entries = entry(1) })), nil, revoked},
		"a delta without it":          {two(nothing, delta(8, 7, nothing)), nil, ok},
		"a delta that takes it off":   {two(func(d *crlDraft) { d.entries = entry(6) }, delta(8, 7, func(d *crlDraft) { d.entries = entry(8) })), nil, ok},
		"a delta to a newer base":     {two(func(d *crlDraft) { d.entries = entry(6) }, delta(9, 8, func(d *crlDraft) { d.entries = entry(8) })), nil, revoked},
		"a delta that is older":       {two(func(d *crlDraft) { d.entries = entry(6) }, delta(7, 5, func(d *crlDraft) { d.entries = entry(8) })), nil, revoked},
		"a delta of another scope":    {two(func(d *crlDraft) { d.entries = entry(6) }, delta(8, 7, func(d *crlDraft) { d.set(crlScopeOID, scopeOf("", []byte{0x81, 1, 0xff})); d.entries = entry(8) })), nil, revoked},
		"a delta that is out of date": {two(func(d *crlDraft) { d.entries = entry(6) }, delta(8, 7, func(d *crlDraft) { d.nextUpdate = element(0x17, []byte("270115115959Z")); d.entries = entry(8) })), nil, revoked},
		"a delta alone":               {one(delta(8, 7, nothing)), nil, undetermined},
		"the newest of two deltas wins": {func(t *testing.T, f *fixture, i *entity) []*CRL {
			return slices.Concat(two(nothing, delta(8, 7, func(d *crlDraft) { d.entries = entry(6) }))(t, f, i),
				one(delta(9, 7, func(d *crlDraft) { d.current(testNow, 9); d.entries = entry(8) }))(t, f, i))
		}, nil, ok},
	} {
		t.Run(name, func(t *testing.T) {
			var f *fixture
			f = revocationFixture(t, func(_, intermediate *entity) []*CRL { return c.lists(t, f, intermediate) })
			if c.leaf != nil {
				c.leaf(f.leaf)
			}
			_, err := f.verify(t)
			if c.want == ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantRefusal(t, err, 1, c.want)
		})
	}
}

// TestWhatWasCheckedIsTold: lists that are about nobody in the path change nothing, unless they are required.
func TestWhatWasCheckedIsTold(t *testing.T) {
	f := revocationFixture(t, func(_, intermediate *entity) []*CRL { return []*CRL{newCRLDraft(intermediate).parsed(t, intermediate)} })
	path, err := f.verify(t)
	if err != nil || !slices.Equal(path.Revocation, []bool{true, false}) {
		t.Errorf("found %v, %v", path, err)
	}
	f = revocationFixture(t, func(_, intermediate *entity) []*CRL { return []*CRL{newCRLDraft(intermediate).parsed(t, intermediate)} })
	f.options.RequireCRLs = true
	_, err = f.verify(t)
	wantRefusal(t, err, 2, "§6.3.3")

	f = newFixture(t)
	f.options.RequireCRLs = true
	f.signed = func(_, intermediate *entity) {
		d := newCRLDraft(intermediate)
		d.entries = [][]byte{crlEntry(f.leaf.SerialNumber, crlReason(1))}
		f.options.CRLs = []*CRL{d.parsed(t, intermediate)}
	}
	_, err = f.verify(t)
	wantRefusal(t, err, 1, "§6.1.3 (a)(3)") // though nothing is known of the intermediate
}

func TestARevokedIntermediate(t *testing.T) {
	f := newFixture(t)
	f.keys[0] = testKey(t, 3)
	f.signed = func(root, _ *entity) {
		d := newCRLDraft(root)
		d.entries = [][]byte{crlEntry(f.intermediate.SerialNumber, crlReason(2))}
		f.options.CRLs = []*CRL{d.parsed(t, root)}
	}
	_, err := f.verify(t)
	wantRefusal(t, err, 2, "§6.1.3 (a)(3)")
}

func TestAnIssuerWithoutCRLSign(t *testing.T) {
	f := revocationFixture(t, func(_, intermediate *entity) []*CRL { return []*CRL{newCRLDraft(intermediate).parsed(t, intermediate)} })
	f.intermediate.KeyUsage = x509.KeyUsageCertSign
	_, err := f.verify(t)
	wantRefusal(t, err, 1, "§6.3.3")
}

// TestSignersOfTheirOwn: a certificate with the issuer's name may sign its lists if it has a path of its own, in which it is not revoked.
func TestSignersOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		signer func(root, intermediate *entity) *entity
		want   string
	}{
		"by the root": {func(root, _ *entity) *entity {
			template := intermediateTemplate()
			template.SerialNumber.SetInt64(20)
			template.IsCA, template.MaxPathLenZero, template.MaxPathLen, template.KeyUsage = false, false, -1, x509.KeyUsageCRLSign
			return issue(t, template, testKey(t, 5), root)
		}, ""},
		"expired": {func(root, _ *entity) *entity {
			template := intermediateTemplate()
			template.NotAfter = testNow.Add(-time.Second)
			return issue(t, template, testKey(t, 5), root)
		}, "§6.3.3"},
		"by itself": {func(*entity, *entity) *entity { return issue(t, intermediateTemplate(), testKey(t, 5), nil) }, "§6.3.3"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.signed = func(root, intermediate *entity) {
				signer := c.signer(root, intermediate)
				f.options.Intermediates = append(f.options.Intermediates, signer.certificate)
				f.options.CRLs = []*CRL{newCRLDraft(signer).parsed(t, signer)}
			}
			_, err := f.verify(t)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantRefusal(t, err, 1, c.want)
		})
	}
}

// TestARevokedSignerDoesNotVouchForItself: the list that revokes the signer of another list is older, and counts all the same.
func TestARevokedSignerDoesNotVouchForItself(t *testing.T) {
	f := newFixture(t)
	f.keys[0] = testKey(t, 3)
	f.signed = func(root, _ *entity) {
		template := intermediateTemplate()
		template.SerialNumber.SetInt64(20)
		signer := issue(t, template, testKey(t, 5), root)
		f.options.Intermediates = append(f.options.Intermediates, signer.certificate)
		d := newCRLDraft(root)
		d.entries = [][]byte{crlEntry(template.SerialNumber, crlReason(1))}
		f.options.CRLs = []*CRL{newCRLDraft(signer).parsed(t, signer), d.parsed(t, root)}
	}
	_, err := f.verify(t)
	wantRefusal(t, err, 1, "§6.3.3")
}

// TestIndirectLists: the entries of an indirect list are those of its issuer until one names another.
func TestIndirectLists(t *testing.T) {
	delegate := caTemplate("Delegate", 30)
	delegate.IsCA, delegate.KeyUsage = false, x509.KeyUsageCRLSign
	for name, c := range map[string]struct {
		indirect bool
		entries  func(f *fixture, intermediate *entity) [][]byte
		want     string
	}{
		"not on it":                      {true, func(*fixture, *entity) [][]byte { return [][]byte{crlEntry(big.NewInt(4))} }, ""},
		"the number of another issuer's": {true, func(*fixture, *entity) [][]byte { return [][]byte{crlEntry(leafSerial)} }, ""},
		"named":                          {true, func(_ *fixture, i *entity) [][]byte { return [][]byte{crlEntry(leafSerial, issuerEntry(i))} }, "§6.1.3 (a)(3)"},
		"named by the entry before": {true, func(_ *fixture, i *entity) [][]byte {
			return [][]byte{crlEntry(big.NewInt(9), issuerEntry(i)), crlEntry(leafSerial)}
		}, "§6.1.3 (a)(3)"},
		"a list that is not indirect": {false, func(*fixture, *entity) [][]byte { return nil }, "§6.3.3"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.options.RequireCRLs = true
			f.keys[0] = testKey(t, 3)
			subject := issue(t, delegate, testKey(t, 7), nil).certificate.RawSubject
			f.leaf.ExtraExtensions = []pkix.Extension{testExtension([]int{2, 5, 29, 31}, false, element(0x30, element(0x30, element(0xa2, element(0xa4, subject)))))}
			f.signed = func(root, intermediate *entity) {
				signer := issue(t, delegate, testKey(t, 7), root)
				f.options.Intermediates = append(f.options.Intermediates, signer.certificate)
				d := newCRLDraft(signer)
				if c.indirect {
					d.set(crlScopeOID, scopeOf("", []byte{0x84, 1, 0xff}))
				}
				d.entries = c.entries(f, intermediate)
				f.options.CRLs = []*CRL{d.parsed(t, signer), newCRLDraft(root).parsed(t, root)}
			}
			_, err := f.verify(t)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantRefusal(t, err, 1, c.want)
		})
	}
}

// issuerEntry names a certificate issuer in an entry.
func issuerEntry(issuer *entity) []byte {
	return crlExtensionOf(crlIssuerOID, true, element(0x30, element(0xa4, issuer.certificate.RawSubject)))
}
