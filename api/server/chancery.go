package server

import (
	"context"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// maxLifetime stands for every lifetime that is longer; each profile's maximum is below it.
const maxLifetime = 100 * 365 * 24 * time.Hour

// chancery describes chancery.v1.CertificateAuthority.
func (s *Server) chancery() *grpc.ServiceDesc {
	name := chanceryv1.CertificateAuthority_ServiceDesc.ServiceName
	return &grpc.ServiceDesc{
		ServiceName: name,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			unary(s, name, "IssueCertificate", s.issueCertificate),
			unary(s, name, "GetTrustBundle", s.getTrustBundle),
			{StreamName: "WatchTrustBundle", ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
				return s.watchTrustBundle(stream)
			}},
		},
		Metadata: chanceryv1.CertificateAuthority_ServiceDesc.Metadata,
	}
}

func (s *Server) issueCertificate(ctx context.Context, request *chanceryv1.IssueCertificateRequest) (*chanceryv1.IssueCertificateResponse, error) {
	order := ca.Order{Door: ca.DoorChancery, CSR: request.GetCsr(), Profile: request.GetProfile()}
	issuance, err := s.issue(ctx, s.config.Chancery, order, func(order *ca.Order) (err error) {
		if order.Names, err = namesOf(request.GetNames()); err != nil {
			return err
		}
		order.Lifetime, err = lifetimeOf(request.GetLifetime())
		return err
	})
	if err != nil {
		return nil, err
	}
	response := &chanceryv1.IssueCertificateResponse{
		Chain:      issuance.Chain.DER(),
		Bundle:     bundleOf(issuance.Bundle),
		NotAfter:   timestamppb.New(issuance.NotAfter),
		RenewAt:    timestamppb.New(issuance.RenewAt),
		ServerTime: timestamppb.New(s.config.Now()),
	}
	if clamp := issuance.Clamp; clamp.Reason != "" {
		asked := durationpb.New(clamp.Asked)
		if lifetime := request.GetLifetime(); lifetime.GetSeconds() > int64(maxLifetime/time.Second) {
			asked = lifetime // what no time.Duration of ours stands for
		}
		response.LifetimeClamp = &chanceryv1.LifetimeClamp{
			Asked: asked, Granted: durationpb.New(clamp.Granted), Reason: clamp.Reason,
		}
	}
	return response, nil
}

func (s *Server) getTrustBundle(ctx context.Context, _ *chanceryv1.GetTrustBundleRequest) (response *chanceryv1.GetTrustBundleResponse, err error) {
	err = inPlace(ctx, s.admit.reading, func() {
		current, _ := s.config.Authority.Bundle()
		response = &chanceryv1.GetTrustBundleResponse{Bundle: bundleOf(current)}
	})
	return response, err
}

// watchTrustBundle sends the bundle at once and whenever its sequence grows, until the caller or the server stops.
func (s *Server) watchTrustBundle(stream grpc.ServerStream) error {
	if err := checkMetadata(stream.Context()); err != nil {
		return statusOf(err)
	}
	// the place comes before the message: who sends none holds no more than who does
	select {
	case s.watch <- struct{}{}:
		defer func() { <-s.watch }()
	default:
		return statusOf(errkind.New(errkind.Exhausted, "%d callers watch the trust bundle, the server's limit; try again", cap(s.watch)).
			Because(errkind.Overloaded).After(10 * time.Second))
	}
	if err := receive(stream, new(chanceryv1.WatchTrustBundleRequest)); err != nil {
		return err
	}
	for sent := uint64(0); ; {
		current, changed := s.config.Authority.Bundle()
		if current.Sequence() != sent {
			if err := stream.SendMsg(&chanceryv1.WatchTrustBundleResponse{Bundle: bundleOf(current)}); err != nil {
				return err
			}
			sent = current.Sequence()
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return statusOf(stream.Context().Err())
		case <-s.stop:
			return statusOf(stopping())
		}
	}
}

func bundleOf(b *bundle.Bundle) *chanceryv1.TrustBundle {
	out := &chanceryv1.TrustBundle{TrustDomain: b.TrustDomain().Name(), Sequence: b.Sequence()}
	for _, anchor := range b.Anchors() {
		out.Anchors = append(out.Anchors, anchor.Raw)
	}
	return out
}

func namesOf(names *chanceryv1.Names) (identity.Names, error) {
	out := identity.Names{URIs: names.GetUris(), DNS: names.GetDnsNames()}
	for _, text := range names.GetIpAddresses() {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return identity.Names{}, errkind.New(errkind.Invalid, "names.ip_addresses: %.64q is not an IP address", text).Because(errkind.BadRequest)
		}
		out.IPs = append(out.IPs, ip)
	}
	return out, nil
}

func lifetimeOf(asked *durationpb.Duration) (time.Duration, error) {
	switch {
	case asked == nil:
		return 0, nil
	case asked.CheckValid() != nil || asked.GetSeconds() < 0 || asked.GetNanos() < 0:
		return 0, errkind.New(errkind.Invalid, "lifetime: it must be a positive duration, or absent for the profile's default").Because(errkind.BadRequest)
	case asked.GetSeconds() > int64(maxLifetime/time.Second):
		return maxLifetime, nil
	default:
		return asked.AsDuration(), nil
	}
}
