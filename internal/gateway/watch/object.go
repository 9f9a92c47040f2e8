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
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
)

// object is an APIGateway whose spec is read only when its generation is new: the
// operator writes the status far more often than a user writes the spec.
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

// version is an APIGateway at one of its generations.
type version struct {
	uid        types.UID
	generation int64
	spec       []byte
}

func keepVersion(in *object) version { return version{in.UID, in.Generation, in.Spec.Raw} }

func sameVersion(a, b version) bool { return a.uid == b.uid && a.generation == b.generation }

// target is a version that has been read.
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

	services map[string]bool // that it names
	secrets  map[string]bool
	digests  []string // of its routes
}

// wireSpec is the part of a spec that is the gateway's business. A field that is neither here
// nor in operatorSpec is one of a later version, and may be one that keeps requests out: a
// spec with it is not served.
type wireSpec struct {
	operatorSpec

	Routes          []json.RawMessage `json:"routes"`
	HealthChecks    []json.RawMessage `json:"healthChecks"`
	BackendPolicies []json.RawMessage `json:"backendPolicies"`
	Connections     json.RawMessage   `json:"connections"`
	TLS             []json.RawMessage `json:"tls"`
	TrustedProxies  []string          `json:"trustedProxies"`
	AccessLog       json.RawMessage   `json:"accessLog"`
	Expose          json.RawMessage   `json:"expose"` // of which the gateway knows the type
}

// operatorSpec is the part that is the operator's business, whatever is in it. Nothing can be
// added for gateways that run already: what else the operator will let users say goes into
// one of these, or into pods, which no version of the API has yet.
type operatorSpec struct {
	Replicas         ignored `json:"replicas"`
	Image            ignored `json:"image"`
	ImagePullSecrets ignored `json:"imagePullSecrets"`
	Resources        ignored `json:"resources"`
	Autoscaling      ignored `json:"autoscaling"`
	DrainSeconds     ignored `json:"drainSeconds"`
	Pods             ignored `json:"pods"`
}

// ignored is a field of which only the name matters.
type ignored struct{}

// UnmarshalJSON takes anything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// privateRanges are where the proxies of a cluster have their addresses.
var privateRanges = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}

// read reads a version. On an error it cannot be served at all.
func (v version) read() (*target, error) {
	var wire wireSpec
	if err := readPart("spec", v.spec, &wire); err != nil {
		return nil, err
	}
	spec, err := wire.general()
	if err != nil {
		return nil, err
	}
	t := &target{version: v, services: map[string]bool{}, secrets: map[string]bool{}}
	t.spec = nil // it is not needed any more
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
	t.digests = make([]string, len(t.routes))
	for i := range t.routes {
		t.addNames(&t.routes[i])
		if t.digests[i], err = revision.Digest(&t.routes[i]); err != nil {
			return nil, fmt.Errorf("spec.routes[%d]: %w", i, err)
		}
	}
	for i := range t.tls {
		t.secrets[t.tls[i].SecretRef.Name] = true
	}
	t.config, err = proxy.NewConfig(spec)
	return t, err
}

// general reads what is about all requests.
func (w *wireSpec) general() (*slipwayv1alpha1.APIGatewaySpec, error) {
	spec := &slipwayv1alpha1.APIGatewaySpec{TrustedProxies: w.TrustedProxies}
	if err := readPart("spec.connections", w.Connections, &spec.Connections); err != nil {
		return nil, err
	}
	if err := readPart("spec.accessLog", w.AccessLog, &spec.AccessLog); err != nil {
		return nil, err
	}
	if len(w.Expose) > 0 { // what else is in it is the operator's business
		if err := json.Unmarshal(w.Expose, &spec.Expose); err != nil {
			return nil, fmt.Errorf("spec.expose: %w", err)
		}
	}
	if spec.TrustedProxies == nil && behindProxy(spec.Expose) {
		spec.TrustedProxies = privateRanges
	}
	return spec, nil
}

// readPart reads a part without which nothing can be served, if it is there. A field that is
// not known is an error.
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

// readAll also returns fields, by index, that this program does not know.
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

// behindProxy reports whether a proxy of the cluster stands in front of the gateway.
func behindProxy(expose *slipwayv1alpha1.Expose) bool {
	if expose == nil {
		return true
	}
	switch expose.Type {
	case "", slipwayv1alpha1.ExposeIngress, slipwayv1alpha1.ExposeHTTPRoute:
		return true
	default:
		return false
	}
}

// addNames collects the Services and Secrets that a route names.
func (t *target) addNames(route *slipwayv1alpha1.Route) {
	if route.BackendService != nil {
		t.services[string(route.BackendService.Name)] = true
	}
	for _, backend := range route.Backends {
		t.services[string(backend.Name)] = true
	}
	if route.Mirror != nil {
		t.services[string(route.Mirror.BackendService.Name)] = true
	}
	if route.Auth == nil {
		return
	}
	if in := route.Auth.APIKey; in != nil {
		t.secrets[in.SecretRef.Name] = true
	}
	if in := route.Auth.Basic; in != nil {
		t.secrets[in.SecretRef.Name] = true
	}
	if in := route.Auth.JWT; in != nil && in.JWKSSecretRef != nil {
		t.secrets[in.JWKSSecretRef.Name] = true
	}
}
