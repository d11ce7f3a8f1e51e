package config

import (
	"cmp"
	"slices"
)

// reloadable returns the settings and sections that a running server takes over on SIGHUP.
func reloadable() []string {
	return []string{
		"log.level",
		"server.dns_names", "server.ip_addresses", "server.certificate_lifetime",
		"signer", "keys", "profiles", "rules",
	}
}

// takesEffectAtReload tells whether a running server takes path over on SIGHUP.
func takesEffectAtReload(path string) bool {
	return slices.ContainsFunc(reloadable(), func(section string) bool {
		return path == section || within(path, section)
	})
}

// RestartNeeded returns the dotted paths that differ between two configurations and take effect only when the server starts, in order.
func RestartNeeded(old, next *Config) []string {
	before := make(map[string]string)
	for _, s := range old.Settings() {
		before[s.Path] = inline(s.Value)
	}
	var paths []string
	for _, s := range next.Settings() {
		if v, ok := before[s.Path]; (!ok || v != inline(s.Value)) && !takesEffectAtReload(s.Path) {
			paths = append(paths, s.Path)
		}
		delete(before, s.Path)
	}
	for path := range before { // gone: only lists and profiles can shrink, should one of them ever need a restart
		if !takesEffectAtReload(path) {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, cmp.Compare[string])
	return paths
}
