package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Bounds of lifetimes. 825 days is what TLS clients accept of a private authority's server certificate.
const (
	shortestLifetime = time.Second
	longestLifetime  = 825 * day
)

// validate checks every value against the bounds that default.yaml gives.
func validate(c *Config, found *problems) {
	v := &checker{config: c, found: found}
	v.trustDomain()
	v.listen()
	v.server()
	v.limits()
	v.drivers()
	v.authentication()
	v.istio()
	v.keys()
	v.profiles()
	v.rules()
}

func (v *checker) trustDomain() {
	if v.config.TrustDomain.IsZero() {
		v.bad("trust_domain", "is empty")
	}
}

func (v *checker) listen() {
	addresses := []struct{ path, value string }{
		{"listen.grpc", v.config.Listen.GRPC},
		{"listen.http", v.config.Listen.HTTP},
	}
	if v.config.Istio.Listen != "" {
		addresses = append(addresses, struct{ path, value string }{"istio.listen", v.config.Istio.Listen})
	}
	for i, a := range addresses {
		if !v.address(a.path, a.value) {
			continue
		}
		for _, b := range addresses[:i] {
			if !v.found.has(b.path) && collide(a.value, b.value) {
				v.bad(v.latest(a.path, b.path), "%s (%s) and %s (%s) cannot both be listened on", b.path, b.value, a.path, a.value)
			}
		}
	}
}

// address checks a host:port to listen on.
func (v *checker) address(path, value string) bool {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		v.bad(path, "%q is not host:port, such as \":8443\" or \"127.0.0.1:8443\"", value)
		return false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		v.bad(path, "%q is not a port from 0 to 65535", port)
		return false
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isDNSName(host) {
		v.bad(path, "%q is neither an IP address nor a DNS name", host)
		return false
	}
	return true
}

// collide tells whether two valid addresses cannot be listened on at once. Port 0 never collides.
func collide(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	all := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return portA == portB && portA != "0" && (hostA == hostB || all(hostA) || all(hostB))
}

func (v *checker) server() {
	s := v.config.Server
	v.count("server.dns_names", len(s.DNSNames), 0, 100)
	unique(v, "server.dns_names", s.DNSNames, func(path, name string) {
		if !isDNSName(name) {
			v.bad(path, "%q is not %s", name, dnsNameFormat)
		}
	})
	v.count("server.ip_addresses", len(s.IPAddresses), 0, 100)
	unique(v, "server.ip_addresses", s.IPAddresses, func(path string, addr netip.Addr) {
		if addr.IsUnspecified() || addr.IsMulticast() {
			v.bad(path, "%s is not the address of a server", addr)
		}
	})
	if len(s.DNSNames)+len(s.IPAddresses) == 0 && !v.found.has("server.ip_addresses") {
		v.bad("server.dns_names", "needs a name, or server.ip_addresses an address: clients have to know the server by one")
	}
	v.duration("server.certificate_lifetime", s.CertificateLifetime, 5*time.Minute, 90*day)
	v.duration("server.request_timeout", s.RequestTimeout, 100*time.Millisecond, 5*time.Minute)
	v.duration("server.drain_timeout", s.DrainTimeout, 100*time.Millisecond, 10*time.Minute)
}

func (v *checker) limits() {
	l := v.config.Limits
	v.number("limits.in_flight", l.InFlight, 100_000)
	v.within("limits.queue", float64(l.Queue), 1_000_000)
	v.number("limits.authenticating", l.Authenticating, 100_000)
	v.within("limits.identity_rate", l.IdentityRate, 100_000)
	v.number("limits.identity_burst", l.IdentityBurst, 100_000)
	v.within("limits.node_rate", l.NodeRate, 100_000)
	v.number("limits.node_burst", l.NodeBurst, 100_000)
	v.number("limits.callers", l.Callers, 10_000_000)
	v.within("limits.handshakes", float64(l.Handshakes), 100_000)
	v.number("limits.watchers", l.Watchers, 1_000_000)
	v.number("limits.connections", l.Connections, 1_000_000)
	v.number("limits.connections_per_address", l.PerAddress, 1_000_000)
}

func (v *checker) drivers() {
	c := v.config
	v.oneOf("log.format", c.Log.Format, "json", "text")
	v.oneOf("signer.driver", c.Signer.Driver, "local", "cfssl")
	v.filled("signer.local.certificate", c.Signer.Local.Certificate)
	v.filled("signer.local.key", c.Signer.Local.Key)
	v.filled("signer.local.roots", c.Signer.Local.Roots)
	v.cfssl()
	v.oneOf("ledger.driver", c.Ledger.Driver, "sqlite")
	v.filled("ledger.sqlite.path", c.Ledger.SQLite.Path)
}

func (v *checker) istio() {
	i := v.config.Istio
	v.words("istio.audiences", i.Audiences, 1, 16)
	if i.LifetimeJitter < 0 || i.LifetimeJitter > 0.2 {
		v.bad("istio.lifetime_jitter", "%v is not from 0 to 0.2", i.LifetimeJitter)
	}
}

func (v *checker) keys() {
	algorithms := v.config.Keys.Algorithms
	v.count("keys.algorithms", len(algorithms), 1, 7)
	unique(v, "keys.algorithms", algorithms, func(path, name string) {
		v.oneOf(path, name, "ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "ed25519", "rsa-2048", "rsa-3072", "rsa-4096")
	})
}

// isName tells whether s can name a profile, a rule or a cluster. Dots are left out: names are elements of dotted paths.
func isName(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

const nameFormat = `1 to 63 lower-case letters, digits and "-"`
