package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

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
	policy, err := newPolicy(next, time.Now())
	if err != nil {
		return err
	}
	if err := p.authority.Replace(ctx, policy); err != nil {
		return err
	}
	p.config.Store(next)
	p.level.Set(next.Log.Level)
	// the new issuer and the new names show at once in what the server itself presents
	if err := p.serving.Renew(ctx); err != nil {
		return fmt.Errorf("the new configuration is in use, but the server's own certificate is still the old one, and will be tried again: %w", err)
	}
	return nil
}
