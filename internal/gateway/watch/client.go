package watch

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// These are the waits of a reflector between failed attempts: the first wait, the longest
// wait, and the time without a failure after which the first wait applies again. While a
// reflector waits, the gateway's configuration may be stale. So the waits are shorter than
// client-go's defaults.
const (
	firstDelay  = 50 * time.Millisecond
	maxDelay    = time.Second
	resetDelays = time.Minute
)

// dialTimeout bounds one attempt to connect to the API server.
const dialTimeout = 2 * time.Second

// gatewayVersion is the version of the Gateway API that is read. olderGatewayVersion is that of ReferenceGrants where the
// definitions are older than v1.5.
var (
	gatewayVersion      = schema.GroupVersion(gatewayv1.GroupVersion)
	olderGatewayVersion = schema.GroupVersion{Group: gatewayv1.GroupName, Version: "v1beta1"}
)

// clients are the clients for the kinds that a gateway reads. They share one connection. A
// generated clientset would add all kinds of the API to the program.
type clients struct {
	namespace string
	core      *rest.RESTClient
	discovery *rest.RESTClient
	slipway   *rest.RESTClient
	gateway   *rest.RESTClient // for the Gateway API
	older     *rest.RESTClient // for its older version
}

// newClients does not change access.
func newClients(access *rest.Config, namespace string) (*clients, error) {
	access = rest.CopyConfig(access)
	access.QPS = -1 // no rate limit: a gateway sends few requests, but all at the start
	if access.Dial == nil {
		// The kernel doubles the time between its attempts to connect. A new attempt from
		// here comes sooner.
		access.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	http, err := rest.HTTPClientFor(access)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	scheme := newScheme()
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	c := &clients{namespace: namespace}
	for _, group := range []struct {
		client  **rest.RESTClient
		version schema.GroupVersion
		path    string
		content string
	}{
		{&c.core, corev1.SchemeGroupVersion, "/api", runtime.ContentTypeProtobuf},
		{&c.discovery, discoveryv1.SchemeGroupVersion, "/apis", runtime.ContentTypeProtobuf},
		{&c.slipway, slipwayv1alpha1.SchemeGroupVersion, "/apis", runtime.ContentTypeJSON},
		{&c.gateway, gatewayVersion, "/apis", runtime.ContentTypeJSON},
		{&c.older, olderGatewayVersion, "/apis", runtime.ContentTypeJSON},
	} {
		config := rest.CopyConfig(access)
		config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &group.version, group.path, codecs
		config.ContentType, config.AcceptContentTypes = group.content, group.content
		if *group.client, err = rest.RESTClientForConfigAndClient(config, http); err != nil {
			return nil, fmt.Errorf("make a client for %s: %w", group.version, err)
		}
	}
	return c, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Service{}, &corev1.ServiceList{}, &corev1.Secret{}, &corev1.SecretList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Namespace{}, &corev1.NamespaceList{})
	scheme.AddKnownTypes(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{})
	slipway := slipwayv1alpha1.SchemeGroupVersion
	for _, kind := range []string{"APIGateway", "GatewayPolicy"} {
		scheme.AddKnownTypeWithName(slipway.WithKind(kind), &object{})
		scheme.AddKnownTypeWithName(slipway.WithKind(kind+"List"), &objectList{})
	}
	for _, kind := range []string{"Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "ReferenceGrant", "BackendTLSPolicy", "ListenerSet"} {
		scheme.AddKnownTypeWithName(gatewayVersion.WithKind(kind), &object{})
		scheme.AddKnownTypeWithName(gatewayVersion.WithKind(kind+"List"), &objectList{})
	}
	scheme.AddKnownTypeWithName(olderGatewayVersion.WithKind("ReferenceGrant"), &object{})
	scheme.AddKnownTypeWithName(olderGatewayVersion.WithKind("ReferenceGrantList"), &objectList{})
	for _, version := range []schema.GroupVersion{corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, slipway, gatewayVersion, olderGatewayVersion} {
		metav1.AddToGroupVersion(scheme, version)
	}
	return scheme
}

// list returns a ListWatch for all objects of a kind in the gateway's namespace, or for the
// one with a name.
func (c *clients) list(client cache.Getter, resource, name string) *cache.ListWatch {
	return listIn(client, resource, c.namespace, name)
}

// listIn does the same for any namespace. An empty one means all, or that the kind has none.
func listIn(client cache.Getter, resource, namespace, name string) *cache.ListWatch {
	selector := fields.Everything()
	if name != "" {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	}
	return cache.NewListWatchFromClient(client, resource, namespace, selector)
}

// newest returns the list and watch of the newer version of a kind, and of the older one where the cluster does not serve
// the newer. It asks anew each time, because definitions are replaced.
func newest(newer, older *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := newer.ListWithContextFunc(ctx, options)
			if apierrors.IsNotFound(err) {
				return older.ListWithContextFunc(ctx, options)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			stream, err := newer.WatchFuncWithContext(ctx, options)
			if apierrors.IsNotFound(err) {
				return older.WatchFuncWithContext(ctx, options)
			}
			return stream, err
		},
	}
}

// reflect keeps a store up to date until the context ends. failed is called with each
// error. The reflector then tries again.
func reflect(ctx context.Context, what string, from cache.ListerWatcher, kind any, store cache.ReflectorStore, failed func(error)) {
	backoff := wait.Backoff{Duration: firstDelay, Factor: 2, Jitter: 0.5, Cap: maxDelay, Steps: 10}
	reflector := cache.NewReflectorWithOptions(from, kind, store, cache.ReflectorOptions{
		Name: what, TypeDescription: what, Backoff: &backoff,
	})
	delay := backoff.DelayWithReset(clock.RealClock{}, resetDelays)
	_ = delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		return false, nil
	})
}
