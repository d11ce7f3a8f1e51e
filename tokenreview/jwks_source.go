package tokenreview

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/chancery-ca/chancery/internal/regularfile"
)

// KeySource says where an issuer's keys are.
type KeySource struct {
	fetch   func(ctx context.Context) ([]byte, error)
	refresh time.Duration // between looks at it
}

// How often a source is looked at without need.
const (
	refreshRemote = 5 * time.Minute
	refreshFile   = 10 * time.Second
	fetchTimeout  = 5 * time.Second
)

// maxDiscovered bounds the members of a discovery document: those of large identity providers have more than 60.
const maxDiscovered = 512

// KeysFromFile reads a JWK Set (RFC 7517) from a file, again whenever it changes.
func KeysFromFile(path string) KeySource {
	return KeySource{refresh: refreshFile, fetch: func(context.Context) ([]byte, error) { return regularfile.Read(path, maxJWKS) }}
}

// KeysFromURL gets a JWK Set from an https URL, or an http URL of this machine. A nil roots means the machine's own trust anchors.
func KeysFromURL(address string, roots *x509.CertPool) (KeySource, error) {
	if err := checkAddress(address); err != nil {
		return KeySource{}, err
	}
	client := issuerClient(roots)
	return KeySource{refresh: refreshRemote, fetch: func(ctx context.Context) ([]byte, error) { return get(ctx, client, address) }}, nil
}

// KeysFromDiscovery finds the JWK Set by the issuer's discovery document (OpenID Connect Discovery 1.0 §4), which has to name just this issuer.
func KeysFromDiscovery(issuer string, roots *x509.CertPool) (KeySource, error) {
	if err := checkAddress(issuer); err != nil {
		return KeySource{}, err
	}
	client := issuerClient(roots)
	document := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	return KeySource{refresh: refreshRemote, fetch: func(ctx context.Context) ([]byte, error) {
		text, err := get(ctx, client, document)
		if err != nil {
			return nil, err
		}
		discovered, err := parseMembers(text, maxDiscovered)
		if err != nil {
			return nil, fmt.Errorf("the discovery document %w", err)
		}
		if named, _ := discovered.text("issuer"); named != issuer {
			return nil, errors.New("the discovery document is of another issuer")
		}
		address, _ := discovered.text("jwks_uri")
		if err := checkAddress(address); err != nil {
			return nil, fmt.Errorf("jwks_uri of the discovery document: %w", err)
		}
		if strings.HasPrefix(issuer, "https:") && !strings.HasPrefix(address, "https:") {
			return nil, errors.New("jwks_uri of the discovery document is no https URL, where the issuer's is one")
		}
		return get(ctx, client, address)
	}}, nil
}

// KeysFromCluster gets the JWK Set of a cluster from its API server. The account of access needs the ClusterRole
// system:service-account-issuer-discovery, which every service account has.
func KeysFromCluster(access *rest.Config) (KeySource, error) {
	if access == nil {
		return KeySource{}, errors.New("there is no client configuration: give a kubeconfig, or run in a cluster")
	}
	if err := checkServer(access); err != nil {
		return KeySource{}, err
	}
	own := rest.CopyConfig(access)
	own.Timeout, own.UserAgent, own.QPS = fetchTimeout, "chancery-keys", -1
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return KeySource{}, fmt.Errorf("making the client for the cluster's keys: %w", err)
	}
	client.CheckRedirect = noRedirect
	server, _, err := rest.DefaultServerUrlFor(own)
	if err != nil {
		return KeySource{}, fmt.Errorf("reading the API server's address: %w", err)
	}
	address := server.JoinPath("openid/v1/jwks").String()
	return KeySource{refresh: refreshRemote, fetch: func(ctx context.Context) ([]byte, error) { return get(ctx, client, address) }}, nil
}

func issuerClient(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: noRedirect,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			TLSHandshakeTimeout:    fetchTimeout,
			ResponseHeaderTimeout:  fetchTimeout,
			MaxResponseHeaderBytes: 64 << 10,
			MaxConnsPerHost:        2,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		},
	}
}

// noRedirect keeps keys from coming from a host that nobody configured.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// checkAddress refuses an address whose answer anybody on the way could have written.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return errors.New("it is no https URL")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u):
		return nil
	default:
		return errors.New("it is no https URL, so anybody on the way could write the keys")
	}
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the address of the keys: %w", err)
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for the keys: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking for the keys: the server answers %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxJWKS+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the keys: %w", err)
	case len(text) > maxJWKS:
		return nil, fmt.Errorf("reading the keys: the answer is longer than %d bytes", maxJWKS)
	}
	return text, nil
}
