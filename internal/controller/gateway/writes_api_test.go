//go:build apitest

package gateway_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// asked returns what the operator asks for in the namespaces of the test because of do, when it asks no more.
func (f *fixture) asked(counter *requests.Counter, do func()) requests.Counts {
	f.Helper()
	of := func(c requests.Counts) requests.Counts { return c.In(f.namespace).Plus(c.In(f.other)) }
	before := counter.Counts()
	do()
	// Longer than a status waits for pods.
	environment.Quiet(f, 2*time.Second, func() string { return of(counter.Counts()).String() })
	return of(counter.Counts().Since(before))
}

func TestWritesAreAsFewAsTheyCanBe(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	first := f.startOperator(counter.Watch)
	g := f.gateway(secure(f.other, "web"))
	f.create(f.class, f.grant(), f.certificate(f.other, "web"), service(f.namespace, "shop"))
	made := f.asked(counter, func() {
		f.create(g)
		f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	})
	if made.Sum(requests.Children) != 7 || made.Sum(requests.Status) != 1 {
		t.Errorf("the first Gateway cost %v; want 7 children and 1 status", made)
	}
	f.running(g)
	f.board.Publish(document.Document{UID: g.UID, Generation: g.Generation, View: &document.View{Current: true}, Listeners: []document.ServedListener{web()}})

	// The pods serve a route at once, so it is written once. On a machine with much to do a status may not wait long enough for them.
	var route *gatewayv1.HTTPRoute
	var served []client.Object
	for attempt := 1; ; attempt++ {
		name := fmt.Sprint("shop-", attempt)
		route = f.route(name, "shop", func(r *gatewayv1.HTTPRoute) {
			r.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr(gatewayv1.PathMatchPathPrefix), Value: ptr("/" + name)}}}
		})
		served = append(served, route)
		made = f.asked(counter, func() {
			f.create(route)
			f.serve(g, []document.ServedListener{web()}, served...)
			f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
		})
		if made.Sum(requests.Children, requests.Lists) == 0 && made.ByKind()["patch httproutes/status"] == 1 && made.ByKind()["apply gateways/status"] == 1 {
			break
		}
		t.Logf("a route cost %v; want 1 status of its own, and 1 of the Gateway, which counts it", made)
		if attempt == 3 {
			t.Fatal("no route of three cost so little")
		}
	}

	if made = f.asked(counter, func() { f.touch(g, route) }); made.Writes()+made.Sum(requests.Reads, requests.Lists) != 0 {
		t.Errorf("another look without anything to do cost %v, want nothing", made)
	}

	// The next operator asks the pods anew. On a machine with much to do a status may not wait long enough for them.
	for attempt, running := 1, first; ; attempt++ {
		running.Stop(t)
		again := &requests.Counter{}
		made = f.asked(again, func() {
			running = f.startOperator(again.Watch)
			f.touch(g, route)
		})
		if made.Writes() == 0 {
			break
		}
		t.Logf("after a restart it cost %v, want no write", made)
		if attempt == 3 {
			t.Fatal("no restart of three cost nothing")
		}
	}
}

// A class of somebody else costs nothing: of its Gateways and routes the operator keeps nothing in memory.
// Its entries for the Gateway and for several ListenerSets are taken out of a route together.
func TestAGatewayThatGoesCostsARouteOneWrite(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	f.startOperator(counter.Watch)
	g := f.gateway(allowing(gatewayv1.NamespacesFromSame))
	of := func(name string) gatewayv1.ParentReference {
		return gatewayv1.ParentReference{Kind: ptr(gatewayv1.Kind("ListenerSet")), Name: gatewayv1.ObjectName(name)}
	}
	route := f.route("shop", "shop", func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = append(r.Spec.ParentRefs, of("one"), of("two")) })
	one, two := f.set(f.namespace, "one", plainEntry("own", 80, "one.example.com")), f.set(f.namespace, "two", plainEntry("own", 80, "two.example.com"))
	f.create(f.class, g, service(f.namespace, "shop"), one, two, route)
	entries := func(want int) {
		environment.Eventually(t, func() error {
			if err := f.get(route); err != nil {
				return err
			}
			if got := len(route.Status.Parents); got != want {
				return fmt.Errorf("the route has %d entries, want %d", got, want)
			}
			return nil
		})
	}
	entries(3)
	f.waitSet(one, setAccepted, yes, gatewayv1.ListenerSetReasonAccepted)
	f.waitSet(two, setAccepted, yes, gatewayv1.ListenerSetReasonAccepted)
	made := f.asked(counter, func() {
		f.delete(g)
		entries(0)
	})
	if got := made.ByKind()["patch httproutes/status"]; got != 1 {
		t.Errorf("the route was written %d times: %v", got, made)
	}
}

func TestAForeignClassCostsNothing(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	f.class.Spec.ControllerName = "example.com/other"
	g, route := f.gateway(), f.route("shop", "shop")
	f.create(f.class, g, route)
	made := f.asked(counter, func() {
		f.startOperator(counter.Watch)
		f.touch(g, route)
	})
	if made.Writes() != 0 || made.Sum(requests.Reads) != 0 {
		t.Errorf("it cost %v, want nothing", made)
	}
}

// touch makes the operator look at objects again and leaves it nothing to do.
func (f *fixture) touch(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano())
		if err := env.Client.Patch(f.Context(), object, client.RawPatch(types.MergePatchType, body), client.FieldOwner("somebody")); err != nil {
			f.Fatal(err)
		}
	}
}
