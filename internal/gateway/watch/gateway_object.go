package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// gatewayTarget is a generation of the Gateway whose spec was parsed.
type gatewayTarget struct {
	version

	gateway *gatewayv1.Gateway
	unknown []string // fields of listeners that this program does not know
}

// operatorFields are the fields of a Gateway's spec that only the operator uses. What is
// unknown in them does not concern the gateway.
var operatorFields = []string{"infrastructure", "addresses", "allowedListeners"}

// readGateway parses the spec of a Gateway. An unknown field outside of its listeners may
// restrict access, so a spec with such a field is not served.
func (v version) readGateway(name types.NamespacedName) (*gatewayTarget, error) {
	t := &gatewayTarget{version: v, gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, UID: v.uid, Generation: v.generation,
	}}}
	t.spec = nil // to free its memory
	unknown, err := readStrictly(v.spec, &t.gateway.Spec)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	for _, field := range unknown {
		switch first, _, _ := strings.Cut(strings.ReplaceAll(field, "[", "."), "."); {
		case first == "listeners":
			t.unknown = append(t.unknown, field)
		case !slices.Contains(operatorFields, first):
			return nil, fmt.Errorf("spec.%s: this version of the gateway does not know the field", field)
		}
	}
	return t, nil
}

// maxStrictErrors is how many unknown fields the parser returns at most. After so many,
// there may be more.
const maxStrictErrors = 100

// readStrictly parses a spec, and returns the paths of its unknown fields.
func readStrictly(raw []byte, into any) (unknown []string, err error) {
	found, err := json.UnmarshalStrict(raw, into, json.DisallowUnknownFields)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		field, known := errors.AsType[json.FieldError](one)
		if !known {
			return nil, one
		}
		unknown = append(unknown, field.FieldPath())
	}
	if len(unknown) >= maxStrictErrors {
		return nil, fmt.Errorf("this version of the gateway does not know %d fields of it and perhaps more, such as %s", len(unknown), unknown[0])
	}
	return unknown, nil
}

// route is a route of any kind that names the Gateway as a parent, or a ListenerSet.
type route struct {
	uid        types.UID
	generation int64
	name       types.NamespacedName
	kind       gatewayapi.Kind
	// One of these is the route. None is set if it could not be parsed: wrong says why.
	http    *gatewayv1.HTTPRoute
	grpc    *gatewayv1.GRPCRoute
	tls     *gatewayv1.TLSRoute
	tcp     *gatewayv1.TCPRoute
	udp     *gatewayv1.UDPRoute
	wrong   string
	unknown []string // fields that this program does not know
	// services are the Services that it names.
	services []types.NamespacedName
	// own tells that it names the Gateway. sets are the ListenerSets that it names, whose Gateway
	// may change.
	own  bool
	sets []types.NamespacedName
}

// sameRoute compares what is kept of a route. It is nil for a route of other gateways.
func sameRoute(a, b *route) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.uid == b.uid && a.generation == b.generation
}

// keepRoute returns what to keep of a route: nothing but its name if it names other gateways only.
func keepRoute(kind gatewayapi.Kind, own types.NamespacedName) func(*object) *route {
	return func(in *object) *route {
		var parents struct {
			ParentRefs []gatewayv1.ParentReference `json:"parentRefs"`
		}
		if json.UnmarshalCaseSensitivePreserveInts(in.Spec.Raw, &parents) != nil {
			return nil
		}
		named, sets := false, []types.NamespacedName(nil)
		for _, ref := range parents.ParentRefs {
			named = named || gatewayapi.IsParent(ref, in.Namespace, own)
			if name, is := gatewayapi.SetOf(ref, in.Namespace); is {
				sets = append(sets, name)
			}
		}
		if !named && len(sets) == 0 {
			return nil
		}
		r := readRoute(kind, in)
		r.own, r.sets = named, sets
		return r
	}
}

func readRoute(kind gatewayapi.Kind, in *object) *route {
	r := &route{
		uid: in.UID, generation: in.Generation, kind: kind,
		name: types.NamespacedName{Namespace: in.Namespace, Name: in.Name},
	}
	meta := metav1.ObjectMeta{
		Namespace: in.Namespace, Name: in.Name, UID: in.UID, Generation: in.Generation, CreationTimestamp: in.CreationTimestamp,
	}
	var err error
	switch kind {
	case gatewayapi.GRPCRoute:
		of := &gatewayv1.GRPCRoute{ObjectMeta: meta}
		if r.unknown, err = readStrictly(in.Spec.Raw, &of.Spec); err == nil {
			r.grpc, r.services = of, gatewayapi.ServicesOfGRPCRoute(of)
		}
	case gatewayapi.TLSRoute:
		of := &gatewayv1.TLSRoute{ObjectMeta: meta}
		if r.unknown, err = readStrictly(in.Spec.Raw, &of.Spec); err == nil {
			r.tls, r.services = of, gatewayapi.ServicesOfTLSRoute(of)
		}
	case gatewayapi.TCPRoute:
		of := &gatewayv1.TCPRoute{ObjectMeta: meta}
		if r.unknown, err = readStrictly(in.Spec.Raw, &of.Spec); err == nil {
			r.tcp, r.services = of, gatewayapi.ServicesOfTCPRoute(of)
		}
	case gatewayapi.UDPRoute:
		of := &gatewayv1.UDPRoute{ObjectMeta: meta}
		if r.unknown, err = readStrictly(in.Spec.Raw, &of.Spec); err == nil {
			r.udp, r.services = of, gatewayapi.ServicesOfUDPRoute(of)
		}
	default:
		of := &gatewayv1.HTTPRoute{ObjectMeta: meta}
		if r.unknown, err = readStrictly(in.Spec.Raw, &of.Spec); err == nil {
			r.http, r.services = of, gatewayapi.ServicesOfHTTPRoute(of)
		}
	}
	if err != nil {
		r.wrong = err.Error()
	}
	return r
}

// grant is what is kept of a ReferenceGrant. Fields that this program does not know may limit
// what it permits, so one with such a field permits nothing.
type grant struct {
	generation int64
	uid        types.UID
	of         *gatewayv1.ReferenceGrant
	wrong      string // why it permits nothing
}

func keepGrant(in *object) grant {
	g := grant{generation: in.Generation, uid: in.UID, of: &gatewayv1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name}}}
	unknown, err := readStrictly(in.Spec.Raw, &g.of.Spec)
	switch {
	case err != nil:
		g.wrong = err.Error()
	case len(unknown) > 0:
		g.wrong = fmt.Sprintf("spec.%s: this version of the gateway does not know the field", unknown[0])
	default:
		return g
	}
	g.of.Spec = gatewayv1.ReferenceGrantSpec{}
	return g
}

func sameGrant(a, b grant) bool { return a.uid == b.uid && a.generation == b.generation }
