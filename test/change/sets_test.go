//go:build change

package change

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// TestCostOfListenerSets gives a Gateway SETS ListenerSets (default 250) with a hostname each, and SET_ROUTES routes (default 4,000)
// behind them. It measures when every status is right, what that costs in writes, processor time and memory, and that each set
// serves.
func TestCostOfListenerSets(t *testing.T) {
	r := newRun(t, 1, &ofGateway{})
	c := &setCrowd{crowd: &crowd{run: r, names: map[string]bool{}}, sets: setting(t, "SETS", 250)}
	c.openGateway()
	before, start := c.processorTime(), time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	ofSets, ofRoutes := c.countChanges(ctx, &gatewayv1.ListenerSetList{}), c.countWrites(ctx)
	c.inParallel(c.sets, func(i int) client.Object { return c.set(i) })
	c.inParallel(setting(t, "SET_ROUTES", 4000), c.routeOfSet)
	created := time.Now()
	measured(t, "%d ListenerSets and %d routes were created within %v", c.sets, c.count, created.Sub(start).Round(time.Millisecond))
	c.settleAll(t)
	goal(t, "every status is right after the last", time.Since(created).Round(time.Millisecond), 30*time.Second)
	took := time.Since(start)
	cancel()
	routes, gateways := ofRoutes()
	goal(t, "status writes of one route", highest(routes), 2)
	measured(t, "status writes of one ListenerSet, at most: %d; of the Gateway: %d", highest(ofSets()), gateways)
	memory := c.resident()
	for name, seconds := range c.processorTime() {
		measured(t, "%s: %.1f s of processor time in %v, %.0f MiB resident", name, seconds-before[name], took.Round(time.Second), memory[name]/(1<<20))
	}
	c.everySetServes(t)
}

// setCrowd is many ListenerSets with routes.
type setCrowd struct {
	*crowd

	sets, count int
}

func setHost(i int) string { return fmt.Sprintf("set-%d.example.com", i) }

// openGateway lets ListenerSets of its own namespace in.
func (c *setCrowd) openGateway() {
	c.eventually(func() error {
		g := &gatewayv1.Gateway{}
		if err := cluster.Get(c.Context(), c.key(gateway), g); err != nil {
			return err
		}
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr(gatewayv1.NamespacesFromSame)}}
		return cluster.Update(c.Context(), g)
	})
}

func (c *setCrowd) set(i int) *gatewayv1.ListenerSet {
	hostname := gatewayv1.Hostname(setHost(i))
	return &gatewayv1.ListenerSet{ObjectMeta: c.named(fmt.Sprintf("set-%d", i)), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: gateway},
		Listeners: []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &hostname}},
	}}
}

func (c *setCrowd) routeOfSet(i int) client.Object {
	name := fmt.Sprintf("of-set-%d", i)
	route := c.route(name, "/"+name)
	route.Spec.Hostnames = nil
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{
		Kind: ptr(gatewayv1.Kind("ListenerSet")), Name: gatewayv1.ObjectName(fmt.Sprintf("set-%d", i%c.sets)),
	}}
	c.count = max(c.count, i+1)
	return route
}

// settleAll waits until every set is programmed and counts its routes, and every route is accepted, resolved and live.
func (c *setCrowd) settleAll(t *testing.T) {
	t.Helper()
	c.must(livecluster.Eventually(t.Context(), patience, func() error {
		sets := &gatewayv1.ListenerSetList{}
		if err := cluster.List(t.Context(), sets, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		attached := 0
		for i := range sets.Items {
			of := &sets.Items[i]
			programmed := meta.FindStatusCondition(of.Status.Conditions, string(gatewayv1.ListenerSetConditionProgrammed))
			if programmed == nil || programmed.Status != metav1.ConditionTrue || programmed.ObservedGeneration != of.Generation {
				return fmt.Errorf("%s is not programmed", of.Name)
			}
			for _, l := range of.Status.Listeners {
				attached += int(l.AttachedRoutes)
			}
		}
		if attached != c.count {
			return fmt.Errorf("the sets count %d routes, want %d", attached, c.count)
		}
		routes := &gatewayv1.HTTPRouteList{}
		if err := cluster.List(t.Context(), routes, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		for i := range routes.Items {
			if !settled(&routes.Items[i]) {
				return fmt.Errorf("%s has not settled", routes.Items[i].Name)
			}
		}
		return nil
	}))
}

// highest returns the highest of some counts. Without any it is 0.
func highest(counts map[string]int) int {
	return slices.Max(append(slices.Collect(maps.Values(counts)), 0))
}

// everySetServes asks for the first route of each set, which answers, and below its neighbour's hostname, which does not know it.
func (c *setCrowd) everySetServes(t *testing.T) {
	transport := c.transport(http1)
	defer transport.CloseIdleConnections()
	wrong := 0
	for i := range c.sets {
		for host, want := range map[string]int{setHost(i): http.StatusOK, setHost((i + 1) % c.sets): http.StatusNotFound} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/of-set-%d", host, i), http.NoBody)
			c.must(err)
			response, err := transport.RoundTrip(request)
			c.must(err)
			_ = response.Body.Close()
			if response.StatusCode != want {
				wrong++
			}
		}
	}
	goal(t, "wrong answers of the sets", wrong, 0)
}
