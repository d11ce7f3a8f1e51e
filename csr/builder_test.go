package csr_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/csr"
)

// recipe is a certificate request in parts, each of them DER. A test starts from newRecipe, changes one thing, and the request is signed anew.
type recipe struct {
	version    []byte
	subject    []byte
	spki       []byte
	attributes []byte // the element [0]; nil leaves it out
	infoTail   []byte // after the attributes
	algorithm  []byte
	sign       func(info []byte) []byte
	tail       []byte // after the signature
}

var testKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) //nolint:forbidigo // no test can run
	}
	return key
})

const (
	tagUTF8      = 0x0c
	tagPrintable = 0x13
	tagTeletex   = 0x14
	tagIA5       = 0x16
	tagBMP       = 0x1e
)

const (
	oidExtensionRequest  = "1.2.840.113549.1.9.14"
	oidChallengePassword = "1.2.840.113549.1.9.7"
	oidSAN               = "2.5.29.17"
	oidKeyUsage          = "2.5.29.15"
	oidEKU               = "2.5.29.37"
	oidBasicConstraints  = "2.5.29.19"
	oidSKI               = "2.5.29.14"
	oidAKI               = "2.5.29.35"
	oidCN                = "2.5.4.3"
	oidO                 = "2.5.4.10"
)

const goodURI = "spiffe://cluster.local/ns/default/sa/web"

// newRecipe returns a request that Parse accepts: an empty subject, and a URI and a DNS name asked for.
func newRecipe() *recipe {
	r := &recipe{version: tlv(0x02, []byte{0}), subject: seq(), attributes: attributes(request(san(uri(goodURI), dns("web.default.svc"))))}
	return r.withECDSA(testKey())
}

func (r *recipe) withECDSA(key *ecdsa.PrivateKey) *recipe {
	r.algorithm = seq(oid("1.2.840.10045.4.3.2"))
	r.sign = func(info []byte) []byte {
		hash := sha256.Sum256(info)
		signature, err := ecdsa.SignASN1(rand.Reader, key, hash[:])
		if err != nil {
			panic(err) //nolint:forbidigo // no test can run
		}
		return signature
	}
	return r.withPublic(&key.PublicKey)
}

func (r *recipe) withPublic(public crypto.PublicKey) *recipe {
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err) //nolint:forbidigo // no test can run
	}
	r.spki = spki
	return r
}

func (r *recipe) withSAN(names ...[]byte) *recipe { return r.withExtensions(san(names...)) }

func (r *recipe) withExtensions(extensions ...[]byte) *recipe {
	r.attributes = attributes(request(extensions...))
	return r
}

func (r *recipe) der() []byte {
	info := seq(r.version, r.subject, r.spki, r.attributes, r.infoTail)
	return seq(info, r.algorithm, tlv(0x03, []byte{0}, r.sign(info)), r.tail)
}

func tlv(tag byte, parts ...[]byte) []byte {
	var b cryptobyte.Builder
	b.AddASN1(cryptobyte_asn1.Tag(tag), func(b *cryptobyte.Builder) { b.AddBytes(slices.Concat(parts...)) })
	return b.BytesOrPanic()
}

func seq(parts ...[]byte) []byte { return tlv(0x30, parts...) }
func set(parts ...[]byte) []byte { return tlv(0x31, parts...) }

func oid(dotted string) []byte {
	var id asn1.ObjectIdentifier
	for part := range strings.SplitSeq(dotted, ".") {
		arc, err := strconv.Atoi(part)
		if err != nil {
			panic(err) //nolint:forbidigo // a mistake in the test
		}
		id = append(id, arc)
	}
	var b cryptobyte.Builder
	b.AddASN1ObjectIdentifier(id)
	return b.BytesOrPanic()
}

func attributes(list ...[]byte) []byte { return tlv(0xa0, list...) }

func attribute(id string, values ...[]byte) []byte { return seq(oid(id), set(values...)) }

func request(extensions ...[]byte) []byte { return attribute(oidExtensionRequest, seq(extensions...)) }

func extension(id string, value ...[]byte) []byte { return seq(oid(id), tlv(0x04, value...)) }

func critical(id string, value ...[]byte) []byte {
	return seq(oid(id), tlv(0x01, []byte{0xff}), tlv(0x04, value...))
}

func san(names ...[]byte) []byte { return extension(oidSAN, seq(names...)) }

func email(s string) []byte    { return tlv(0x81, []byte(s)) }
func dns(s string) []byte      { return tlv(0x82, []byte(s)) }
func uri(s string) []byte      { return tlv(0x86, []byte(s)) }
func ip(octets ...byte) []byte { return tlv(0x87, octets) }

// name returns a Name with one attribute in each relative distinguished name.
func name(attributes ...[]byte) []byte {
	var rdns [][]byte
	for _, attribute := range attributes {
		rdns = append(rdns, set(attribute))
	}
	return seq(rdns...)
}

func text(id string, value string) []byte { return textAs(id, tagUTF8, value) }

func textAs(id string, tag byte, value string) []byte { return seq(oid(id), tlv(tag, []byte(value))) }

// wants parses and fails the test unless the request is accepted and fragment empty, or refused as Invalid with the fragment in the message.
func wants(t *testing.T, input []byte, rules csr.Rules, fragment string) *csr.Request {
	t.Helper()
	parsed, err := csr.Parse(input, rules)
	switch {
	case fragment == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case fragment != "" && err == nil:
		t.Fatalf("accepted %v; want an error with %q", parsed, fragment)
	case err != nil:
		if errkind.Of(err) != errkind.Invalid {
			t.Errorf("error %v is of kind %v", err, errkind.Of(err))
		}
		switch reason := errkind.ReasonOf(err); reason {
		case errkind.BadCSR, errkind.KeyRefused, errkind.NamesMismatch:
		default:
			t.Errorf("error %v has the reason %s", err, reason)
		}
		if !strings.Contains(errkind.Message(err), fragment) {
			t.Errorf("error %q does not say %q", err, fragment)
		}
		if parsed != nil {
			t.Error("a request was returned beside the error")
		}
	}
	return parsed
}
