package server

import (
	"context"
	"time"

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
	issuance, err := s.issue(ctx, s.config.Istio, order, func(order *ca.Order) error { return checkIstioMetadata(request.GetMetadata(), order.Principal) })
	if err != nil {
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

// checkIstioMetadata refuses what agents may ask for and this server does not grant. Agents always send the keys, often empty.
func checkIstioMetadata(metadata *structpb.Struct, principal *identity.Principal) error {
	signer, err := textOf(metadata, "CertSigner")
	if err != nil {
		return err
	}
	if signer != "" {
		return errkind.New(errkind.Invalid, "metadata CertSigner: %.64q is not offered here; leave it empty", signer)
	}
	wanted, err := textOf(metadata, "ImpersonatedIdentity")
	if err != nil {
		return err
	}
	if wanted != "" && wanted != principal.ID.String() {
		return errkind.New(errkind.Denied, "metadata ImpersonatedIdentity: %s may not ask for the certificate of another identity", principal.ID)
	}
	return nil
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
		return "", errkind.New(errkind.Invalid, "metadata %s: it is not a text", key)
	}
}
