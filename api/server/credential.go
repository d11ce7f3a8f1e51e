package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// maxMetadata bounds the metadata of a call, names and values together. The transport lets a little more through, so that the caller
// gets an answer with a reason and not a broken stream.
const maxMetadata = 16 << 10

// credentialOf reads what the caller showed. It believes nothing.
func credentialOf(ctx context.Context) (identity.Credential, error) {
	credential := identity.Credential{Remote: remoteOf(ctx), PeerChain: peerChainOf(ctx)}
	md, _ := metadata.FromIncomingContext(ctx)
	switch tokens := md.Get("authorization"); len(tokens) {
	case 0:
	case 1:
		scheme, token, found := strings.Cut(tokens[0], " ")
		if !found || !strings.EqualFold(scheme, "Bearer") || token == "" {
			return credential, errkind.New(errkind.Unauthenticated, "the authorization header is not of the form: Bearer TOKEN").Because(errkind.MalformedCredential)
		}
		credential.Bearer = identity.Secret(token)
	default:
		return credential, errkind.New(errkind.Unauthenticated, "the call has %d authorization headers; send exactly one", len(tokens)).
			Because(errkind.MalformedCredential)
	}
	switch clusters := md.Get("clusterid"); len(clusters) {
	case 0:
	case 1:
		credential.ClusterID = clusters[0]
	default:
		return credential, errkind.New(errkind.Invalid, "the call has %d clusterid headers; send at most one", len(clusters)).Because(errkind.BadRequest)
	}
	return credential, nil
}

// What a caller's TLS handshake may bring: the connection keeps it for as long as it lasts, whoever the caller is.
const (
	maxPeerChain = 10
	maxPeerBytes = 64 << 10
)

// boundPeerChain refuses a handshake that brings more certificates than anyone has. It is all that TLS finds out about them.
func boundPeerChain(raw [][]byte, _ [][]*x509.Certificate) error {
	size := 0
	for _, certificate := range raw {
		size += len(certificate)
	}
	if len(raw) > maxPeerChain || size > maxPeerBytes {
		return fmt.Errorf("the client sent %d certificates of %d bytes together; at most %d of %d are read", len(raw), size, maxPeerChain, maxPeerBytes)
	}
	return nil
}

// peerChainOf returns the client certificates of the connection. That the caller has the first one's key was proven by the handshake; nothing else about
// them was looked at.
func peerChainOf(ctx context.Context) []*x509.Certificate {
	caller, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := caller.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return info.State.PeerCertificates
}

// checkMetadata refuses oversized metadata before anything in it is looked at.
func checkMetadata(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	size := 0
	for name, values := range md {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	if size > maxMetadata {
		return errkind.New(errkind.Unauthenticated, "the call's metadata is %d bytes; at most %d are read, and a token is at most 8 KiB", size, maxMetadata).
			Because(errkind.MalformedCredential)
	}
	return nil
}

func remoteOf(ctx context.Context) netip.AddrPort {
	caller, ok := peer.FromContext(ctx)
	if !ok || caller.Addr == nil {
		return netip.AddrPort{}
	}
	address, err := netip.ParseAddrPort(caller.Addr.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return address
}
