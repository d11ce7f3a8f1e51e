package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/expression"
	"github.com/chancery-ca/chancery/internal/regularfile"
	"github.com/chancery-ca/chancery/tokenreview"
)

// issuer is an OpenID Connect issuer whose ID tokens are accepted.
type issuer struct {
	settings config.OIDC
	keys     *tokenreview.KeySet
	identity *expression.Expression
}

// newIssuers makes what the doors share. metrics may be nil, for a configuration that is only looked at.
func newIssuers(cfg *config.Config, metrics *tokenreview.KeyMetrics, logger *slog.Logger) ([]issuer, error) {
	var all []issuer
	for i, settings := range cfg.Authentication.OIDC {
		path := fmt.Sprintf("authentication.oidc[%d]", i)
		keys, err := newKeys(settings.Name, settings.JWKSURL, settings.JWKSFile, settings.CAFile, settings.Issuer, nil, metrics, logger)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", path, err)
		}
		mapping, err := expression.New(settings.Identity, expression.String, expression.Variable{Name: "claims", Kind: expression.Map})
		if err != nil {
			return nil, fmt.Errorf("%s: %s.identity: %w", cfg.Origin(path+".identity"), path, err)
		}
		all = append(all, issuer{settings: settings, keys: keys, identity: mapping})
	}
	return all, nil
}

// newKeys returns the keys of an issuer: from a URL, a file, the API server of the cluster, or where the issuer's discovery document says.
func newKeys(name, address, file, caFile, issuer string, access *rest.Config, metrics *tokenreview.KeyMetrics, logger *slog.Logger) (*tokenreview.KeySet, error) {
	var roots *x509.CertPool
	if caFile != "" {
		text, err := regularfile.Read(caFile, maxCAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca_file: %s holds no PEM certificate", caFile)
		}
	}
	var source tokenreview.KeySource
	var setting string
	var err error
	switch {
	case file != "":
		source = tokenreview.KeysFromFile(file)
	case address != "":
		setting = "jwks_url"
		source, err = tokenreview.KeysFromURL(address, roots)
	case access != nil:
		setting = "kubeconfig"
		source, err = tokenreview.KeysFromCluster(access)
	default:
		setting = "issuer"
		source, err = tokenreview.KeysFromDiscovery(issuer, roots)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return tokenreview.NewKeySet(source, tokenreview.KeySetConfig{Name: name}, logger, metrics)
}

const maxCAFile = 1 << 20

// idTokens accepts the ID tokens of each issuer.
func idTokens(with *authentication) ([]tokenreview.Entry, error) {
	entries := make([]tokenreview.Entry, 0, len(with.issuers))
	for _, i := range with.issuers {
		oidc, err := tokenreview.NewOIDC(tokenreview.OIDCConfig{
			Provider: i.settings.Name, Issuer: i.settings.Issuer, Audiences: i.settings.Audiences, TrustDomain: with.cfg.TrustDomain,
			Algorithms: i.settings.Algorithms, Map: i.mapped,
		}, i.keys)
		if err != nil {
			return nil, err
		}
		entries = append(entries, tokenreview.Entry{
			Accepts: fmt.Sprintf("an ID token of %s for %s", i.settings.Issuer, fmt.Sprint(i.settings.Audiences)), Authenticator: oidc,
		})
	}
	return entries, nil
}

// mapped returns the identity that the configuration gives to claims.
func (i issuer) mapped(ctx context.Context, claims map[string]any) (string, error) {
	return i.identity.Text(ctx, expression.Values{"claims": claims})
}
