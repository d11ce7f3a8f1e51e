// Package config loads the server's one YAML file, strictly: what it does not know, it refuses, with file, line and key, and all
// problems at once.
//
// The embedded default.yaml is the source of every default and the manual: what a setting means, its format, unit and bounds stand
// there as comments. A user's file is laid over it.
//
// The package never opens what a setting names (keys, databases, kubeconfigs), never reads the environment and never holds a secret:
// it says what was asked for, and the packages that act on a setting build their own checked values from it.
package config

import (
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"reflect"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/internal/regularfile"
)

// Config is every setting, loaded and within its bounds. Meaning and unit of each are in default.yaml. Treat it as read-only.
type Config struct {
	TrustDomain    spiffeid.TrustDomain `yaml:"trust_domain"`
	Listen         Listen               `yaml:"listen"`
	Server         Server               `yaml:"server"`
	Limits         Limits               `yaml:"limits"`
	Log            Log                  `yaml:"log"`
	Signer         Signer               `yaml:"signer"`
	Ledger         Ledger               `yaml:"ledger"`
	Authentication Authentication       `yaml:"authentication"`
	Istio          Istio                `yaml:"istio"`
	Keys           Keys                 `yaml:"keys"`
	Profiles       map[string]Profile   `yaml:"profiles"`
	Rules          []Rule               `yaml:"rules"`

	origins map[string]origin // by dotted path
}

// Listen holds the addresses of the servers, as host:port.
type Listen struct {
	GRPC string `yaml:"grpc"`
	HTTP string `yaml:"http"`
}

// Server describes the server's own certificate and its time limits.
type Server struct {
	DNSNames            []string      `yaml:"dns_names"`
	IPAddresses         []netip.Addr  `yaml:"ip_addresses"`
	CertificateLifetime time.Duration `yaml:"certificate_lifetime"`
	RequestTimeout      time.Duration `yaml:"request_timeout"`
	DrainTimeout        time.Duration `yaml:"drain_timeout"`
}

// Limits bounds what the server carries at once.
type Limits struct {
	InFlight       int     `yaml:"in_flight"`
	Adaptive       bool    `yaml:"adaptive"`
	Queue          int     `yaml:"queue"`
	Authenticating int     `yaml:"authenticating"`
	IdentityRate   float64 `yaml:"identity_rate"` // a second; 0: no limit
	IdentityBurst  int     `yaml:"identity_burst"`
	NodeRate       float64 `yaml:"node_rate"` // a second; 0: no limit
	NodeBurst      int     `yaml:"node_burst"`
	Callers        int     `yaml:"callers"`
	Handshakes     int     `yaml:"handshakes"` // 0: two for each processor
	Watchers       int     `yaml:"watchers"`
	Connections    int     `yaml:"connections"`
	PerAddress     int     `yaml:"connections_per_address"`
}

// Log describes the server's log.
type Log struct {
	Level  slog.Level `yaml:"level"`
	Format string     `yaml:"format"` // json or text
}

// Signer says who holds the signing key.
type Signer struct {
	Driver string      `yaml:"driver"` // local or cfssl
	Local  LocalSigner `yaml:"local"`
	CFSSL  CFSSLSigner `yaml:"cfssl"`
}

// CFSSLSigner says which CFSSL server signs, how it is known, and what it may choose itself. Server and AuthKey are empty unless the driver is used.
type CFSSLSigner struct {
	Server            string         `yaml:"server"`
	ServerCAFile      string         `yaml:"server_ca_file" config:"path"`
	ServerName        string         `yaml:"server_name"`
	ClientCertificate string         `yaml:"client_certificate" config:"path"`
	ClientKey         string         `yaml:"client_key" config:"path"`
	AuthKey           string         `yaml:"auth_key" config:"reference"` // file:PATH or env:NAME
	Roots             string         `yaml:"roots" config:"path"`
	Chain             string         `yaml:"chain" config:"path"` // empty: the server is asked
	Label             string         `yaml:"label"`
	Profiles          []CFSSLProfile `yaml:"profiles"`
	CSRSubjects       string         `yaml:"csr_subjects"` // refuse or send
	Serials           string         `yaml:"serials"`      // reserved or server
	AcceptEarlier     time.Duration  `yaml:"accept_earlier"`
	AcceptShorter     time.Duration  `yaml:"accept_shorter"`
	AcceptLonger      time.Duration  `yaml:"accept_longer"`
	Timeout           time.Duration  `yaml:"timeout"`
	MaxConnections    int            `yaml:"max_connections"`
}

// CFSSLProfile is what the CFSSL server calls one of the profiles.
type CFSSLProfile struct {
	Profile string `yaml:"profile"`
	Name    string `yaml:"name"`
	Label   string `yaml:"label" config:"optional"` // empty: that of CFSSLSigner
}

// LocalSigner names the files of the local driver.
type LocalSigner struct {
	Certificate string `yaml:"certificate" config:"path"`
	Key         string `yaml:"key" config:"path"`
	Roots       string `yaml:"roots" config:"path"`
}

// Ledger says where the roll of issuances is.
type Ledger struct {
	Driver string `yaml:"driver"` // sqlite
	SQLite SQLite `yaml:"sqlite"`
}

// SQLite names the database file of the sqlite driver.
type SQLite struct {
	Path string `yaml:"path" config:"path"`
}

// Authentication holds the ways in which callers prove who they are.
type Authentication struct {
	JoinTokens   JoinTokens   `yaml:"join_tokens"`
	Certificates Certificates `yaml:"certificates"`
	OIDC         []OIDC       `yaml:"oidc"`
	Kubernetes   Kubernetes   `yaml:"kubernetes"`
}

// JoinTokens accepts one-time tokens.
type JoinTokens struct {
	Enabled bool `yaml:"enabled"`
}

// Certificates accepts certificates of ours, for their own renewal.
type Certificates struct {
	Enabled bool          `yaml:"enabled"`
	Origins []string      `yaml:"origins"` // join_token, oidc, kubernetes
	Grace   time.Duration `yaml:"grace"`
}

// OIDC accepts the ID tokens of an OpenID Connect issuer.
type OIDC struct {
	Name       string   `yaml:"name"`
	Issuer     string   `yaml:"issuer"`
	Audiences  []string `yaml:"audiences"`
	Identity   string   `yaml:"identity" config:"text"` // CEL
	JWKSURL    string   `yaml:"jwks_url" config:"optional"`
	JWKSFile   string   `yaml:"jwks_file" config:"path,optional"`
	CAFile     string   `yaml:"ca_file" config:"path,optional"`
	Algorithms []string `yaml:"algorithms" config:"optional"`
}

// Kubernetes accepts service-account tokens.
type Kubernetes struct {
	Enabled           bool          `yaml:"enabled"`
	Cluster           string        `yaml:"cluster"`
	Kubeconfig        string        `yaml:"kubeconfig" config:"path"` // empty: in-cluster
	Mode              string        `yaml:"mode"`                     // tokenreview, offline+liveness or offline
	Issuer            string        `yaml:"issuer"`
	JWKSURL           string        `yaml:"jwks_url"`
	JWKSFile          string        `yaml:"jwks_file" config:"path"`
	CAFile            string        `yaml:"ca_file" config:"path"`
	Audiences         []string      `yaml:"audiences"`
	ClusterIDs        []string      `yaml:"cluster_ids"`
	MaxStaleness      time.Duration `yaml:"max_staleness"`
	NodeBoundTokens   bool          `yaml:"node_bound_tokens"`
	NodeProxies       []string      `yaml:"node_proxies"` // NAMESPACE/NAME of service accounts
	SPIFFEID          string        `yaml:"spiffe_id"`    // a template of the path
	EnforceWarnAfter  bool          `yaml:"enforce_warn_after"`
	Algorithms        []string      `yaml:"algorithms"`
	Timeout           time.Duration `yaml:"timeout"`
	QPS               int           `yaml:"qps"`
	Burst             int           `yaml:"burst"`
	MaxInFlight       int           `yaml:"max_in_flight"`
	CacheSize         int           `yaml:"cache_size"`
	CacheTTL          time.Duration `yaml:"cache_ttl"`
	NegativeCacheSize int           `yaml:"negative_cache_size"`
	NegativeCacheTTL  time.Duration `yaml:"negative_cache_ttl"`
	Clusters          []Cluster     `yaml:"clusters"`
}

// Cluster is a further cluster whose service-account tokens are accepted. What it has no key for it shares with Kubernetes; an optional key that is
// absent is empty, not shared, unless default.yaml says otherwise.
type Cluster struct {
	Name        string   `yaml:"name"`
	Mode        string   `yaml:"mode"`
	Kubeconfig  string   `yaml:"kubeconfig" config:"path,optional"` // only mode offline can do without
	Issuer      string   `yaml:"issuer"`
	JWKSURL     string   `yaml:"jwks_url" config:"optional"`
	JWKSFile    string   `yaml:"jwks_file" config:"path,optional"`
	CAFile      string   `yaml:"ca_file" config:"path,optional"`
	Audiences   []string `yaml:"audiences" config:"optional"` // empty: those of Kubernetes, and of Istio for its API
	ClusterIDs  []string `yaml:"cluster_ids" config:"optional"`
	NodeProxies []string `yaml:"node_proxies" config:"optional"`
	SPIFFEID    string   `yaml:"spiffe_id" config:"optional"` // empty: that of Kubernetes
}

// Istio describes Istio's certificate API.
type Istio struct {
	Enabled        bool     `yaml:"enabled"`
	Listen         string   `yaml:"listen"` // empty: shares Listen.GRPC
	Audiences      []string `yaml:"audiences"`
	LifetimeJitter float64  `yaml:"lifetime_jitter"` // a share of the lifetime
}

// Keys says which keys may be certified.
type Keys struct {
	Algorithms  []string `yaml:"algorithms"`
	BlockedFile string   `yaml:"blocked_file" config:"path"` // empty: none
}

// Profile is a kind of certificate.
type Profile struct {
	Names           string        `yaml:"names"`  // spiffe or dns
	Usages          []string      `yaml:"usages"` // server_auth, client_auth
	DefaultLifetime time.Duration `yaml:"default_lifetime"`
	MinLifetime     time.Duration `yaml:"min_lifetime"`
	MaxLifetime     time.Duration `yaml:"max_lifetime"`
}

// Rule says who may hold which names beyond its own identity. It is one of two: with Profile, Identity, DNS and IP it grants names; with When it is a
// condition, and Effect, Profiles and MaxLifetime go with it. Keys of the other form are empty.
type Rule struct {
	Name        string         `yaml:"name"`
	Profile     string         `yaml:"profile" config:"optional"`
	Identity    string         `yaml:"identity" config:"optional"` // a SPIFFE ID, or one that ends in /*
	DNS         []string       `yaml:"dns" config:"optional"`
	IP          []netip.Prefix `yaml:"ip" config:"optional"`        // an address has the full length
	Effect      string         `yaml:"effect" config:"optional"`    // allow or deny; empty is allow
	Profiles    []string       `yaml:"profiles" config:"optional"`  // empty: every profile
	When        string         `yaml:"when" config:"optional,text"` // CEL
	MaxLifetime time.Duration  `yaml:"max_lifetime" config:"optional"`
}

// IsCondition tells which of the two forms the rule has.
func (r Rule) IsCondition() bool { return r.When != "" }

// Denies tells whether the rule is a condition that denies.
func (r Rule) Denies() bool { return r.Effect == effectDeny }

//go:embed default.yaml
var defaultYAML []byte

const defaultName = "default.yaml"

// Default returns the configuration of an empty file. Its paths stay relative.
func Default() *Config {
	c, err := Parse(defaultName, nil, "")
	if err != nil {
		panic(fmt.Sprintf("embedded %s: %v", defaultName, err)) //nolint:forbidigo // a build that the package's tests refuse
	}
	return c
}

// Load reads the file at path over the defaults. Its relative paths, and those of the defaults, start at the file's folder. The error
// is a *Error when the content is at fault.
func Load(path string) (*Config, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("locating the configuration: %w", err)
	}
	f, err := regularfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1)) // what is too long is told with the other problems
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(path, data, dir)
}

// Parse lays data over the defaults. Problems and origins call the data by name. Relative paths are resolved against dir, which is
// absolute; with an empty dir they stay as written.
func Parse(name string, data []byte, dir string) (*Config, error) {
	c := &Config{origins: make(map[string]origin)}
	found := &problems{name: name}
	for _, source := range []struct {
		name string
		data []byte
	}{{"", defaultYAML}, {name, data}} {
		root := document(source.data, found)
		if root == nil {
			continue
		}
		d := &decoder{file: source.name, dir: dir, origins: c.origins, problems: found}
		d.mapping("", root, reflect.ValueOf(c).Elem(), false)
	}
	validate(c, found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return c, nil
}
