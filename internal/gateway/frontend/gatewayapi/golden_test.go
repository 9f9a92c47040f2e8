package gatewayapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// output is what a golden file holds of a graph.
type output struct {
	Gateway   []string         `json:"gateway"`
	Listeners []listener       `json:"listeners"`
	Sets      []policy         `json:"listenerSets,omitempty"`
	Routes    []route          `json:"routes,omitempty"`
	Rules     []map[string]any `json:"rules,omitempty"`
	Settings  map[string]any   `json:"settings,omitempty"`
	TLS       map[string]any   `json:"tls,omitempty"`
	Shown     string           `json:"clientCertificate,omitempty"`
	Policies  []policy         `json:"policies,omitempty"`
	Attached  []attached       `json:"gatewayPolicies,omitempty"`
}

type listener struct {
	Name         string   `json:"name"`
	Valid        bool     `json:"valid"`
	Attached     int32    `json:"attachedRoutes"`
	Kinds        []string `json:"supportedKinds"`
	Certificates []string `json:"certificates,omitempty"`
	Clients      any      `json:"clients,omitempty"`
	Conditions   []string `json:"conditions"`
}

type policy struct {
	Name       string   `json:"name"`
	Conditions []string `json:"conditions"`
}

type attached struct {
	Name       string   `json:"name"`
	Served     bool     `json:"served"`
	Limit      bool     `json:"sharesLimit,omitempty"`
	Sessions   bool     `json:"sharesAffinity,omitempty"`
	Conditions []string `json:"conditions"`
}

type route struct {
	Name    string   `json:"name"`
	Shares  bool     `json:"sharesAffinity,omitempty"`
	Parents []parent `json:"parents"`
}

type parent struct {
	Refused    *gatewayapi.Refusal       `json:"refused,omitempty"`
	Ref        gatewayv1.ParentReference `json:"parentRef"`
	Listeners  []int                     `json:"listeners,omitempty"`
	Behind     bool                      `json:"behind,omitempty"`
	Conditions []string                  `json:"conditions"`
}

// Each file of testdata describes a cluster; the one beside it says what becomes of it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.yaml"), func(t *testing.T) {
			got, err := yaml.Marshal(describe(t, gatewayapi.Build(read(t, file))))
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func describe(t *testing.T, g *gatewayapi.Graph) output {
	t.Helper()
	out := output{Gateway: texts(g.Accepted, g.ResolvedRefs), Settings: map[string]any{}, TLS: map[string]any{}}
	for _, l := range g.Listeners {
		made := listener{Name: l.Key(), Valid: l.Valid, Attached: l.Attached, Conditions: texts(l.Conditions...), Kinds: []string{}}
		for _, kind := range l.Kinds {
			made.Kinds = append(made.Kinds, string(kind.Kind))
		}
		for _, name := range l.Certificates {
			made.Certificates = append(made.Certificates, name.String())
		}
		if l.Clients != nil {
			made.Clients = whatIsSet(t, l.Clients)
		}
		out.Listeners = append(out.Listeners, made)
	}
	for _, s := range g.Sets {
		out.Sets = append(out.Sets, policy{Name: s.Name.String(), Conditions: texts(s.Accepted)})
	}
	for _, r := range g.Routes {
		made := route{Name: string(r.Kind) + " " + r.Name.String(), Shares: r.SharesAffinity}
		for _, p := range r.Parents {
			made.Parents = append(made.Parents, parent{Ref: p.Ref, Listeners: p.Listeners, Behind: p.Behind, Refused: p.Refused, Conditions: texts(p.Conditions...)})
		}
		out.Routes = append(out.Routes, made)
	}
	for _, rule := range g.Rules {
		made := rule.Rule
		made.Auth = nil // what it holds of Secrets is no text
		fields, _ := whatIsSet(t, made).(map[string]any)
		if rule.Auth != nil {
			fields["Auth"] = rule.Auth.ID
			if rule.Auth.External != nil {
				fields["External"] = whatIsSet(t, rule.Auth.External)
			}
		}
		out.Rules = append(out.Rules, fields)
	}
	for name, settings := range g.Settings {
		out.Settings[name.String()] = whatIsSet(t, settings)
	}
	for name, with := range g.TLS {
		out.TLS[name.String()] = whatIsSet(t, with)
	}
	for _, p := range g.Policies {
		out.Policies = append(out.Policies, policy{Name: p.Name.String(), Conditions: texts(p.Conditions...)})
	}
	for _, p := range g.GatewayPolicies {
		out.Attached = append(out.Attached, attached{Name: p.Name.String(), Served: p.Served, Limit: p.SharesLimit, Sessions: p.SharesAffinity, Conditions: texts(p.Conditions...)})
	}
	if g.Insecure != nil {
		out.Gateway = append(out.Gateway, texts(*g.Insecure)...)
	}
	if g.ClientCertificate != nil {
		out.Shown = g.ClientCertificate.String()
	}
	return out
}

// texts are conditions in a line each.
func texts(conditions ...metav1.Condition) []string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, fmt.Sprintf("%s is %s for generation %d, %s: %s", c.Type, c.Status, c.ObservedGeneration, c.Reason, c.Message))
	}
	return lines
}

// whatIsSet are the fields of a value that are not zero, by name.
func whatIsSet(t *testing.T, of any) any {
	t.Helper()
	raw, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return trim(fields)
}

func trim(fields any) any {
	switch fields := fields.(type) {
	case map[string]any:
		for name, field := range fields {
			if none, is := field.([]any); trim(field) == nil || is && name == "Statuses" && cmp.Equal(none, []any{0.0, 0.0, 0.0, 0.0}) {
				delete(fields, name)
			}
		}
		if len(fields) == 0 {
			return nil
		}
		return fields
	case []any:
		for _, field := range fields {
			trim(field) // what is in it; the places in a list stay
		}
		if len(fields) != 1 && !slices.ContainsFunc(fields, func(field any) bool { return field != 0.0 }) {
			return nil // nothing, or an empty set of bits in several words
		}
	case string:
		if fields == "" {
			return nil
		}
	case float64:
		if fields == 0 {
			return nil
		}
	case bool:
		if !fields {
			return nil
		}
	}
	return fields
}

// read makes an input of a file with objects. A Secret or ConfigMap can be used unless it has the annotation
// problem, which says why not.
func read(t *testing.T, file string) gatewayapi.Input {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := gatewayapi.Input{
		ReservedPorts: []int32{15021, 15022},
		Namespaces:    map[string]map[string]string{}, Services: map[types.NamespacedName]gatewayapi.Service{}, Secrets: map[types.NamespacedName]gatewayapi.Secret{},
		Bundles: map[types.NamespacedName]gatewayapi.Bundle{}, Unknown: map[types.UID][]string{},
	}
	contents := map[types.NamespacedName]map[string][]byte{}
	for _, document := range bytes.Split(raw, []byte("\n---\n")) {
		kind := metav1.PartialObjectMetadata{}
		decode(t, document, &kind, false)
		switch kind.Kind {
		case "Gateway":
			in.Gateway = &gatewayv1.Gateway{}
			decode(t, document, in.Gateway, true)
		case "HTTPRoute":
			in.HTTPRoutes = append(in.HTTPRoutes, decode(t, document, &gatewayv1.HTTPRoute{}, true))
		case "GRPCRoute":
			in.GRPCRoutes = append(in.GRPCRoutes, decode(t, document, &gatewayv1.GRPCRoute{}, true))
		case "TLSRoute":
			in.TLSRoutes = append(in.TLSRoutes, decode(t, document, &gatewayv1.TLSRoute{}, true))
		case "TCPRoute":
			in.TCPRoutes = append(in.TCPRoutes, decode(t, document, &gatewayv1.TCPRoute{}, true))
		case "UDPRoute":
			in.UDPRoutes = append(in.UDPRoutes, decode(t, document, &gatewayv1.UDPRoute{}, true))
		case "ReferenceGrant":
			in.Grants = append(in.Grants, decode(t, document, &gatewayv1.ReferenceGrant{}, true))
		case "ListenerSet":
			in.ListenerSets = append(in.ListenerSets, decode(t, document, &gatewayv1.ListenerSet{}, true))
		case "Namespace":
			in.Namespaces[kind.Name] = kind.Labels
		case "Service":
			service := decode(t, document, &corev1.Service{}, true)
			in.Services[nameOf(service)] = serviceOf(service)
		case "GatewayParameters":
			in.ParametersProblem = kind.Annotations["problem"]
		case "BackendTLSPolicy":
			in.Policies = append(in.Policies, decode(t, document, &gatewayv1.BackendTLSPolicy{}, true))
		case "ConfigMap":
			in.Bundles[nameOf(&kind)] = gatewayapi.Bundle{Problem: kind.Annotations["problem"]}
		case "Secret":
			in.Secrets[nameOf(&kind)] = gatewayapi.Secret{Problem: kind.Annotations["problem"]}
			contents[nameOf(&kind)] = decode(t, document, &corev1.Secret{}, true).Data
		case "GatewayPolicy":
			in.GatewayPolicies = append(in.GatewayPolicies, decode(t, document, &slipwayv1alpha1.GatewayPolicy{}, true))
			if field := kind.Annotations["unknown"]; field != "" {
				in.Unknown[kind.UID] = []string{field}
			}
		default:
			t.Fatalf("%s: there is no place for a %s", file, kind.Kind)
		}
	}
	in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, func(name types.NamespacedName) (map[string][]byte, bool) {
		data, found := contents[name]
		return data, found
	})
	return in
}

func decode[T any](t *testing.T, document []byte, into T, strict bool) T {
	t.Helper()
	unmarshal := yaml.UnmarshalStrict
	if !strict {
		unmarshal = func(y []byte, o any, _ ...yaml.JSONOpt) error { return yaml.Unmarshal(y, o) }
	}
	if err := unmarshal(document, into); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	return into
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func serviceOf(in *corev1.Service) gatewayapi.Service {
	out := gatewayapi.Service{External: in.Spec.Type == corev1.ServiceTypeExternalName, Ports: map[int32]gatewayapi.Port{}, UDP: map[int32]gatewayapi.Port{}}
	for _, port := range in.Spec.Ports {
		protocol := ""
		if port.AppProtocol != nil {
			protocol = *port.AppProtocol
		}
		if port.Protocol == corev1.ProtocolUDP {
			out.UDP[port.Port] = gatewayapi.Port{Name: port.Name}
			continue
		}
		out.Ports[port.Port] = gatewayapi.Port{Name: port.Name, AppProtocol: protocol}
	}
	return out
}
