package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// ReviewerConfig says how an API server is called. Zero values mean the defaults.
type ReviewerConfig struct {
	// QPS and Burst limit the calls a second, for token reviews alone. Defaults 200 and 400.
	QPS   float32
	Burst int
	// Timeout bounds one call, at the least of it and the caller's deadline. Default 5s.
	Timeout time.Duration
	// UserAgent names us in the API server's audit log. Default "chancery-tokenreview".
	UserAgent string
}

// client is a Reviewer on an API server.
type client struct {
	reviews rest.Interface
	limiter flowcontrol.RateLimiter
}

// NewReviewer returns a Reviewer that calls the API server of config with limits of its own. config is copied. It refuses a config that does
// not verify the API server: whoever answers there says who may have a certificate.
func NewReviewer(config *rest.Config, limits ReviewerConfig) (Reviewer, error) {
	if config == nil {
		return nil, errors.New("tokenreview: there is no client configuration: give a kubeconfig, or run in a cluster")
	}
	if err := checkServer(config); err != nil {
		return nil, err
	}
	if limits.QPS < 0 || limits.Burst < 0 || limits.Timeout < 0 {
		return nil, errors.New("tokenreview: QPS, burst and timeout of the client must not be negative")
	}
	own := rest.CopyConfig(config)
	own.RateLimiter, own.QPS, own.Burst = nil, -1, 0 // the limiter is ours, so that reaching it is told apart from the server's trouble
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.Timeout = orDefault(limits.Timeout, 5*time.Second)
	own.UserAgent = orDefault(limits.UserAgent, "chancery-tokenreview")

	httpClient, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("making the client for token reviews: %w", err)
	}
	// A redirect would carry the token to whichever host it names.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	typed, err := authclient.NewForConfigAndClient(own, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client for token reviews: %w", err)
	}
	return &client{
		reviews: typed.RESTClient(),
		limiter: flowcontrol.NewTokenBucketRateLimiter(orDefault(limits.QPS, 200), orDefault(limits.Burst, 400)),
	}, nil
}

// Create posts review once. client-go's own retries are off: they would sleep in a slot for as long as the server's Retry-After says, where
// the caller can be told instead.
func (c *client) Create(ctx context.Context, review *authv1.TokenReview, options metav1.CreateOptions) (*authv1.TokenReview, error) {
	if err := c.limiter.Wait(ctx); err != nil {
		return nil, errors.Join(errPaced, err)
	}
	ctx = klog.NewContext(ctx, klog.Logger{}) // client-go logs request bodies, and so tokens, when klog is turned up
	object, err := c.reviews.Post().Resource("tokenreviews").VersionedParams(&options, scheme.ParameterCodec).
		MaxRetries(0).Body(review).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	answer, ok := object.(*authv1.TokenReview)
	if !ok { // Into would leave the answer empty, and so say that the token is bad
		return nil, fmt.Errorf("the API server answered with a %T", object)
	}
	return answer, nil
}

// checkServer refuses a client configuration that would take anybody's word for an API server's, or send tokens in the clear.
func checkServer(config *rest.Config) error {
	if config.Insecure {
		return errors.New("tokenreview: the client configuration does not verify the API server's certificate: " +
			"replace insecure-skip-tls-verify by its certificate-authority")
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reading the API server's address: %w", err)
	}
	if server.Scheme != "https" && !isLoopback(server) {
		return fmt.Errorf("tokenreview: the API server's address %s is not https: tokens would be sent in the clear; use https", server.Host)
	}
	return nil
}

func isLoopback(server *url.URL) bool {
	ip := net.ParseIP(server.Hostname())
	return ip.IsLoopback() || server.Hostname() == "localhost"
}

func orDefault[T comparable](value, standard T) T {
	var zero T
	if value == zero {
		return standard
	}
	return value
}
