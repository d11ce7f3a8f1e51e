package config

import (
	"fmt"
	"strings"
	"time"
)

// cfssl checks the settings of the cfssl driver. What it cannot do without is looked for only where it is used.
func (v *checker) cfssl() {
	const path = "signer.cfssl."
	c := v.config.Signer.CFSSL
	used := v.config.Signer.Driver == "cfssl"
	switch {
	case c.Server == "" && used:
		v.bad(path+"server", "is empty; the driver needs https://HOST:PORT or unix:///PATH")
	case c.Server != "" && !strings.HasPrefix(c.Server, "https://") && !strings.HasPrefix(c.Server, "unix:///"):
		// not quoted: it may hold a password
		v.bad(path+"server", "is not https://HOST:PORT or unix:///PATH")
	case strings.HasPrefix(c.Server, "https://") && c.ServerCAFile == "":
		v.bad(path+"server_ca_file", "is empty; with https the server's certificate is verified by it alone")
	}
	if (c.ClientCertificate == "") != (c.ClientKey == "") {
		v.bad(v.latest(path+"client_certificate", path+"client_key"), "client_certificate and client_key belong together; set both or none")
	}
	isReference := strings.HasPrefix(c.AuthKey, "file:") || strings.HasPrefix(c.AuthKey, "env:")
	if !isReference && (c.AuthKey != "" || used) {
		// not quoted: it may be the key itself
		v.bad(path+"auth_key", "needs file:PATH or env:NAME; the key itself does not belong here")
	}
	v.filled(path+"roots", c.Roots)
	v.oneOf(path+"csr_subjects", c.CSRSubjects, "refuse", "send")
	v.oneOf(path+"serials", c.Serials, "reserved", "server")
	v.duration(path+"accept_earlier", c.AcceptEarlier, 0, day)
	v.duration(path+"accept_shorter", c.AcceptShorter, 0, longestLifetime)
	v.duration(path+"accept_longer", c.AcceptLonger, 0, longestLifetime)
	v.duration(path+"timeout", c.Timeout, 100*time.Millisecond, time.Minute)
	v.number(path+"max_connections", c.MaxConnections, 1000)
	v.cfsslProfiles(path+"profiles", c)
}

func (v *checker) cfsslProfiles(all string, c CFSSLSigner) {
	seen := make(map[string]int)
	v.count(all, len(c.Profiles), 0, 100)
	for i, p := range c.Profiles {
		path := fmt.Sprintf("%s[%d]", all, i)
		v.name(path+".profile", p.Profile)
		v.once(path+".profile", p.Profile, all, seen, i)
		v.filled(path+".name", p.Name)
		if p.Label != "" && p.Label != c.Label && c.Chain != "" {
			v.bad(path+".label", "differs from signer.cfssl.label, but one signer.cfssl.chain stands above all certificates; leave chain empty")
		}
	}
}
