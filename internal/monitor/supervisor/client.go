package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// client reads lists and watches as bytes.
type client struct {
	rest *rest.RESTClient
}

const (
	// dialTimeout bounds one attempt to connect.
	dialTimeout = 5 * time.Second
	// streamWindow is how many bytes of a watch are taken from the network before they are read. The default of 4 MiB would
	// be gigabytes for some thousand watches that wait for the store.
	streamWindow = 128 << 10
)

// newClient does not change the access.
func newClient(access *rest.Config) (*client, error) {
	config := rest.CopyConfig(access)
	config.QPS = -1 // what is asked for is limited by the gate
	// A warning of the API server, for example that a version is deprecated, would be a log line at each request.
	config.WarningHandler = rest.NoWarnings{}
	if config.Dial == nil {
		// A dial of our own makes a transport of our own: the window is set for these requests only.
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Wrap(limitWindow)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the Status that says why something is refused
	config.GroupVersion, config.APIPath = &schema.GroupVersion{Version: "v1"}, "/api"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	made, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &client{rest: made}, nil
}

// limitWindow sets the window of a transport that has not been used yet.
func limitWindow(transport http.RoundTripper) http.RoundTripper {
	inner := transport
	for {
		wrapper, is := inner.(utilnet.RoundTripperWrapper)
		if !is {
			break
		}
		inner = wrapper.WrappedRoundTripper()
	}
	if plain, is := inner.(*http.Transport); is && plain != http.DefaultTransport {
		plain.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow}
	}
	return transport
}

// resourcePath is where the objects of a kind are, in all namespaces.
func resourcePath(kind change.Kind) []string {
	if kind.Group == "" {
		return []string{"api", kind.Version, kind.Resource}
	}
	return []string{"apis", kind.Group, kind.Version, kind.Resource}
}

// list returns a page of a list. A list without a limit has one page.
func (c *client) list(ctx context.Context, kind change.Kind, limit int64, from string) (io.ReadCloser, error) {
	request := c.rest.Get().AbsPath(resourcePath(kind)...).MaxRetries(0)
	if limit > 0 {
		request = request.Param("limit", strconv.FormatInt(limit, 10))
	}
	if from != "" {
		request = request.Param("continue", from)
	}
	return request.Stream(ctx)
}

// watch returns what happens after a resource version. The API server ends it after about that time.
func (c *client) watch(ctx context.Context, kind change.Kind, after string, during time.Duration) (io.ReadCloser, error) {
	return c.rest.Get().AbsPath(resourcePath(kind)...).MaxRetries(0).
		Param("watch", "true").
		Param("resourceVersion", after).
		Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(int64(during/time.Second), 10)).
		Stream(ctx)
}

// definition returns the UID of a definition and when it was made, as the API server has it now. There is no UID where there is
// no definition of that name.
func (c *client) definition(ctx context.Context, name string) (uid types.UID, made time.Time, err error) {
	raw, err := c.rest.Get().AbsPath(append(resourcePath(definitionKind), name)...).MaxRetries(0).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return "", time.Time{}, nil
	case err != nil:
		return "", time.Time{}, err
	}
	read := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, &read); err != nil {
		return "", time.Time{}, fmt.Errorf("read the definition %q: %w", name, err)
	}
	return read.UID, read.CreationTimestamp.Time, nil
}

// mayRead asks the API server whether the objects of a kind may be listed and watched, and returns what it says when they
// may not.
func (c *client) mayRead(ctx context.Context, kind change.Kind) (allowed bool, why string, err error) {
	for _, verb := range []string{"list", "watch"} {
		review := authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource,
			}},
		}
		body, err := json.Marshal(review)
		if err != nil {
			return false, "", err
		}
		answer, err := c.rest.Post().AbsPath("apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews").
			SetHeader("Content-Type", runtime.ContentTypeJSON).MaxRetries(0).Body(body).DoRaw(ctx)
		if err != nil {
			return false, "", err
		}
		if err := json.Unmarshal(answer, &review); err != nil {
			return false, "", err
		}
		if !review.Status.Allowed {
			return false, fmt.Sprintf("the verb %s is not allowed: %s", verb, review.Status.Reason), nil
		}
	}
	return true, "", nil
}
