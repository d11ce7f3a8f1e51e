package kubetest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const auditLogFile = "audit.log"

// auditPolicy is a policy (audit.k8s.io/v1) that records who asks for what and never a body, of service accounts alone.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

func (c *Cluster) auditFlags() ([]string, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	policy := filepath.Join(c.Dir, "audit-policy.yaml")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(c.Dir, auditLogFile)},
		os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// Request is one that the API server has got.
type Request struct {
	User      string // system:serviceaccount:NAMESPACE:NAME
	UserAgent string
	Verb      string // of RBAC: get, list, watch, create ...
	Resource  string // with its subresource, or a path that is of no resource
	Code      int    // HTTP status
}

// Requests returns what a user has asked the API server of a cluster with an AuditLog, in order. A request is in it once it is answered, and a watch once it
// has begun.
func (c *Cluster) Requests(t testing.TB, user string) []Request {
	t.Helper()
	log, err := os.Open(filepath.Join(c.Dir, auditLogFile))
	if err != nil {
		t.Fatalf("reading the audit log: %v", err)
	}
	defer log.Close()
	var requests []Request
	seen := make(map[string]bool)
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the end, perhaps with half a line of a request that is just being answered
			return requests
		}
		var event struct {
			AuditID    string `json:"auditID"`
			RequestURI string `json:"requestURI"`
			Verb       string `json:"verb"`
			UserAgent  string `json:"userAgent"`
			User       struct {
				Username string `json:"username"`
			} `json:"user"`
			ObjectRef struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("reading the audit log: %v", err)
		}
		if event.User.Username != user || seen[event.AuditID] { // a watch has an event for its beginning and one for its end
			continue
		}
		seen[event.AuditID] = true
		resource := event.ObjectRef.Resource
		switch {
		case resource == "":
			resource, _, _ = strings.Cut(event.RequestURI, "?")
		case event.ObjectRef.Subresource != "":
			resource += "/" + event.ObjectRef.Subresource
		}
		requests = append(requests, Request{
			User: event.User.Username, UserAgent: event.UserAgent, Verb: event.Verb, Resource: resource, Code: event.ResponseStatus.Code,
		})
	}
}

// RequestTotal is the API server's own count, apiserver_request_total, of the requests for a resource by anyone. It starts at zero with the API server.
func (c *Cluster) RequestTotal(t testing.TB, resource string) int {
	t.Helper()
	text, err := c.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("reading the API server's metrics: %v", err)
	}
	total := 0.0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="`+resource+`"`) {
			continue
		}
		fields := strings.Fields(line)
		n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatalf("reading the API server's metrics: %v", err)
		}
		total += n
	}
	return int(total)
}
