package main

import "slices"

// request is a PKCS #10 request of whose parts a case changes one before it is signed.
type request struct {
	version    []byte
	subject    []byte
	extensions []extension
	attributes func(extensionRequest []byte) []byte // the contents of [0]
	field      func(attributes []byte) []byte       // the field [0] around them; nil for itself
	tail       []byte                               // after the attributes

	key       key
	outer     []byte // signatureAlgorithm; nil for the key's
	unused    byte
	signature []byte
	end       []byte // after the signature
}

// requestCase changes one thing in a good request.
type requestCase struct {
	name    string
	verdict string
	field   string // that the refusal is about
	waiver  string // the rule of csr.Rules that lets it through
	section string
	what    string
	change  func(*request)
}

// requester is whose key it is.
var requester = newP256("requester")

func requestDraft() *request {
	return &request{
		version: number(0),
		subject: commonName("web.corpus.test"),
		extensions: []extension{
			{idSubjectAltName, nil, seq(dns("web.corpus.test"), ip(192, 0, 2, 7)), nil},
		},
		attributes: func(request []byte) []byte { return request },
		key:        requester,
	}
}

// info returns the CertificationRequestInfo.
func (r *request) info() []byte {
	var list []byte
	for _, e := range r.extensions {
		list = append(list, e.encode()...)
	}
	attributes := r.attributes(seq(oid(idExtensionRequest), set(seq(list))))
	field := explicit(0, attributes)
	if r.field != nil {
		field = r.field(attributes)
	}
	return seq(r.version, r.subject, r.key.spki(), field, r.tail)
}

// sign returns the CertificationRequest.
func (r *request) sign() []byte { return r.around(r.info()) }

// around returns a request with the given CertificationRequestInfo.
func (r *request) around(info []byte) []byte {
	outer, signature := r.outer, r.signature
	if outer == nil {
		outer = r.key.algorithm()
	}
	if signature == nil {
		signature = r.key.sign(info)
	}
	return seq(info, outer, bits(r.unused, signature...), r.end)
}

func (r *request) put(id string, critical, value []byte) {
	for i := range r.extensions {
		if r.extensions[i].id == id {
			r.extensions[i] = extension{id, critical, value, nil}
			return
		}
	}
	r.extensions = append(r.extensions, extension{id, critical, value, nil})
}

func requestCases() []requestCase {
	return slices.Concat(formCases(), requestKeyCases(), proofCases(), attributeCases(), requestNameCases(), subjectCases())
}

// requests returns the corpus of certificate requests.
func requests() *folder {
	f := newFolder("csr", "verdict", "field", "waiver", "section", "what")
	for _, c := range requestCases() {
		r := requestDraft()
		c.change(r)
		f.add(c.name+".pem", encode("CERTIFICATE REQUEST", r.sign()), c.verdict, dash(c.field), dash(c.waiver), c.section, c.what)
	}
	for _, c := range textCases() {
		f.add(c.name, c.content, c.verdict, dash(c.field), "-", c.section, c.what)
	}
	return f
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// textCases are about what the request stands in.
func textCases() []struct {
	name, verdict, field, section, what string
	content                             []byte
} {
	der := requestDraft().sign()
	good := encode("CERTIFICATE REQUEST", der)
	certificate := certificatePEM(leafDraft().sign())
	damaged := append([]byte(nil), good...)
	damaged[40] = '!'
	// the last octet of a signature may well be a line feed or a blank
	blank := requestDraft()
	for i := 0; ; i++ {
		blank.subject = commonName("web.corpus.test " + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		if encoding := blank.sign(); encoding[len(encoding)-1] == '\n' {
			break
		}
	}
	small := requestDraft()
	small.key, small.subject, small.extensions = newEd25519("requester Ed25519"), seq(), nil
	small.attributes = func([]byte) []byte { return nil }
	type c = struct {
		name, verdict, field, section, what string
		content                             []byte
	}
	const text = "RFC 7468 §7"
	return []c{
		{"text-der.der", "accept", "", "RFC 2986 §4", "DER without PEM", der},
		{"text-der-ends-with-newline.der", "accept", "", "RFC 2986 §4", "DER whose last octet is a line feed", blank.sign()},
		{"text-der-small.der", "accept", "", "RFC 2986 §4", "the smallest request: Ed25519 and no name", small.sign()},
		{"text-new-label.pem", "accept", "", text, "the old label, NEW CERTIFICATE REQUEST", encode("NEW CERTIFICATE REQUEST", der)},
		{"text-around.pem", "accept", "", "RFC 7468 §5.2", "text around the block", join([]byte("request of the corpus\n"), good, []byte("\nend of it\n"))},
		{"text-der-newline.der", "reject", "strict DER", "X.690 §8.1", "a line feed after DER", join(der, []byte{'\n'})},
		{"text-der-cut.der", "reject", "strict DER", "X.690 §8.1.3", "DER that is cut short", der[:len(der)-1]},
		{"text-two.pem", "reject", "PEM", text, "two requests", join(good, good)},
		{"text-certificate-first.pem", "reject", "PEM", text, "a certificate before the request", join(certificate, good)},
		{"text-certificate-after.pem", "reject", "PEM", text, "a certificate after the request", join(good, certificate)},
		{"text-damaged-first.pem", "reject", "PEM", text, "a damaged block before a good one", join(damaged, good)},
		{"text-certificate.pem", "reject", "PEM", text, "a certificate", certificate},
		{"text-other-label.pem", "reject", "PEM", text, "a request with the label of certificates", certificatePEM(der)},
		{"text-headers.pem", "reject", "PEM", "RFC 7468 §2", "headers in the block", join([]byte("-----BEGIN CERTIFICATE REQUEST-----\nA: b\n\n"), good[len("-----BEGIN CERTIFICATE REQUEST-----\n"):])},
		{"text-bom.pem", "reject", "PEM", "RFC 7468 §3", "a byte order mark", join([]byte("\ufeff"), good)},
		{"text-no-end.pem", "reject", "PEM", "RFC 7468 §3", "no END", good[:len(good)-len("-----END CERTIFICATE REQUEST-----\n")]},
		{"text-base64.pem", "reject", "PEM", "RFC 7468 §2", "base64 without boundaries", good[len("-----BEGIN CERTIFICATE REQUEST-----\n") : len(good)-len("-----END CERTIFICATE REQUEST-----\n")]},
		{"text-der-two-in-block.pem", "reject", "strict DER", "RFC 2986 §4", "two requests in one block", encode("CERTIFICATE REQUEST", join(der, der))},
		{"text-empty.pem", "reject", "empty", "RFC 2986 §4", "no octet", nil},
	}
}
