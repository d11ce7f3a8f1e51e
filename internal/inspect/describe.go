package inspect

import (
	"fmt"
	"strings"
)

// maxListed is how many names or entries a person is shown of a list; JSON has them all.
const maxListed = 20

// Write writes the report as text.
func (r *Report) Write(p *Page) {
	if sentence := summary(r.Items); sentence != "" {
		p.Line(Strong, "%s", sentence)
		p.Blank()
	}
	for n, item := range r.Items {
		if n > 0 {
			p.Blank()
		}
		item.write(p, len(r.Items))
	}
	if len(r.Items) > 0 && len(r.Findings) > 0 {
		p.Blank()
	}
	for _, finding := range r.Findings {
		p.Line(finding.tone(), "%s: %s", finding.label(), finding)
	}
}

// WriteShort writes one line an item, and below it what is wrong with it.
func (r *Report) WriteShort(p *Page) {
	for _, item := range r.Items {
		line, tone := item.line()
		if odd := len(item.Findings) - len(refusals(item.Findings)); odd > 0 {
			line += fmt.Sprintf(" (%d odd)", odd)
		}
		p.Line(tone, "%s", line)
		for _, finding := range item.refusals() {
			p.Line(finding.tone(), "  %s: %s", finding.label(), finding)
		}
	}
	for _, finding := range r.Findings {
		p.Line(finding.tone(), "%s: %s", finding.label(), finding)
	}
}

// String returns the sentence with its section.
func (f Finding) String() string {
	if f.Section == "" || strings.Contains(f.Detail, f.Section) {
		return f.Detail
	}
	return f.Detail + " (" + f.Section + ")"
}

func (f Finding) label() string {
	if f.Severity == Refused {
		return "wrong"
	}
	return "odd"
}

func (f Finding) tone() Tone {
	if f.Severity == Refused {
		return Bad
	}
	return Warn
}

// Tone is that of the status.
func (v Validity) Tone() Tone {
	switch v.Status {
	case Expired:
		return Bad
	case NotYetValid:
		return Warn
	case Valid:
	}
	return Good
}

// title says which item of how many this is.
func (i *Item) title(name string, of int) string {
	if of > 1 {
		return fmt.Sprintf("%s %d of %d", name, i.Position, of)
	}
	return name
}

func (i *Item) write(p *Page, of int) {
	switch {
	case i.Certificate != nil:
		p.Line(Strong, "%s: %s for %s", i.title("certificate", of), i.Certificate.Role, i.Certificate.For())
		i.Certificate.write(p, i.Position)
	case i.Request != nil:
		p.Line(Strong, "%s: for %s", i.title("certificate request", of), i.Request.asksFor())
		i.Request.write(p)
	case i.RevocationList != nil:
		p.Line(Strong, "%s: of %s", i.title(i.RevocationList.kind(), of), orNone(i.RevocationList.Issuer))
		i.RevocationList.write(p)
	case i.PrivateKey != nil:
		p.Line(Strong, "%s: %s, not shown", i.title("private key", of), i.PrivateKey.kind())
		i.PrivateKey.write(p)
	case i.PublicKey != nil:
		p.Line(Strong, "%s: %s", i.title("public key", of), i.PublicKey.Kind)
		p.Row("sha256", Plain, i.PublicKey.SHA256)
	case i.Bundle != nil:
		p.Line(Strong, "%s: %s", i.title("SPIFFE bundle", of), i.Bundle.holds())
		i.Bundle.write(p)
	case i.KubernetesRequest != nil:
		p.Line(Strong, "%s: %s for the signer %s", i.title("Kubernetes request", of), i.KubernetesRequest.Name, orNone(i.KubernetesRequest.SignerName))
		i.KubernetesRequest.write(p)
	default:
		p.Line(Strong, "%s: cannot be read", i.title(i.Kind.words(), of))
		if i.Line > 0 {
			p.Row("line", Plain, fmt.Sprint(i.Line))
		}
	}
	for _, finding := range i.Findings {
		p.Row(finding.label(), finding.tone(), finding.String())
	}
}

// line says an item in one line.
func (i *Item) line() (string, Tone) {
	switch {
	case i.Certificate != nil:
		return fmt.Sprintf("%s for %s: %s", i.Certificate.Role, i.Certificate.For(), i.Certificate.Validity), i.Certificate.Validity.Tone()
	case i.Request != nil:
		return fmt.Sprintf("certificate request for %s, %s", i.Request.asksFor(), i.Request.Key.Kind), Plain
	case i.RevocationList != nil:
		return fmt.Sprintf("%s of %s with %s: %s", i.RevocationList.kind(), orNone(i.RevocationList.Issuer),
			counted(len(i.RevocationList.Revoked), "entry", "entries"), i.RevocationList.Validity.current()), i.RevocationList.Validity.Tone()
	case i.PrivateKey != nil:
		return fmt.Sprintf("private key: %s, not shown", i.PrivateKey.kind()), Plain
	case i.PublicKey != nil:
		return fmt.Sprintf("public key: %s, sha256 %s", i.PublicKey.Kind, i.PublicKey.SHA256), Plain
	case i.Bundle != nil:
		return fmt.Sprintf("SPIFFE bundle: %s", i.Bundle.holds()), Plain
	case i.KubernetesRequest != nil:
		return fmt.Sprintf("Kubernetes request %s: %s", i.KubernetesRequest.Name, i.KubernetesRequest.State), i.KubernetesRequest.State.tone()
	}
	return i.Kind.words() + ": cannot be read", Bad
}

func (k Kind) words() string {
	if k == KindRequest {
		return "certificate request"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

func (c *Certificate) write(p *Page, position int) {
	p.Row("validity", c.Validity.Tone(), c.Validity.String())
	p.Row("", Plain, c.Validity.Whole())
	p.Row("names", Plain, listed(c.Names)...)
	p.Row("subject", Plain, orNone(c.Subject))
	issuer := orNone(c.Issuer)
	switch c.SignedBy {
	case 0:
		p.Row("issuer", Plain, issuer)
	case position:
		p.Row("issuer", Plain, issuer+": itself")
	default:
		p.Row("issuer", Plain, fmt.Sprintf("%s: certificate %d", issuer, c.SignedBy))
	}
	if words := usageWords(c.KeyUsage, c.ExtendedKeyUsage); words != "" {
		p.Row("may", Plain, words)
	}
	if c.PathLength != nil {
		below := "no CA"
		if *c.PathLength > 0 {
			below = "at most " + counted(*c.PathLength, "CA", "CAs")
		}
		p.Row("", Plain, fmt.Sprintf("have %s below itself", below))
	}
	p.Row("key", Plain, fmt.Sprintf("%s, sha256 %s", c.Key.Kind, c.Key.SHA256))
	p.Row("serial", Plain, c.Serial)
	p.Row("signature", Plain, c.SignatureAlgorithm)
	p.Row("crl", Plain, c.CRLs...)
	p.Row("ocsp", Plain, c.OCSP...)
	p.Row("sha256", Plain, c.SHA256)
}

func (r *Request) asksFor() string {
	switch {
	case len(r.Names) > 1:
		return fmt.Sprintf("%s and %d more", r.Names[0], len(r.Names)-1)
	case len(r.Names) == 1:
		return r.Names[0]
	case r.Subject != "":
		return r.Subject
	}
	return "no name, so for whoever is known to send it"
}

func (r *Request) write(p *Page) {
	p.Row("names", Plain, listed(r.Names)...)
	p.Row("subject", Plain, orNone(r.Subject))
	if words := usageWords(r.KeyUsage, r.ExtendedKeyUsage); words != "" {
		p.Row("asks to", Plain, words)
	}
	if r.AsksForCA {
		p.Row("asks to", Warn, "be a CA")
	}
	p.Row("key", Plain, fmt.Sprintf("%s, sha256 %s", r.Key.Kind, r.Key.SHA256))
	p.Row("signature", Plain, r.SignatureAlgorithm)
	if r.ProofOfPossession {
		p.Row("", Good, "good: whoever made it has the private key")
	}
	if r.ChallengePassword {
		p.Row("password", Plain, "there is a challenge password, not shown")
	}
}

func (l *RevocationList) kind() string {
	kind := "revocation list"
	if l.Delta {
		kind = "delta revocation list"
	}
	if l.Indirect {
		kind = "indirect " + kind
	}
	return kind
}

// current says the validity of a revocation list.
func (v Validity) current() string { return v.words("current", "out of date for %s (since %s)") }

func (l *RevocationList) write(p *Page) {
	p.Row("validity", l.Validity.Tone(), l.Validity.current())
	p.Row("", Plain, "made at "+stamp(l.Validity.NotBefore))
	if l.Number != "" {
		p.Row("number", Plain, l.Number)
	}
	p.Row("signature", Plain, l.SignatureAlgorithm)
	if l.AuthorityKeyID != "" {
		p.Row("issuer key", Plain, l.AuthorityKeyID)
	}
	if len(l.Revoked) == 0 {
		p.Row("revoked", Plain, "no certificate")
		return
	}
	rows := make([]string, 0, maxListed+1)
	for n, revoked := range l.Revoked {
		if n == maxListed {
			rows = append(rows, fmt.Sprintf("and %d more", len(l.Revoked)-n))
			break
		}
		row := fmt.Sprintf("%s at %s", revoked.Serial, stamp(revoked.At))
		if revoked.Reason != "unspecified" {
			row += ", " + revoked.Reason
		}
		rows = append(rows, row)
	}
	p.Row("revoked", Plain, rows...)
}

func (k *PrivateKey) kind() string {
	if k.Key == nil {
		return k.Format
	}
	return k.Key.Kind + " in " + k.Format
}

func (k *PrivateKey) write(p *Page) {
	if k.Encrypted {
		p.Row("", Plain, "encrypted, so that its kind is not known")
	}
	if k.Key != nil {
		p.Row("public", Plain, "sha256 "+k.Key.SHA256)
	}
	for _, position := range k.Matches {
		p.Row("belongs to", Good, fmt.Sprintf("number %d of this input", position))
	}
}

func (b *Bundle) holds() string {
	text := fmt.Sprintf("%s, %s", counted(len(b.Authorities), "X.509 authority", "X.509 authorities"), counted(len(b.Keys), "other key", "other keys"))
	if b.TrustDomain != "" {
		text = b.TrustDomain + ", " + text
	}
	return text
}

func (b *Bundle) write(p *Page) {
	if b.Sequence > 0 {
		p.Row("sequence", Plain, fmt.Sprint(b.Sequence))
	}
	if b.RefreshHint > 0 {
		p.Row("refresh", Plain, "every "+span(b.RefreshHint))
	}
	for _, key := range b.Keys {
		row := key.Kind
		if key.ID != "" {
			row += ", kid " + key.ID
		}
		if key.Use != "" {
			row += ", for " + key.Use
		}
		p.Row("key", Plain, row)
	}
	writeInner(p, b.Authorities)
}

func writeInner(p *Page, items []*Item) {
	p.Indented(func() {
		for _, item := range items {
			item.write(p, len(items))
		}
	})
}

func (s State) tone() Tone {
	switch s {
	case Denied, Failed:
		return Bad
	case Pending, Approved:
		return Warn
	case Issued:
	}
	return Good
}

func (r *KubernetesRequest) write(p *Page) {
	state := map[State]string{
		Pending: "pending: nobody has approved or denied it", Approved: "approved, and the signer has not answered yet", Denied: "denied",
		Failed: "failed: the signer cannot sign it", Issued: "issued",
	}
	p.Row("state", r.State.tone(), state[r.State])
	for _, c := range r.Conditions {
		p.Row("", Plain, strings.TrimSuffix(fmt.Sprintf("%s, %s: %s", c.Type, orNone(c.Reason), c.Message), ": "))
	}
	if r.Username != "" {
		p.Row("requester", Plain, r.Username)
		if len(r.Groups) > 0 {
			p.Row("", Plain, "of "+strings.Join(r.Groups, ", "))
		}
	}
	if len(r.Usages) > 0 {
		p.Row("usages", Plain, strings.Join(r.Usages, ", "))
	}
	if r.ExpirationSeconds != nil {
		p.Row("lifetime", Plain, fmt.Sprintf("%s asked for", span(*r.ExpirationSeconds)))
	}
	p.Indented(func() { r.Request.write(p, 1) })
	writeInner(p, r.Certificates)
}

// listed returns the first of many.
func listed(list []string) []string {
	if len(list) <= maxListed {
		return list
	}
	return append(append([]string{}, list[:maxListed]...), fmt.Sprintf("and %d more", len(list)-maxListed))
}
