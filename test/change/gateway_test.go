//go:build e2e || change

package change

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The names that Slipway has in the Gateway API, as users know them.
const (
	gatewayController = "slipway.dev/gateway"
	conditionLive     = "slipway.dev/Live"
)

// extraPort is that of the listener that comes and goes.
const extraPort = 8081

// kept is the HTTPRoute with the rules that always are there. What comes and goes has an HTTPRoute each.
const kept = "kept"

// ofGateway is a Gateway with HTTPRoutes and a GRPCRoute.
type ofGateway struct {
	// written are the routes as they were written last, by kind and name.
	written map[string]client.Object
}

func (g *ofGateway) create(r *run) {
	r.Helper()
	// As with an APIGateway: to log thousands of requests a second would be measured, too.
	r.must(cluster.Create(r.Context(), &slipwayv1alpha1.GatewayParameters{ObjectMeta: r.named(gateway), Spec: slipwayv1alpha1.GatewayParametersSpec{
		AccessLog: &slipwayv1alpha1.AccessLog{SamplePercent: ptr(int32(1))},
	}}))
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}, Spec: gatewayv1.GatewayClassSpec{
		ControllerName: gatewayController,
		ParametersRef: &gatewayv1.ParametersReference{
			Group: gatewayv1.Group(slipwayv1alpha1.SchemeGroupVersion.Group), Kind: "GatewayParameters", Name: gateway, Namespace: ptr(gatewayv1.Namespace(r.namespace)),
		},
	}}
	r.must(cluster.Create(r.Context(), class))
	r.Cleanup(func() {
		if err := cluster.Delete(cleanupContext(r.T), class); err != nil {
			r.Errorf("delete the GatewayClass: %v", err)
		}
	})
	r.must(cluster.Create(r.Context(), &gatewayv1.Gateway{ObjectMeta: r.named(gateway), Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(class.Name),
		Listeners: []gatewayv1.Listener{
			{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
			{Name: "tls", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{
				CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}},
			}},
		},
	}}))
	g.apply(r)
}

func (*ofGateway) deployment(r *run) string { return gateway + "-" + r.namespace }

func (g *ofGateway) replicas(r *run) (int32, error) {
	d := &appsv1.Deployment{}
	if err := cluster.Get(r.Context(), r.key(g.deployment(r)), d); err != nil {
		return 0, err
	}
	return *d.Spec.Replicas, nil
}

// apply makes the routes those of the run. What does not differ is not written.
func (g *ofGateway) apply(r *run) {
	r.Helper()
	next := g.objects(r)
	for name, object := range next {
		before := g.written[name]
		switch {
		case before == nil:
			r.must(cluster.Create(r.Context(), object))
		case !reflect.DeepEqual(specOf(before), specOf(object)):
			r.eventually(func() error {
				object.SetResourceVersion("")
				now := before.DeepCopyObject().(client.Object)
				if err := cluster.Get(r.Context(), client.ObjectKeyFromObject(object), now); err != nil {
					return err
				}
				object.SetResourceVersion(now.GetResourceVersion())
				return cluster.Update(r.Context(), object)
			})
		default:
			next[name] = before
		}
	}
	for name, object := range g.written {
		if next[name] == nil {
			r.must(cluster.Delete(r.Context(), object))
		}
	}
	g.written = next
}

// specOf is what a user has said of a route. The API server adds defaults to what it answers.
func specOf(object client.Object) string { return object.GetAnnotations()[spelled] }

// spelled is an annotation with what was written.
const spelled = "example.com/spelled"

// objects are the routes of the run, as objects.
func (g *ofGateway) objects(r *run) map[string]client.Object {
	parents := gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gateway}}}
	all := map[string]client.Object{}
	rules := map[string][]gatewayv1.HTTPRouteRule{}
	said := map[string]string{}
	for i := range r.routes {
		route := &r.routes[i]
		if route.Name == "grpc" {
			all["GRPCRoute/grpc"] = &gatewayv1.GRPCRoute{
				ObjectMeta: g.named(r, "grpc", fmt.Sprintf("%+v", describe(route))),
				Spec:       gatewayv1.GRPCRouteSpec{CommonRouteSpec: parents, Hostnames: []gatewayv1.Hostname{host}, Rules: []gatewayv1.GRPCRouteRule{callRule(route)}},
			}
			continue
		}
		name := kept
		if route.Name == "" {
			name = strings.Trim(route.Path, "/")
		}
		rules[name] = append(rules[name], webRule(route))
		said[name] += describe(route)
	}
	for name, list := range rules {
		all["HTTPRoute/"+name] = &gatewayv1.HTTPRoute{
			ObjectMeta: g.named(r, name, said[name]),
			Spec:       gatewayv1.HTTPRouteSpec{CommonRouteSpec: parents, Hostnames: []gatewayv1.Hostname{host}, Rules: list},
		}
	}
	return all
}

func (*ofGateway) named(r *run, name, said string) metav1.ObjectMeta {
	named := r.named(name)
	named.Annotations = map[string]string{spelled: said}
	return named
}

// describe spells a route.
func describe(route *slipwayv1alpha1.Route) string {
	edition := slipwayv1alpha1.HeaderValue("")
	if route.ResponseHeaders != nil {
		edition = route.ResponseHeaders.Set[0].Value
	}
	return fmt.Sprintf("%s %v %v %s;", route.Path, backendsOf(route), route.Retries != nil, edition)
}

// target is a backend with its weight.
type target struct {
	name         string
	port, weight int32
}

func backendsOf(route *slipwayv1alpha1.Route) []target {
	if of := route.BackendService; of != nil {
		return []target{{string(of.Name), of.Port, 1}}
	}
	var all []target
	for _, of := range route.Backends {
		all = append(all, target{string(of.Name), of.Port, 1})
	}
	return all
}

func (t target) ref() gatewayv1.BackendRef {
	return gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(t.name), Port: ptr(t.port)}, Weight: ptr(t.weight),
	}
}

func webRule(route *slipwayv1alpha1.Route) gatewayv1.HTTPRouteRule {
	rule := gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
		Type: ptr(gatewayv1.PathMatchPathPrefix), Value: ptr(strings.TrimSuffix(route.Path, "/")),
	}}}}
	for _, t := range backendsOf(route) {
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: t.ref()})
	}
	if route.Retries != nil {
		rule.Retry = &gatewayv1.HTTPRouteRetry{Attempts: ptr(int(*route.Retries.Attempts))}
	}
	if edition := editionOf(route); edition != nil {
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: edition}}
	}
	return rule
}

func callRule(route *slipwayv1alpha1.Route) gatewayv1.GRPCRouteRule {
	rule := gatewayv1.GRPCRouteRule{Matches: []gatewayv1.GRPCRouteMatch{{Method: &gatewayv1.GRPCMethodMatch{Service: ptr(strings.Trim(route.Path, "/"))}}}}
	for _, t := range backendsOf(route) {
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.GRPCBackendRef{BackendRef: t.ref()})
	}
	if edition := editionOf(route); edition != nil {
		rule.Filters = []gatewayv1.GRPCRouteFilter{{Type: gatewayv1.GRPCRouteFilterResponseHeaderModifier, ResponseHeaderModifier: edition}}
	}
	return rule
}

func editionOf(route *slipwayv1alpha1.Route) *gatewayv1.HTTPHeaderFilter {
	if route.ResponseHeaders == nil {
		return nil
	}
	return &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: edited, Value: string(route.ResponseHeaders.Set[0].Value)}}}
}

// live waits until status says that every pod serves this generation of every route.
func (g *ofGateway) live(r *run) {
	r.Helper()
	for name, object := range g.written {
		r.eventually(func() error {
			now := object.DeepCopyObject().(client.Object)
			if err := cluster.Get(r.Context(), client.ObjectKeyFromObject(object), now); err != nil {
				return err
			}
			for _, parent := range parentsOf(now) {
				c := meta.FindStatusCondition(parent.Conditions, conditionLive)
				if parent.ControllerName == gatewayController && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == now.GetGeneration() {
					return nil
				}
			}
			return fmt.Errorf("%s is not live: %+v", name, parentsOf(now))
		})
	}
}

func parentsOf(object client.Object) []gatewayv1.RouteParentStatus {
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		return route.Status.Parents
	case *gatewayv1.GRPCRoute:
		return route.Status.Parents
	default:
		return nil
	}
}

func (g *ofGateway) scale(r *run) (next int32) {
	r.Helper()
	r.eventually(func() error {
		d := &appsv1.Deployment{}
		if err := cluster.Get(r.Context(), r.key(g.deployment(r)), d); err != nil {
			return err
		}
		next = otherScale(*d.Spec.Replicas)
		d.Spec.Replicas = &next
		return cluster.Update(r.Context(), d)
	})
	return next
}

// upgrade changes what the operator makes the pods of, as another version of it does.
func (g *ofGateway) upgrade(r *run, c change) {
	r.Helper()
	g.update(r, func(spec *gatewayv1.GatewaySpec) {
		spec.Infrastructure = &gatewayv1.GatewayInfrastructure{Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{
			"example.com/version": gatewayv1.AnnotationValue(fmt.Sprint(c.number)),
		}}
	})
	r.eventually(func() error {
		d := &appsv1.Deployment{}
		if err := cluster.Get(r.Context(), r.key(g.deployment(r)), d); err != nil {
			return err
		}
		if d.Spec.Template.Annotations["example.com/version"] != fmt.Sprint(c.number) {
			return errors.New("the operator has not changed the Deployment")
		}
		return nil
	})
}

// switchListener adds a listener and asks it, or removes it.
func (g *ofGateway) switchListener(r *run, c change) {
	r.Helper()
	added := false
	g.update(r, func(spec *gatewayv1.GatewaySpec) {
		at := slices.IndexFunc(spec.Listeners, func(l gatewayv1.Listener) bool { return l.Port == extraPort })
		if added = at < 0; added {
			spec.Listeners = append(spec.Listeners, gatewayv1.Listener{Name: "extra", Port: extraPort, Protocol: gatewayv1.HTTPProtocolType})
		} else {
			spec.Listeners = slices.Delete(spec.Listeners, at, at+1)
		}
	})
	r.begin(c, map[bool]string{true: "added", false: "removed"}[added])
	r.eventually(func() error {
		now := &gatewayv1.Gateway{}
		if err := cluster.Get(r.Context(), r.key(gateway), now); err != nil {
			return err
		}
		programmed := meta.FindStatusCondition(now.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		if programmed == nil || programmed.Status != metav1.ConditionTrue || programmed.ObservedGeneration != now.Generation {
			return fmt.Errorf("the Gateway is not programmed: %+v", programmed)
		}
		return nil
	})
	if !added {
		return
	}
	start := time.Now()
	// The Service has the port when the Gateway is programmed, and every node soon after.
	r.eventually(func() error {
		_, err := r.getAt(fmt.Sprintf("http://%s:%d/web/", host, extraPort)) //nolint:bodyclose,nolintlint // it is closed by getAt
		return err
	})
	r.record.ended("HTTP/1.1, a look at what changed", start, http.MethodGet, nil)
}

func (*ofGateway) update(r *run, change func(*gatewayv1.GatewaySpec)) {
	r.Helper()
	r.eventually(func() error {
		g := &gatewayv1.Gateway{}
		if err := cluster.Get(r.Context(), r.key(gateway), g); err != nil {
			return err
		}
		change(&g.Spec)
		return cluster.Update(r.Context(), g)
	})
}
