//go:build change

package change

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/objectwatch"
)

// goal is a limit that is wanted. What is missed is told, and the test fails.
func goal[T time.Duration | float64 | int](t *testing.T, what string, is, limit T) {
	t.Helper()
	measured(t, "%s: %v (goal: at most %v)", what, is, limit)
	if is > limit {
		t.Errorf("%s: %v, want at most %v", what, is, limit)
	}
}

// TestCostOfHTTPRoutes measures, on real pods, how soon a new Gateway and a new HTTPRoute are served with 10 and 1,000 routes
// beside it, how soon statuses are right after many changes and what they cost in writes, and what 10 changes a second cost with
// ROUTES (default 5,000) routes.
func TestCostOfHTTPRoutes(t *testing.T) {
	r := newRun(t, 1, &ofGateway{})
	c := &crowd{run: r, names: map[string]bool{}}
	samples := setting(t, "SAMPLES", 60)
	t.Run("a new Gateway", c.newGateway)
	c.create(10)
	t.Run("10 routes", func(t *testing.T) { c.firstAnswers(t, samples, goals[10]) })
	t.Run("1,000 changes", c.manyChanges)
	t.Run("1,000 routes", func(t *testing.T) { c.firstAnswers(t, samples, goals[1000]) })
	count := setting(t, "ROUTES", 5000)
	c.create(count - len(c.names))
	t.Run(fmt.Sprintf("%d routes that change", count), c.steadyChanges)
}

// crowd is many HTTPRoutes of one Gateway.
type crowd struct {
	*run
	names map[string]bool
}

func (c *crowd) route(name, path string) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: c.named(name), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gateway}}},
		Hostnames:       []gatewayv1.Hostname{host},
		Rules: []gatewayv1.HTTPRouteRule{{
			Matches:     []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr(gatewayv1.PathMatchPathPrefix), Value: ptr(path)}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: target{blue, portHTTP1, 1}.ref()}},
		}},
	}}
}

// create makes so many routes, and waits until the last is live.
func (c *crowd) create(count int) {
	c.Helper()
	c.inParallel(count, func(int) client.Object {
		name := fmt.Sprintf("crowd-%d", len(c.names))
		c.names[name] = true
		return c.route(name, "/"+name)
	})
	c.settle(c.T, patience)
}

// inParallel creates so many objects, 20 at a time.
func (c *crowd) inParallel(count int, object func(int) client.Object) {
	c.Helper()
	next := make(chan client.Object)
	errs := make([]error, 20)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() {
			for made := range next {
				if err := cluster.Create(c.Context(), made); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for i := range count {
		next <- object(i)
	}
	close(next)
	wait.Wait()
	for _, err := range errs {
		c.must(err)
	}
}

// settle waits until every route says of its present generation that it is accepted, resolved and live, and the Gateway counts
// them all. It returns how long that took.
func (c *crowd) settle(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	err := livecluster.Eventually(c.Context(), limit, func() error {
		list := &gatewayv1.HTTPRouteList{}
		if err := cluster.List(c.Context(), list, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		behind := 0
		for i := range list.Items {
			if !settled(&list.Items[i]) {
				behind++
			}
		}
		if behind > 0 {
			return fmt.Errorf("%d of %d routes have not settled", behind, len(list.Items))
		}
		return c.counted(len(list.Items) + 1) // and a GRPCRoute
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func settled(route *gatewayv1.HTTPRoute) bool {
	for _, parent := range route.Status.Parents {
		if parent.ControllerName != gatewayController {
			continue
		}
		for _, kind := range []string{string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs), conditionLive} {
			condition := meta.FindStatusCondition(parent.Conditions, kind)
			if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != route.Generation {
				return false
			}
		}
		return true
	}
	return false
}

// counted tells whether the listener "web" counts so many routes.
func (c *crowd) counted(want int) error {
	g := &gatewayv1.Gateway{}
	if err := cluster.Get(c.Context(), c.key(gateway), g); err != nil {
		return err
	}
	for _, l := range g.Status.Listeners {
		if l.Name == "web" && int(l.AttachedRoutes) != want {
			return fmt.Errorf("the listener counts %d routes, want %d", l.AttachedRoutes, want)
		}
	}
	return nil
}

// newGateway measures the time from the creation of a Gateway until its first answer at the address in its status.
func (c *crowd) newGateway(t *testing.T) {
	var took []time.Duration
	for i := range 5 {
		name := fmt.Sprintf("new-%d", i)
		route := c.route(name, "/new")
		route.Spec.ParentRefs[0].Name = gatewayv1.ObjectName(name)
		c.must(cluster.Create(t.Context(), route))
		g := &gatewayv1.Gateway{ObjectMeta: c.named(name), Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(c.namespace),
			Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}}
		start := time.Now()
		c.must(cluster.Create(t.Context(), g))
		c.eventually(func() error {
			if err := cluster.Get(t.Context(), c.key(name), g); err != nil {
				return err
			}
			if len(g.Status.Addresses) == 0 {
				return fmt.Errorf("%s has no address", name)
			}
			other := *c.run
			other.address = g.Status.Addresses[0].Value
			// Until the node forwards it, packets to the address are lost, and an attempt would wait for nothing.
			_, err := other.getWithin(500*time.Millisecond, "http://"+host+"/new") //nolint:bodyclose,nolintlint // it is closed there
			return err
		})
		took = append(took, time.Since(start))
		c.must(cluster.Delete(t.Context(), g))
		c.must(cluster.Delete(t.Context(), route))
	}
	slices.Sort(took)
	goal(t, "a new Gateway: creation to first answer, the slowest of 5", took[len(took)-1].Round(time.Millisecond), 5*time.Second)
}

// firstAnswers measures the time from the API server's answer until a new route's first 200 through the Service.
func (c *crowd) firstAnswers(t *testing.T, samples int, limits [2]time.Duration) {
	transport := c.transport(http1)
	defer transport.CloseIdleConnections()
	ticker := time.NewTicker(1100 * time.Millisecond) // changes that come sooner are coalesced
	defer ticker.Stop()
	var took []time.Duration
	for i := range samples {
		<-ticker.C
		name := fmt.Sprintf("sample-%d", i)
		route := c.route(name, "/"+name)
		c.must(cluster.Create(t.Context(), route))
		created := time.Now()
		c.must(awaitPath(t.Context(), transport, "/"+name))
		took = append(took, time.Since(created))
		c.must(cluster.Delete(t.Context(), route))
	}
	slices.Sort(took)
	at := func(percent int) time.Duration {
		return took[(len(took)-1)*percent/100].Round(100 * time.Microsecond)
	}
	measured(t, "a new route, %d samples: first 200 after p50 %v, p90 %v, p99 %v, at most %v", samples, at(50), at(90), at(99), at(100))
	goal(t, "a new route: p50 until the first 200", at(50), limits[0])
	goal(t, "a new route: p99 until the first 200", at(99), limits[1])
}

// manyChanges creates 1,000 routes as fast as they are taken. It looks at when statuses are right, and counts the writes.
func (c *crowd) manyChanges(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	writes := c.countWrites(ctx)
	before := len(c.names)
	start := time.Now()
	for range 50 {
		c.createQuietly(20)
	}
	created := time.Now()
	measured(t, "1,000 routes were created within %v", created.Sub(start).Round(time.Millisecond))
	want := 0
	c.eventually(func() error {
		list := &gatewayv1.HTTPRouteList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		want = len(list.Items) + 1 // and a GRPCRoute
		return c.counted(want)
	})
	goal(t, "attachedRoutes are right after the last of 1,000 changes", time.Since(created).Round(time.Millisecond), 2*time.Second)
	c.settle(t, patience)
	goal(t, "the conditions of all routes are right after the last of 1,000 changes", time.Since(created).Round(time.Millisecond), 10*time.Second)
	cancel()
	ofRoutes, ofGateway := writes()
	most, total := 0, 0
	for name, count := range ofRoutes {
		if number, err := strconv.Atoi(strings.TrimPrefix(name, "crowd-")); err == nil && number >= before {
			most, total = max(most, count), total+count
		}
	}
	measured(t, "1,000 routes: %d status writes in all", total)
	goal(t, "status writes of one route", most, 2)
	goal(t, "status writes of the Gateway", ofGateway, 50)
}

// createQuietly creates routes at once, and waits for nothing.
func (c *crowd) createQuietly(count int) {
	c.Helper()
	errs := make([]error, count)
	var wait sync.WaitGroup
	for i := range count {
		name := fmt.Sprintf("crowd-%d", len(c.names))
		c.names[name] = true
		wait.Go(func() { errs[i] = cluster.Create(c.Context(), c.route(name, "/"+name)) })
	}
	wait.Wait()
	for _, err := range errs {
		c.must(err)
	}
}

// countWrites counts the changes of routes and of the Gateway from now on. Nobody but the operator changes them meanwhile. The
// context ends the counting.
func (c *crowd) countWrites(ctx context.Context) (result func() (ofRoutes map[string]int, ofGateway int)) {
	c.Helper()
	routes, gateways := c.countChanges(ctx, &gatewayv1.HTTPRouteList{}), c.countChanges(ctx, &gatewayv1.GatewayList{})
	return func() (map[string]int, int) { return routes(), gateways()[gateway] }
}

// countChanges counts the changes of objects of a kind, by name. The result ends the counting, and so does the context.
func (c *crowd) countChanges(ctx context.Context, list client.ObjectList) (result func() map[string]int) {
	c.Helper()
	counts := map[string]int{}
	stop, _, err := objectwatch.Follow(ctx, cluster, list, func(e watch.Event) {
		if e.Type == watch.Modified {
			counts[e.Object.(client.Object).GetName()]++
		}
	}, client.InNamespace(c.namespace))
	c.must(err)
	return func() map[string]int { stop(); return counts }
}

// steadyChanges changes ten routes a second for a minute, and measures processor time.
func (c *crowd) steadyChanges(t *testing.T) {
	const every, duration = 100 * time.Millisecond, time.Minute
	before, started := c.processorTime(), time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	names := slices.Sorted(maps.Keys(c.names))
	for i := range int(duration / every) {
		<-ticker.C
		name := names[i*7919%len(names)]
		patch := fmt.Sprintf(`{"spec":{"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/%s-%d"}}],"backendRefs":[{"name":%q,"port":%d}]}]}}`, name, i, blue, portHTTP1)
		route := &gatewayv1.HTTPRoute{ObjectMeta: c.named(name)}
		c.must(cluster.Patch(t.Context(), route, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	after, took := c.processorTime(), time.Since(started)
	measured(t, "600 changes within %v", took.Round(time.Millisecond))
	for name, seconds := range after {
		cores := (seconds - before[name]) / took.Seconds()
		goal(t, "cores of "+name, float64(int(cores*1000))/1000, 0.5)
	}
	goal(t, "until all is right after the last change", c.settle(t, patience).Round(time.Millisecond), 10*time.Second)
}

// processorTime returns what the operator and the pods of the Gateway have used, in seconds.
func (c *crowd) processorTime() map[string]float64 { return c.processes("process_cpu_seconds_total") }

// resident returns the memory that they have, in bytes.
func (c *crowd) resident() map[string]float64 { return c.processes("process_resident_memory_bytes") }

// processes asks the operator and the pods of the Gateway for a metric.
func (c *crowd) processes(metric string) map[string]float64 {
	c.Helper()
	used := map[string]float64{}
	leader, err := cluster.Leader(c.Context())
	c.must(err)
	used["the operator"] = c.value(leader, metric, func(asker *http.Client) (string, error) {
		return cluster.OperatorMetrics(c.Context(), asker, leader)
	})
	pods := &corev1.PodList{}
	c.must(cluster.List(c.Context(), pods, client.InNamespace(c.namespace), client.MatchingLabels{gatewayv1.GatewayNameLabelKey: gateway}))
	for i := range pods.Items {
		pod := &pods.Items[i]
		used[fmt.Sprintf("gateway pod %d", i)] = c.value(pod, metric, func(asker *http.Client) (string, error) {
			return livecluster.Ask(c.Context(), asker, livecluster.Address(pod.Status.PodIP, 15021)+"/metrics")
		})
	}
	return used
}

// value asks a pod for a metric without labels.
func (c *crowd) value(pod *corev1.Pod, name string, ask func(*http.Client) (string, error)) float64 {
	c.Helper()
	patient := livecluster.NewHTTPClient()
	patient.Timeout = requestTimeout // the processes may be at work
	text, err := ask(patient)
	c.must(err)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			seconds, err := strconv.ParseFloat(value, 64)
			c.must(err)
			return seconds
		}
	}
	c.Fatalf("pod %s does not tell %s", pod.Name, name)
	return 0
}
