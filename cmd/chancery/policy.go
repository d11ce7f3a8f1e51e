package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/keypolicy"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/regularfile"
)

// serverProfile is the profile of the server's own certificate. It is built in: no configuration and no rule but the server's reaches it.
const serverProfile = "chancery-server"

// usages are the extended key usages by their name in a profile.
var usages = map[string]x509.ExtKeyUsage{
	"server_auth": x509.ExtKeyUsageServerAuth,
	"client_auth": x509.ExtKeyUsageClientAuth,
}

// keyKinds are the kinds of keys by their name in keys.algorithms.
var keyKinds = map[string]keypolicy.Kind{
	"ecdsa-p256": keypolicy.P256,
	"ecdsa-p384": keypolicy.P384,
	"ecdsa-p521": keypolicy.P521,
	"ed25519":    keypolicy.Ed25519,
	"rsa-2048":   keypolicy.RSA2048,
	"rsa-3072":   keypolicy.RSA3072,
	"rsa-4096":   keypolicy.RSA4096,
}

// newPolicy builds everything that a reload replaces.
func newPolicy(cfg *config.Config, now time.Time, all clusters) (ca.Config, error) {
	backend, err := newBackend(cfg, now)
	if err != nil {
		return ca.Config{}, err
	}
	profiles, err := newProfiles(cfg)
	if err != nil {
		return ca.Config{}, err
	}
	proxies, err := all.nodeProxies()
	if err != nil {
		return ca.Config{}, err
	}
	rules, err := newRules(cfg, proxies...)
	if err != nil {
		return ca.Config{}, err
	}
	keys, err := newKeyPolicy(cfg)
	if err != nil {
		return ca.Config{}, err
	}
	return ca.Config{Signer: backend, Profiles: profiles, Rule: rules.Decide, Requests: csr.Rules{Keys: keys, Wildcards: true}}, nil
}

// newRules builds the rules that decide who may have what. Rules that are built in and need more than the configuration, such as that of node proxies,
// come last.
func newRules(cfg *config.Config, last ...authorize.Named) (*authorize.Policy, error) {
	c := authorize.PolicyConfig{
		TrustDomain: cfg.TrustDomain, ServerProfile: serverProfile, Server: authorize.Server(serverProfile, serverNames(cfg)),
		First: []authorize.Named{{Name: "self", Rule: authorize.Self()}}, Last: last,
	}
	for _, rule := range cfg.Rules {
		c.Rules = append(c.Rules, newEntry(rule))
	}
	rules, err := authorize.NewPolicy(c)
	var wrong *authorize.RuleError
	if errors.As(err, &wrong) {
		path := fmt.Sprintf("rules[%d]", wrong.Index)
		if cfg.Rules[wrong.Index].IsCondition() {
			path += ".when" // the line where the expression begins
		}
		return nil, fmt.Errorf("%s: rules[%d], %w", cfg.Origin(path), wrong.Index, err)
	}
	return rules, err
}

func newEntry(rule config.Rule) authorize.Entry {
	if !rule.IsCondition() {
		return authorize.Entry{Grant: &authorize.Grant{Name: rule.Name, Profile: rule.Profile, Identity: rule.Identity, DNS: rule.DNS, IPs: rule.IP}}
	}
	effect := authorize.Allow
	if rule.Denies() {
		effect = authorize.Deny
	}
	return authorize.Entry{Condition: &authorize.Condition{
		Name: rule.Name, Effect: effect, Profiles: rule.Profiles, When: rule.When, MaxLifetime: rule.MaxLifetime,
	}}
}

func newProfiles(cfg *config.Config) (map[string]*profile.Profile, error) {
	profiles := make(map[string]*profile.Profile, len(cfg.Profiles)+1)
	add := func(c profile.Config) error {
		p, err := profile.New(c)
		if err != nil {
			return err
		}
		profiles[c.Name] = p
		return nil
	}
	for name, settings := range cfg.Profiles {
		if name == serverProfile {
			return nil, fmt.Errorf("profiles.%s: this name is the server's own; choose another", name)
		}
		c := profile.Config{
			Name: name, Names: profile.NameKind(settings.Names), DefaultLifetime: settings.DefaultLifetime, MinLifetime: settings.MinLifetime,
			MaxLifetime: settings.MaxLifetime,
		}
		for _, text := range settings.Usages {
			usage, ok := usages[text]
			if !ok {
				return nil, fmt.Errorf("profiles.%s.usages: %q is not known", name, text)
			}
			c.Usages = append(c.Usages, usage)
		}
		if err := add(c); err != nil {
			return nil, err
		}
	}
	lifetime := cfg.Server.CertificateLifetime
	return profiles, add(profile.Config{
		Name: serverProfile, Names: profile.NamesDNS, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DefaultLifetime: lifetime, MinLifetime: min(lifetime, 5*time.Minute), MaxLifetime: lifetime,
	})
}

func newKeyPolicy(cfg *config.Config) (keypolicy.Policy, error) {
	c := keypolicy.Config{}
	for _, name := range cfg.Keys.Algorithms {
		kind, ok := keyKinds[name]
		if !ok {
			return keypolicy.Policy{}, fmt.Errorf("keys.algorithms: %q is not known", name)
		}
		c.Allow = append(c.Allow, kind)
	}
	if path := cfg.Keys.BlockedFile; path != "" {
		blocked, err := blockedKeys(path)
		if err != nil {
			return keypolicy.Policy{}, fmt.Errorf("keys.blocked_file: %w", err)
		}
		c.Blocked = blocked.Contains
	}
	return keypolicy.New(c)
}

func blockedKeys(path string) (*keypolicy.BlockedKeys, error) {
	file, err := regularfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list, err := keypolicy.ReadBlockedKeys(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func serverNames(cfg *config.Config) identity.Names {
	return identity.Names{DNS: cfg.Server.DNSNames, IPs: cfg.Server.IPAddresses}.Normalize()
}

// validatePolicy says what a start would say of everything that the configuration names.
func validatePolicy(cfg *config.Config) error {
	silent := slog.New(slog.DiscardHandler)
	all, err := newClusters(cfg, nil, silent)
	if err != nil {
		return err
	}
	if _, err := newIssuers(cfg, nil, silent); err != nil {
		return err
	}
	policy, err := newPolicy(cfg, time.Now(), all)
	if err != nil {
		return err
	}
	return ca.Validate(policy, time.Now())
}
