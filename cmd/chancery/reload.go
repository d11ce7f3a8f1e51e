package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/internal/config"
)

// reloadOn loads the configuration again at each signal. What is wrong is said and changes nothing.
func (p *process) reloadOn(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
		}
		if err := p.reload(ctx); err != nil {
			p.reloads.WithLabelValues("failed").Inc()
			p.logger.ErrorContext(ctx, "reload failed; the server goes on with what it has", "error", err)
			continue
		}
		p.reloads.WithLabelValues("ok").Inc()
		bundle, _ := p.authority.Bundle()
		p.logger.InfoContext(ctx, "reloaded", "bundle_sequence", bundle.Sequence())
	}
}

func (p *process) reload(ctx context.Context) error {
	next, err := config.Load(p.path)
	if err != nil {
		return err
	}
	if fixed := config.RestartNeeded(p.config.Load(), next); len(fixed) > 0 {
		return fmt.Errorf("%s changed, which needs a restart; nothing was changed", strings.Join(fixed, ", "))
	}
	policy, err := newPolicy(next, time.Now(), p.clusters)
	if err != nil {
		return err
	}
	if err := p.keepsAnAnchor(policy, next.Signer.Driver); err != nil {
		return err
	}
	if err := p.authority.Replace(ctx, policy); err != nil {
		return err
	}
	p.config.Store(next)
	p.level.Set(next.Log.Level)
	// the new issuer and the new names show at once in what the server itself presents
	if err := p.serving.Renew(ctx); err != nil {
		p.logger.ErrorContext(ctx, "the new configuration is in use, but the server's own certificate is still the old one; it is tried again", "error", err)
	}
	return nil
}

// keepsAnAnchor refuses a bundle in which no trust anchor of the present one goes on. Whoever pinned these could not follow: not the clients, which refuse
// such a bundle, and not the verifiers of what was issued.
func (p *process) keepsAnAnchor(policy ca.Config, driver string) error {
	current, _ := p.authority.Bundle()
	next := policy.Signer.Roots()
	if slices.ContainsFunc(current.Anchors(), next.Contains) {
		return nil
	}
	return fmt.Errorf("signer.%s: none of the trust anchors in use is among its roots, so that everything issued until now would stop to verify; "+
		"keep the old anchors beside the new until nothing under them is left, or restart to change all of them at once", driver)
}
