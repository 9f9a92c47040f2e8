package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// object is an APIGateway, or an object of the Gateway API. Its spec is parsed only if it is
// needed and its generation is new, because controllers write the status far more often than
// a user writes the spec. The status is not decoded.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec runtime.RawExtension `json:"spec"`
}

type objectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []object `json:"items"`
}

// DeepCopyObject makes it a runtime.Object.
func (o *object) DeepCopyObject() runtime.Object {
	out := &object{TypeMeta: o.TypeMeta}
	o.DeepCopyInto(&out.ObjectMeta)
	o.Spec.DeepCopyInto(&out.Spec)
	return out
}

// DeepCopyObject makes it a runtime.Object.
func (l *objectList) DeepCopyObject() runtime.Object {
	out := &objectList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*object))
	}
	return out
}

// version is one generation of an APIGateway.
type version struct {
	uid        types.UID
	generation int64
	spec       []byte
}

func keepVersion(in *object) version { return version{in.UID, in.Generation, in.Spec.Raw} }

func sameVersion(a, b version) bool { return a.uid == b.uid && a.generation == b.generation }

// target is a version whose spec was parsed.
type target struct {
	version

	config          proxy.Config // without a table
	routes          []slipwayv1alpha1.Route
	unknownRoutes   map[int]string // fields that this program does not know, by index
	healthChecks    []slipwayv1alpha1.BackendHealthCheck
	unknownChecks   map[int]string
	policies        []slipwayv1alpha1.BackendPolicy
	unknownPolicies map[int]string
	tls             []slipwayv1alpha1.GatewayTLS
	unknownTLS      map[int]string
	streams         []slipwayv1alpha1.Stream
	unknownStreams  map[int]string
	clients         *slipwayv1alpha1.ClientCertificates // nil: nobody is asked
	behindProxy     bool                                // that ends the TLS of clients
	// believesEverybody tells that nobody has said which proxies are to be believed.
	believesEverybody bool

	names   apigateway.Names
	digests []string // of its routes
}

// wireSpec is the part of a spec that the gateway uses. A field that is neither here nor in
// operatorSpec comes from a later version. It may restrict access, so a spec with such a
// field is not served.
type wireSpec struct {
	operatorSpec

	Routes          []json.RawMessage `json:"routes"`
	HealthChecks    []json.RawMessage `json:"healthChecks"`
	BackendPolicies []json.RawMessage `json:"backendPolicies"`
	Connections     json.RawMessage   `json:"connections"`
	TLS             []json.RawMessage `json:"tls"`

	ClientCertificates json.RawMessage   `json:"clientCertificates"`
	Streams            []json.RawMessage `json:"streams"`
	TrustedProxies     []string          `json:"trustedProxies"`
	AccessLog          json.RawMessage   `json:"accessLog"`
	Expose             json.RawMessage   `json:"expose"` // the gateway only uses its type
}

// operatorSpec is the part that only the operator uses, so the gateway ignores its values.
// Gateways that already run know only these names. So new settings of the operator must go
// into one of these fields, or into pods, which no version of the API has yet.
type operatorSpec struct {
	Replicas         ignored `json:"replicas"`
	Image            ignored `json:"image"`
	ImagePullSecrets ignored `json:"imagePullSecrets"`
	Resources        ignored `json:"resources"`
	Autoscaling      ignored `json:"autoscaling"`
	DrainSeconds     ignored `json:"drainSeconds"`
	Pods             ignored `json:"pods"`
}

// ignored is a field whose value is not read.
type ignored struct{}

// UnmarshalJSON accepts any value.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// read parses a version. On an error the version cannot be served at all.
func (v version) read() (*target, error) {
	var wire wireSpec
	if err := readPart("spec", v.spec, &wire); err != nil {
		return nil, err
	}
	spec, err := wire.general()
	if err != nil {
		return nil, err
	}
	t := &target{version: v}
	t.spec = nil // to free its memory
	if t.routes, t.unknownRoutes, err = readAll[slipwayv1alpha1.Route]("spec.routes", wire.Routes); err != nil {
		return nil, err
	}
	if t.healthChecks, t.unknownChecks, err = readAll[slipwayv1alpha1.BackendHealthCheck]("spec.healthChecks", wire.HealthChecks); err != nil {
		return nil, err
	}
	if t.policies, t.unknownPolicies, err = readAll[slipwayv1alpha1.BackendPolicy]("spec.backendPolicies", wire.BackendPolicies); err != nil {
		return nil, err
	}
	if t.tls, t.unknownTLS, err = readAll[slipwayv1alpha1.GatewayTLS]("spec.tls", wire.TLS); err != nil {
		return nil, err
	}
	if t.streams, t.unknownStreams, err = readAll[slipwayv1alpha1.Stream]("spec.streams", wire.Streams); err != nil {
		return nil, err
	}
	t.digests = make([]string, len(t.routes))
	for i := range t.routes {
		if t.digests[i], err = document.Digest(&t.routes[i]); err != nil {
			return nil, fmt.Errorf("spec.routes[%d]: %w", i, err)
		}
	}
	t.clients, t.behindProxy, t.believesEverybody = spec.ClientCertificates, apigateway.BehindProxy(spec.Expose), apigateway.BelievesEverybody(spec)
	spec.TrustedProxies = apigateway.TrustedProxies(spec)
	t.names = apigateway.NamesOf(&slipwayv1alpha1.APIGatewaySpec{
		Routes: t.routes, BackendPolicies: t.policies, TLS: t.tls, Streams: t.streams, ClientCertificates: t.clients,
	})
	t.config, err = proxy.NewConfig(spec)
	return t, err
}

// general parses the fields about all requests.
func (w *wireSpec) general() (*slipwayv1alpha1.APIGatewaySpec, error) {
	spec := &slipwayv1alpha1.APIGatewaySpec{TrustedProxies: w.TrustedProxies}
	if err := readPart("spec.connections", w.Connections, &spec.Connections); err != nil {
		return nil, err
	}
	if err := readPart("spec.clientCertificates", w.ClientCertificates, &spec.ClientCertificates); err != nil {
		return nil, err
	}
	if err := readPart("spec.accessLog", w.AccessLog, &spec.AccessLog); err != nil {
		return nil, err
	}
	if len(w.Expose) > 0 { // the rest of it is for the operator
		if err := json.Unmarshal(w.Expose, &spec.Expose); err != nil {
			return nil, fmt.Errorf("spec.expose: %w", err)
		}
	}
	return spec, nil
}

// readPart parses a field without which nothing can be served, if it is set. An unknown
// field in it is an error.
func readPart[T any](field string, raw []byte, into *T) error {
	if len(raw) == 0 {
		return nil
	}
	name, err := readOne(raw, into)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", field, err)
	case name != "":
		return fmt.Errorf("%s.%s: this version of the gateway does not know the field", field, name)
	default:
		return nil
	}
}

// readAll parses a list. It also returns unknown fields, by index.
func readAll[T any](field string, raw []json.RawMessage) ([]T, map[int]string, error) {
	items, unknown := make([]T, len(raw)), map[int]string{}
	for i := range raw {
		name, err := readOne(raw[i], &items[i])
		if err != nil {
			return nil, nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		if name != "" {
			unknown[i] = name
		}
	}
	return items, unknown, nil
}

func readOne[T any](raw []byte, into *T) (unknown string, err error) {
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err = strict.Decode(into); err == nil {
		return "", nil
	}
	field, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !isUnknown {
		return "", err
	}
	var lenient T
	err = json.Unmarshal(raw, &lenient)
	*into = lenient
	return strings.Trim(field, `"`), err
}
