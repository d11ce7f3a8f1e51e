package inspect

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chancery-ca/chancery/ca/pem"
)

// KubernetesRequest is a CertificateSigningRequest object of certificates.k8s.io.
type KubernetesRequest struct {
	Name              string      `json:"name"`
	SignerName        string      `json:"signer_name"`
	Username          string      `json:"username"` // who made the object, as the API server has it
	Groups            []string    `json:"groups"`
	Usages            []string    `json:"usages"` // as the object spells them
	ExpirationSeconds *int64      `json:"expiration_seconds,omitempty"`
	State             State       `json:"state"`
	Conditions        []Condition `json:"conditions"`
	Request           *Item       `json:"request"`
	Certificates      []*Item     `json:"certificates"` // what the signer put into the status, leaf first
}

// Condition is a condition of the object's status.
type Condition struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// State says what became of a CertificateSigningRequest.
type State string

// The states.
const (
	Pending  State = "pending"  // nobody has approved or denied it
	Approved State = "approved" // the signer has not answered yet
	Denied   State = "denied"
	Failed   State = "failed" // the signer cannot sign it
	Issued   State = "issued"
)

// kubernetesObject has the fields of a CertificateSigningRequest and of a list.
type kubernetesObject struct {
	APIVersion string `json:"apiVersion" yaml:"apiVersion"`
	Kind       string `json:"kind" yaml:"kind"`
	Metadata   struct {
		Name         string `json:"name" yaml:"name"`
		GenerateName string `json:"generateName" yaml:"generateName"`
	} `json:"metadata" yaml:"metadata"`
	Spec struct {
		Request           string   `json:"request" yaml:"request"`
		SignerName        string   `json:"signerName" yaml:"signerName"`
		ExpirationSeconds *int64   `json:"expirationSeconds" yaml:"expirationSeconds"`
		Usages            []string `json:"usages" yaml:"usages"`
		Username          string   `json:"username" yaml:"username"`
		Groups            []string `json:"groups" yaml:"groups"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Certificate string `json:"certificate" yaml:"certificate"`
		Conditions  []struct {
			Type    string `json:"type" yaml:"type"`
			Reason  string `json:"reason" yaml:"reason"`
			Message string `json:"message" yaml:"message"`
		} `json:"conditions" yaml:"conditions"`
	} `json:"status" yaml:"status"`
	Items []kubernetesObject `json:"items" yaml:"items"`
}

// yaml reads the documents of a YAML text.
func (in *reader) yaml(input []byte) ([]*Item, []Finding) {
	items, findings := []*Item{}, []Finding{}
	documents := yaml.NewDecoder(bytes.NewReader(input))
	for range maxBlocks {
		var object kubernetesObject
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			return items, findings
		}
		if err != nil {
			return items, append(findings, Finding{Refused, "yaml", "YAML 1.2", fmt.Sprintf("the YAML cannot be read: %v", err)})
		}
		if object.Kind == "" && object.APIVersion == "" {
			continue // an empty document
		}
		more, odd := in.kubernetes(&object)
		items, findings = append(items, more...), append(findings, odd...)
	}
	return items, append(findings, Finding{Refused, "yaml", "", fmt.Sprintf("there are more than %d documents", maxBlocks)})
}

// kubernetes reads an object or a list of them.
func (in *reader) kubernetes(object *kubernetesObject) ([]*Item, []Finding) {
	items, findings := []*Item{}, []Finding{}
	switch {
	case object.Kind == "CertificateSigningRequest":
		items = append(items, in.signingRequest(object))
	case strings.HasSuffix(object.Kind, "List"):
		for i := range object.Items {
			inner := &object.Items[i]
			if inner.Kind == "" && object.Kind == "CertificateSigningRequestList" {
				inner.Kind = "CertificateSigningRequest"
			}
			if strings.HasSuffix(inner.Kind, "List") {
				inner.Kind = "list in a list"
			}
			more, odd := in.kubernetes(inner)
			items, findings = append(items, more...), append(findings, odd...)
		}
		if len(object.Items) == 0 {
			findings = append(findings, Finding{Note, "kubernetes-empty", "", "the list is empty"})
		}
	default:
		findings = append(findings, Finding{Refused, "kubernetes-kind", "",
			fmt.Sprintf("an object of the kind %q is not one that is read here; it has to be a CertificateSigningRequest", object.Kind)})
	}
	return items, findings
}

func (in *reader) signingRequest(object *kubernetesObject) *Item {
	out := item(KindKubernetesRequest)
	request := &KubernetesRequest{
		Name: object.Metadata.Name, SignerName: object.Spec.SignerName, Username: object.Spec.Username, Groups: append([]string{}, object.Spec.Groups...),
		Usages: append([]string{}, object.Spec.Usages...), ExpirationSeconds: object.Spec.ExpirationSeconds, Conditions: []Condition{}, Certificates: []*Item{},
	}
	if request.Name == "" {
		request.Name = object.Metadata.GenerateName
	}
	out.KubernetesRequest = request
	for _, condition := range object.Status.Conditions {
		request.Conditions = append(request.Conditions, Condition{condition.Type, condition.Reason, condition.Message})
	}
	request.State = stateOf(request.Conditions, object.Status.Certificate != "")
	request.Request = in.embeddedRequest(object.Spec.Request)
	if object.Status.Certificate != "" {
		in.embeddedCertificates(object.Status.Certificate, out)
	}
	out.compare()
	return out
}

// stateOf follows the order in which Kubernetes' own controllers look at the conditions: denied and failed end it.
func stateOf(conditions []Condition, issued bool) State {
	has := func(kind string) bool {
		return slices.ContainsFunc(conditions, func(c Condition) bool { return c.Type == kind })
	}
	switch {
	case has("Denied"):
		return Denied
	case has("Failed"):
		return Failed
	case issued:
		return Issued
	case has("Approved"):
		return Approved
	}
	return Pending
}

// embeddedRequest reads spec.request: base64 of PEM with one request.
func (in *reader) embeddedRequest(text string) *Item {
	out := item(KindRequest)
	if text == "" {
		out.add(Refused, "kubernetes-request", "", "spec.request is empty")
		return out
	}
	decoded, err := decodeField(text)
	if err != nil {
		out.add(Refused, "kubernetes-request", "", "spec.request is not base64: %v", err)
		return out
	}
	blocks, err := pem.Decode(decoded, pem.Rules{Labels: []string{"CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"}, MaxBlocks: 1})
	if err != nil {
		out.add(Refused, "kubernetes-request", "RFC 7468 §7", "spec.request is not one certificate request in PEM: %v", err)
		return out
	}
	out = in.request(blocks[0].Bytes)
	out.Position = 1
	return out
}

// embeddedCertificates reads status.certificate: base64 of PEM with the chain, leaf first.
func (in *reader) embeddedCertificates(text string, object *Item) {
	const rule = "kubernetes-certificate"
	decoded, err := decodeField(text)
	if err != nil {
		object.add(Refused, rule, "", "status.certificate is not base64: %v", err)
		return
	}
	blocks, err := pem.Decode(decoded, pem.Rules{Labels: []string{"CERTIFICATE"}})
	if err != nil {
		object.add(Refused, rule, "RFC 7468 §5", "status.certificate does not hold certificates in PEM alone: %v", err)
		return
	}
	certificates := make([]*Item, 0, len(blocks))
	for _, block := range blocks {
		certificates = append(certificates, in.certificate(block.Bytes))
	}
	number(certificates)
	relate(certificates)
	object.KubernetesRequest.Certificates = certificates
}

// decodeField decodes base64 that YAML may have folded over lines.
func decodeField(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}

// compare holds what was issued against what was asked for.
func (i *Item) compare() {
	object := i.KubernetesRequest
	request := object.Request.Request
	if request == nil || len(object.Certificates) == 0 || object.Certificates[0].Certificate == nil {
		return
	}
	leaf := object.Certificates[0].Certificate
	if leaf.Key.SHA256 != request.Key.SHA256 {
		i.add(Note, "kubernetes-key", "", "the certificate is not for the key of the request")
	}
	for _, name := range leaf.Names {
		if !slices.Contains(request.Names, name) {
			i.add(Note, "kubernetes-names", "", "the certificate names %s, which the request does not ask for", name)
			break
		}
	}
	if asked := object.ExpirationSeconds; asked != nil {
		if life := leaf.Validity.NotAfter.Unix() - leaf.Validity.NotBefore.Unix(); life > *asked+600 {
			i.add(Note, "kubernetes-lifetime", "", "the certificate lives for %s in all; %s were asked for", span(life), span(*asked))
		}
	}
}
