package layers

// Chancery returns the rules of this module. A new package gets its place here, as low as what it imports allows.
func Chancery() Rules {
	return Rules{
		Module: "github.com/chancery-ca/chancery",
		Levels: []Level{
			{6, []string{"cmd/*", "test/*"}},
			{5, []string{"api/server", "api/web", "internal/controller/*"}},
			{4, []string{"ca"}},
			{3, []string{
				"ca/rotation", "ca/revocation", "ca/ledger/*", "signer/*", "internal/agent/*",
				"signer/cfssl/cfssltest",    // a server for tests
				"internal/controller/queue", // what the controllers are made of; it knows nothing of the authority
			}},
			{2, []string{"signer", "ca/profile", "ca/authorize", "ca/lint", "tokenreview", "internal/agent/renewal", "internal/inspect"}},
			{1, []string{"csr", "ca/chain", "ca/ledger", "ca/bundle", "api/client", "signer/keystore", "internal/admission", "internal/config", "internal/config/cfsslimport"}},
			{0, []string{
				"ca/errkind", "ca/identity", "ca/pem", "ca/der", "ca/keypolicy", "api/chancery/v1", "api/istio/v1",
				"internal/telemetry", "internal/layers", "internal/regularfile", "internal/expression",
			}},
		},
		Mutual: []string{"test/*"}, // test beds are there to be shared
		Only: []Only{
			{"github.com/cloudflare/cfssl", []string{"signer/cfssl", "internal/config/cfsslimport"}},
			{"github.com/google/cel-go", []string{"internal/expression"}},
			{"k8s.io/apiserver", []string{"internal/expression"}},
			{"k8s.io/client-go", []string{"tokenreview", "signer/kubecsr", "signer/keystore", "internal/controller", "cmd", "test"}},
			{"google.golang.org/grpc", []string{"api", "internal/agent", "signer/upstream", "cmd", "test"}},
		},
		Never: []Never{
			// The agent runs beside workloads: it must not carry code that holds or uses an authority's key. What is excepted reads and compares.
			{"cmd/chancery-agent", []string{"ca", "ca/*", "signer", "signer/*", "internal/expression"},
				[]string{"ca/errkind", "ca/identity", "ca/pem", "ca/der", "ca/keypolicy", "ca/chain", "ca/bundle"}},
		},
	}
}
