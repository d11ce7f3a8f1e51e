package cfssl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/cloudflare/cfssl/auth"

	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/signer"
)

// signRequest is what the server reads of an order. It knows no dates, no usages and no extensions.
type signRequest struct {
	// Hosts replace the names of the request, even by none.
	Hosts   []string `json:"hosts"`
	Request string   `json:"certificate_request"`
	// Subject replaces that of the request, except where it is empty: there the server takes the request's.
	Subject subject `json:"subject"`
	Profile string  `json:"profile"`
	Label   string  `json:"label"`
	// Serial is taken only by profiles with ClientProvidesSerialNumbers.
	Serial *big.Int `json:"serial,omitempty"`
}

// subject is the empty subject in CFSSL's form.
type subject struct {
	CN           string
	Names        []struct{} `json:"names"`
	SerialNumber string
}

// infoRequest asks for an issuing certificate.
type infoRequest struct {
	Label   string `json:"label"`
	Profile string `json:"profile"`
}

// emptyName is a DER Name without elements.
var emptyName = []byte{0x30, 0x00}

func isEmptyName(name []byte) bool { return len(name) == 0 || bytes.Equal(name, emptyName) }

// profile returns what the server calls one of our profiles.
func (s *Signer) profile(ours string) Profile {
	theirs, ok := s.config.Profiles[ours]
	if !ok {
		theirs.Name = ours
	}
	if theirs.Label == "" {
		theirs.Label = s.config.Label
	}
	return theirs
}

// labels returns every label that orders can have, each once, in order.
func (s *Signer) labels() []string {
	all := []string{s.config.Label}
	for ours := range s.config.Profiles {
		all = append(all, s.profile(ours).Label)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// authsign writes an order as the authsign endpoint reads it. The token covers the whole inner request and nothing else: whoever sees one can send
// it again for ever, which is why it travels over TLS only; all he gets is the same certificate for the same key.
func (s *Signer) authsign(order signer.Order) ([]byte, error) {
	if !isEmptyName(order.Leaf.Subject) {
		return nil, fmt.Errorf("%w: the certificate has a subject, which a CFSSL server cannot be told to the letter; use a profile without one",
			signer.ErrPermanent)
	}
	if !s.config.SendsSubject && !isEmptyName(order.Request.RawSubject()) {
		return nil, fmt.Errorf("%w: the request has a subject, which the CFSSL server would copy into the certificate; make the request without one, "+
			"or the operator gives the server's profile a \"CSRWhitelist\" without subject and sets csr_subjects: send", signer.ErrPermanent)
	}
	profile := s.profile(order.Profile)
	request := signRequest{
		Hosts: hosts(order.Leaf.Names), Request: string(pem.Encode("CERTIFICATE REQUEST", order.Request.DER())), Subject: subject{Names: []struct{}{}},
		Profile: profile.Name, Label: profile.Label,
	}
	if !s.config.Choices.Serial {
		request.Serial = order.Leaf.Serial
	}
	inner, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("writing the order: %w", err)
	}
	token, err := s.config.Key.provider.Token(inner)
	if err != nil {
		return nil, fmt.Errorf("authenticating the order: %w", err)
	}
	body, err := json.Marshal(auth.AuthenticatedRequest{Timestamp: s.config.Now().Unix(), Token: token, Request: inner})
	if err != nil {
		return nil, fmt.Errorf("writing the order: %w", err)
	}
	return body, nil
}

// hosts returns names as CFSSL tells their kinds apart: an address, a URI, or else a DNS name. It is never nil: then the request's names would count.
func hosts(names identity.Names) []string {
	all := make([]string, 0, len(names.DNS)+len(names.IPs)+len(names.URIs))
	all = append(all, names.DNS...)
	for _, ip := range names.IPs {
		all = append(all, ip.String())
	}
	return append(all, names.URIs...)
}
