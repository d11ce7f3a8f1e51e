package csr_test

import (
	"bytes"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func TestOutline(t *testing.T) {
	null := tlv(0x05)
	for name, test := range map[string]struct {
		change   func(*recipe)
		fragment string
	}{
		"nothing":                 {func(*recipe) {}, ""},
		"attributes empty":        {func(r *recipe) { r.attributes = attributes() }, ""},
		"attributes left out":     {func(r *recipe) { r.attributes = nil }, ""}, // go#43516
		"version 1":               {func(r *recipe) { r.version = tlv(0x02, []byte{1}) }, "version: it is not 0"},
		"version -1":              {func(r *recipe) { r.version = tlv(0x02, []byte{0xff}) }, "version: it is not 0"},
		"version 256":             {func(r *recipe) { r.version = tlv(0x02, []byte{1, 0}) }, "version: it is not 0"},
		"version padded":          {func(r *recipe) { r.version = tlv(0x02, []byte{0, 0}) }, "not strict DER"},
		"version without octets":  {func(r *recipe) { r.version = tlv(0x02) }, "not strict DER"},
		"version missing":         {func(r *recipe) { r.version = nil }, "version: missing"},
		"version tagged":          {func(r *recipe) { r.version = tlv(0xa0, r.version) }, "version: missing"},
		"subject missing":         {func(r *recipe) { r.subject, r.spki = nil, nil }, "subject: missing"},
		"subject a SET":           {func(r *recipe) { r.subject = set() }, "subject: missing"},
		"key missing":             {func(r *recipe) { r.spki = nil }, "subjectPKInfo: missing"},
		"attributes twice":        {func(r *recipe) { r.infoTail = attributes() }, "an element other than attributes"},
		"attributes as [1]":       {func(r *recipe) { r.attributes = tlv(0xa1) }, "an element other than attributes"},
		"attributes as a SET":     {func(r *recipe) { r.attributes = set() }, "an element other than attributes"},
		"attributes primitive":    {func(r *recipe) { r.attributes = tlv(0x80) }, "an element other than attributes"},
		"element after the info":  {func(r *recipe) { r.infoTail = null }, "an element other than attributes"},
		"algorithm missing":       {func(r *recipe) { r.algorithm = nil }, "signatureAlgorithm: missing"},
		"a fourth element":        {func(r *recipe) { r.tail = null }, "an element follows the signature"},
		"algorithm without an ID": {func(r *recipe) { r.algorithm = seq() }, "signatureAlgorithm: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe()
			test.change(r)
			wants(t, r.der(), csr.Rules{}, test.fragment)
		})
	}
}

func TestSignatureIsWholeOctets(t *testing.T) {
	r := newRecipe()
	info := seq(r.version, r.subject, r.spki, r.attributes)
	signature := r.sign(info)
	wants(t, seq(info, r.algorithm, tlv(0x03, []byte{0}, signature)), csr.Rules{}, "")
	wants(t, seq(info, r.algorithm, tlv(0x04, signature)), csr.Rules{}, "signature: missing")
	wants(t, seq(info, r.algorithm), csr.Rules{}, "signature: missing")
	wants(t, seq(info, r.algorithm, tlv(0x03, []byte{1}, signature, []byte{0})), csr.Rules{}, "signature: missing")
}

func TestBERIsRefused(t *testing.T) {
	r := newRecipe()
	info := seq(r.version, r.subject, r.spki, r.attributes)
	rest := append(bytes.Clone(r.algorithm), tlv(0x03, []byte{0}, r.sign(info))...)
	contents := append(bytes.Clone(info), rest...)
	wants(t, seq(contents), csr.Rules{}, "")
	for name, input := range map[string][]byte{
		"long length":       append([]byte{0x30, 0x82, 0x00, byte(len(contents))}, contents...),
		"indefinite length": append(append([]byte{0x30, 0x80}, contents...), 0, 0),
	} {
		t.Run(name, func(t *testing.T) { wants(t, input, csr.Rules{}, "not strict DER") })
	}
	t.Run("in the signed part", func(t *testing.T) {
		r := newRecipe()
		r.subject = []byte{0x30, 0x81, 0x00}
		wants(t, r.der(), csr.Rules{}, "not strict DER")
		r.subject = []byte{0x30, 0x80, 0x00, 0x00}
		wants(t, r.der(), csr.Rules{}, "not strict DER")
	})
}
