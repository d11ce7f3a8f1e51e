package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"
)

// source is where one kind of object comes from.
type source struct {
	resource    string         // as RBAC names it
	example     runtime.Object // of the type of its objects
	byNode      bool           // its objects run on nodes
	noStreaming bool           // its lists cannot come by a watch
	list        func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch       func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

type sources struct{ pods, accounts, nodes source }

// sourcesOf makes clients with limits and a connection of their own, so that a long list does not stand in the way of token reviews.
func sourcesOf(access *rest.Config, config ViewConfig) (sources, error) {
	if access == nil {
		return sources{}, errors.New("tokenreview: there is no client configuration: give a kubeconfig, or run in a cluster")
	}
	if err := checkServer(access); err != nil {
		return sources{}, err
	}
	own := rest.CopyConfig(access)
	own.RateLimiter, own.QPS, own.Burst, own.UserAgent = nil, config.QPS, config.Burst, config.UserAgent
	own.Timeout = 0 // it would end watches; each call has a deadline of its own
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	own.DisableCompression = true // client-go shares connections between equal configurations: this makes it another one
	own.WarningHandler, own.WarningHandlerWithContext = rest.NoWarnings{}, nil

	httpClient, err := rest.HTTPClientFor(own)
	if err != nil {
		return sources{}, fmt.Errorf("making the client for the view of the cluster: %w", err)
	}
	// A redirect would carry our credential to whichever host it names.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	typed, err := coreclient.NewForConfigAndClient(own, httpClient)
	if err != nil {
		return sources{}, fmt.Errorf("making the client for the view of the cluster: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(own, httpClient)
	if err != nil {
		return sources{}, fmt.Errorf("making the client for the view of the cluster: %w", err)
	}
	return sourcesFrom(typed, meta), nil
}

// sourcesFrom reads pods as they are, since metadata does not say where they run and as whom; of the others metadata is enough, and a node's status is
// large.
func sourcesFrom(typed coreclient.PodsGetter, meta metadata.Interface) sources {
	return sources{pods: podSource(typed), accounts: metaSource(meta, "serviceaccounts"), nodes: metaSource(meta, "nodes")}
}

func podSource(typed coreclient.PodsGetter) source {
	pods := typed.Pods(metav1.NamespaceAll)
	return source{
		resource: "pods", example: &corev1.Pod{}, byNode: true, noStreaming: watchlist.DoesClientNotSupportWatchListSemantics(typed),
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := pods.List(ctx, options)
			if err != nil {
				return nil, err
			}
			slimList(list)
			return list, nil
		},
		watch: pods.Watch,
	}
}

func metaSource(meta metadata.Interface, resource string) source {
	objects := meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
	return source{
		resource: resource, example: &metav1.PartialObjectMetadata{}, noStreaming: watchlist.DoesClientNotSupportWatchListSemantics(meta),
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.List(ctx, options)
			if err != nil {
				return nil, err
			}
			slimList(list)
			return list, nil
		},
		watch: objects.Watch,
	}
}
