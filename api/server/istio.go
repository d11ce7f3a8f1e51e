package server

import (
	"context"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/pem"
)

// istio describes istio.v1.auth.IstioCertificateService.
func (s *Server) istio() *grpc.ServiceDesc {
	name := istiov1.IstioCertificateService_ServiceDesc.ServiceName
	return &grpc.ServiceDesc{
		ServiceName: name,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{unary(s, name, "CreateCertificate", s.createCertificate)},
		Metadata:    istiov1.IstioCertificateService_ServiceDesc.Metadata,
	}
}

func (s *Server) createCertificate(ctx context.Context, request *istiov1.IstioCertificateRequest) (*istiov1.IstioCertificateResponse, error) {
	order := ca.Order{
		Door: ca.DoorIstio, CSR: []byte(request.GetCsr()), Profile: ca.DefaultProfile, Jitter: s.config.IstioJitter,
		Lifetime: istioLifetime(request.GetValidityDuration()),
	}
	var other *identity.Principal // who asks for another identity than its own
	issuance, err := s.issue(ctx, s.config.Istio, order, func(order *ca.Order) error {
		wanted, err := readIstioMetadata(request.GetMetadata())
		if err != nil || wanted == "" || wanted == order.Principal.ID.String() {
			return err
		}
		other = order.Principal
		order.Names = identity.Names{URIs: []string{wanted}}
		if _, err := spiffeid.FromString(wanted); err != nil { // the profile would say so too, in other words than the rules
			return errkind.Wrap(errkind.Denied, err, "metadata ImpersonatedIdentity: %.128q is no SPIFFE ID", wanted).Because(errkind.ProxyRefused)
		}
		return nil
	})
	switch {
	case err != nil && other != nil && errkind.Of(err) == errkind.Denied:
		return nil, mayNotImpersonate(other)
	case err != nil:
		return nil, err
	}
	// leaf, then one intermediate an element, then the whole bundle as the last
	response := &istiov1.IstioCertificateResponse{}
	for _, der := range issuance.Chain.DER() {
		response.CertChain = append(response.CertChain, string(pem.Encode("CERTIFICATE", der)))
	}
	response.CertChain = append(response.CertChain, string(issuance.Bundle.PEM()))
	return response, nil
}

// istioLifetime reads seconds, of which zero or less mean the default. More than fits is the longest there is: the profile clamps it.
func istioLifetime(seconds int64) time.Duration {
	switch {
	case seconds <= 0:
		return 0
	case seconds > int64(maxLifetime/time.Second):
		return maxLifetime
	default:
		return time.Duration(seconds) * time.Second
	}
}

// readIstioMetadata returns the identity that the caller wants instead of its own, empty if it does not, and refuses what agents may ask for and this
// server does not grant. Agents always send the keys, often empty. Whether the caller may have the identity is for the rules to say.
func readIstioMetadata(metadata *structpb.Struct) (impersonated string, err error) {
	signer, err := textOf(metadata, "CertSigner")
	if err != nil {
		return "", err
	}
	if signer != "" {
		return "", errkind.New(errkind.Invalid, "metadata CertSigner: %.64q is not offered here; leave it empty", signer).Because(errkind.BadRequest)
	}
	return textOf(metadata, "ImpersonatedIdentity")
}

// mayNotImpersonate is the one answer to whoever may not have the identity that it asks for, whatever the reason: otherwise a caller could find out by it
// who runs where. The reason is in the audit record.
func mayNotImpersonate(principal *identity.Principal) error {
	return errkind.New(errkind.Denied, "metadata ImpersonatedIdentity: %s may not ask for the certificate of another identity; "+
		"only a node proxy that is configured here may, for the pods on its own node", principal.ID).Because(errkind.ProxyRefused)
}

// textOf returns a text of the metadata, empty if it is not there. Another kind of value is refused and not taken for none: whoever sent it asked
// for something.
func textOf(metadata *structpb.Struct, key string) (string, error) {
	switch value := metadata.GetFields()[key].GetKind().(type) {
	case nil, *structpb.Value_NullValue:
		return "", nil
	case *structpb.Value_StringValue:
		return value.StringValue, nil
	default:
		return "", errkind.New(errkind.Invalid, "metadata %s: it is not a text", key).Because(errkind.BadRequest)
	}
}
