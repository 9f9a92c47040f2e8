//go:build scale

package scale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// TestThousand measures with the small number of WebApps: how long they take beside a
// raw client, and what the operator does and how fast it reacts when all are as they
// should be.
func TestThousand(t *testing.T) {
	s := startServer(t)
	webApps := follow(t, s, &slipwayv1alpha1.WebAppList{})
	warmUp(t, s, webApps)
	namespaces := s.namespaces(t, "thousand", max(1, size.apps/size.perNamespace))

	var times comparison
	var apps []*slipwayv1alpha1.WebApp
	var p *process
	var empty memory
	for round := range size.rounds {
		apps, p, empty = times.round(t, s, webApps, namespaces, size.apps)
		if round < size.rounds-1 {
			p.stop(t)
			s.clear(t, namespaces)
		}
	}
	goal := 15 * time.Second * time.Duration(size.apps) / 1000
	times.report(fmt.Sprintf("%d WebApps in %d namespaces", size.apps, len(namespaces)), &goal)

	p.rest(t)
	measureHeap(t, p, empty, size.apps)
	measureRest(t, s, p, apps)
	line, ok := measureSpecChange(t, s, webApps, apps).row(
		fmt.Sprintf("spec change to changed Deployment, idle, %d WebApps", size.apps), 100*time.Millisecond)
	results.add(line, ok)
	line, ok = measureDrift(t, s, p, apps).row("damaged or deleted child to healed child", 250*time.Millisecond)
	results.add(line, ok)
}

// TestOneNamespace measures the small number of WebApps in a single namespace.
func TestOneNamespace(t *testing.T) {
	s := startServer(t)
	webApps := follow(t, s, &slipwayv1alpha1.WebAppList{})
	warmUp(t, s, webApps)
	namespaces := s.namespaces(t, "one", 1)
	var times comparison
	_, p, _ := times.round(t, s, webApps, namespaces, size.apps)
	p.stop(t)
	times.report(fmt.Sprintf("%d WebApps in one namespace", size.apps), nil)
}

// warmUp makes the API server do everything once, so that the first round does not pay
// for it.
func warmUp(t *testing.T, s *server, webApps *follower) {
	t.Helper()
	namespaces := s.namespaces(t, "warm-up", 1)
	p := startOperator(t, s)
	converge(t, s, webApps, newApps(namespaces, 50), nil)
	p.stop(t)
	s.clear(t, namespaces)
}

// comparison holds times of the operator against times of the raw client.
type comparison struct {
	raw, operator []time.Duration
	// rawWrites is how many writes the raw client made last.
	rawWrites int
	// rawWork and operatorWork are the processor time of all programs together.
	rawWork, operatorWork []time.Duration
	requests              []string
	cpu                   time.Duration
	apps                  int
}

// round times the raw client, then, on the same empty namespaces, a fresh operator,
// which it leaves running with its WebApps. It returns what the operator kept before.
func (c *comparison) round(t *testing.T, s *server, f *follower, namespaces []string, n int) ([]*slipwayv1alpha1.WebApp, *process, memory) {
	t.Helper()
	c.timeRaw(t, s, f, namespaces, n)
	s.clear(t, namespaces)
	return c.timeOperator(t, s, f, namespaces, n)
}

func (c *comparison) timeRaw(t *testing.T, s *server, f *follower, namespaces []string, n int) {
	t.Helper()
	raw := newRawClient(t, s)
	idle := allProcessorTime()
	took := converge(t, s, f, newApps(namespaces, n), raw)
	c.raw = append(c.raw, took)
	c.rawWork = append(c.rawWork, allProcessorTime()-idle)
	c.rawWrites = raw.counter.Counts().Writes()
	fmt.Printf("%d WebApps by the raw client: %v; %s\n", n, took, raw.counter.Counts())
}

func (c *comparison) timeOperator(t *testing.T, s *server, f *follower, namespaces []string, n int) ([]*slipwayv1alpha1.WebApp, *process, memory) {
	t.Helper()
	p := startOperator(t, s)
	empty := p.memory(t)
	before := p.rest(t)
	apps := newApps(namespaces, n)
	profiled := make(chan struct{})
	go func() {
		defer close(profiled)
		p.profile(t, fmt.Sprintf("converge-%d.prof", n), "profile?seconds=10")
	}()
	idle := allProcessorTime()
	took := converge(t, s, f, apps, nil)
	c.operator = append(c.operator, took)
	c.operatorWork = append(c.operatorWork, allProcessorTime()-idle)
	<-profiled
	after := p.rest(t)
	c.apps, c.cpu = n, after.CPU-before.CPU
	made := after.requests().Since(before.requests())
	fmt.Printf("%d WebApps by the operator: %v; %s; %d reconciles, %d errors\n",
		n, took, made, after.Reconciles-before.Reconciles, after.Errors-before.Errors)
	c.requests = append(c.requests, made.String())
	if got := made.Writes(); got != c.rawWrites {
		t.Errorf("the operator made %d writes, the raw client %d: %s", got, c.rawWrites, made)
	}
	return apps, p, empty
}

// report adds the lines: the median of the rounds, as time and as multiple.
func (c *comparison) report(what string, goal *time.Duration) {
	ratio, workRatio := medianRatio(c.operator, c.raw), medianRatio(c.operatorWork, c.rawWork)
	took, rawTook := median(c.operator), median(c.raw)
	results.requests(what, strings.Join(c.requests, "; "))
	line := row{
		What: what + " at once, until every status is current", Goal: "report",
		Measured: fmt.Sprintf("%.1f s (operator's CPU: %.1f ms per WebApp)", took.Seconds(), c.cpu.Seconds()*1000/float64(c.apps)),
		Values:   map[string]float64{"seconds": took.Seconds(), "cpuMSPerApp": c.cpu.Seconds() * 1000 / float64(c.apps)},
	}
	var ok *bool
	if goal != nil {
		line.Goal = fmt.Sprint(*goal)
		ok = met(took <= *goal)
	}
	results.add(line, ok)
	results.add(row{
		What: what + ", beside a raw client with the same writes", Goal: "1.3x",
		Measured: fmt.Sprintf("%.2fx (raw client %.1f s; all rounds: %s)", ratio, rawTook.Seconds(), c.rounds()),
		Values:   map[string]float64{"ratio": ratio, "rawSeconds": rawTook.Seconds()},
	}, met(ratio <= 1.3))
	perApp := func(work []time.Duration) float64 { return median(work).Seconds() * 1000 / float64(c.apps) }
	results.add(row{
		What: what + ", the same in processor time of all programs (API server, etcd, load, and operator or raw client)", Goal: "1.3x",
		Measured: fmt.Sprintf("%.2fx (%.1f ms for each WebApp, raw client %.1f ms)", workRatio, perApp(c.operatorWork), perApp(c.rawWork)),
		Values:   map[string]float64{"ratio": workRatio, "operatorMS": perApp(c.operatorWork), "rawMS": perApp(c.rawWork)},
	}, met(workRatio <= 1.3))
}

// medianRatio returns the median of what each round's operator took for each thing that
// its raw client took.
func medianRatio(operator, raw []time.Duration) float64 {
	var ratios []float64
	for i := range raw {
		ratios = append(ratios, operator[i].Seconds()/raw[i].Seconds())
	}
	return median(ratios)
}

func median[T cmp.Ordered](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

func (c *comparison) rounds() string {
	var parts []string
	for i := range c.raw {
		parts = append(parts, fmt.Sprintf("%.1f/%.1f s", c.operator[i].Seconds(), c.raw[i].Seconds()))
	}
	return strings.Join(parts, ", ")
}

// measureHeap adds what a WebApp costs in the operator's memory.
func measureHeap(t *testing.T, p *process, empty memory, n int) {
	t.Helper()
	now := p.memory(t)
	p.profile(t, fmt.Sprintf("heap-%d.prof", n), "heap")
	perApp := (float64(now.Heap) - float64(empty.Heap)) / float64(n) / 1024
	results.add(row{
		What: fmt.Sprintf("heap for each WebApp, 0 to %d (WebApp, Deployment, Service cached)", n), Goal: "25 KiB",
		Measured: fmt.Sprintf("%.1f KiB (heap %.1f to %.1f MiB, resident %.0f to %.0f MiB, at most %.0f)", perApp,
			mib(empty.Heap), mib(now.Heap), mib(empty.Resident), mib(now.Resident), mib(p.peak())),
		Values: map[string]float64{
			"kib": perApp, "heapEmptyMiB": mib(empty.Heap), "heapMiB": mib(now.Heap), "residentMiB": mib(now.Resident), "peakMiB": mib(p.peak()),
		},
	}, met(perApp <= 25))
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// measureRest makes the operator look at every WebApp again, twice: another client
// touches every WebApp, then every Deployment.
func measureRest(t *testing.T, s *server, p *process, apps []*slipwayv1alpha1.WebApp) {
	t.Helper()
	before := p.rest(t)
	touched := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/touched":"yes"}}}`))
	objects := map[string]func(metav1.ObjectMeta) client.Object{
		"WebApp":     func(m metav1.ObjectMeta) client.Object { return &slipwayv1alpha1.WebApp{ObjectMeta: m} },
		"Deployment": func(m metav1.ObjectMeta) client.Object { return &appsv1.Deployment{ObjectMeta: m} },
	}
	for name, object := range objects {
		start := p.state(t)
		err := each(apps, func(app *slipwayv1alpha1.WebApp) error {
			return s.client.Patch(t.Context(), object(metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}), touched, stranger)
		})
		if err != nil {
			t.Fatalf("touch every %s: %v", name, err)
		}
		p.await(t, "a reconcile of every WebApp", func(now state) bool { return now.Reconciles-start.Reconciles >= len(apps) && now.Waiting == 0 })
	}
	after := p.rest(t)
	made := after.requests().Since(before.requests())
	reads := made.Sum(requests.Reads, requests.Lists)
	reconciles := after.Reconciles - before.Reconciles
	results.requests(fmt.Sprintf("%d reconciles at steady state", reconciles), made.String())
	results.add(row{
		What: fmt.Sprintf("steady state, %d WebApps, every WebApp and every Deployment touched by a stranger", len(apps)), Goal: "0 writes, 0 live reads",
		Measured: fmt.Sprintf("%d writes, %d live reads, %d events in %d reconciles (%.2f ms CPU each)", made.Writes(), reads, made.Sum(requests.Events), reconciles,
			(after.CPU-before.CPU).Seconds()*1000/float64(reconciles)),
		Values: map[string]float64{"writes": float64(made.Writes()), "reads": float64(reads), "reconciles": float64(reconciles)},
	}, met(made.Writes()+reads+made.Sum(requests.Events) == 0))
	if made.Writes()+reads > 0 {
		t.Errorf("at steady state the operator made requests: %s", made)
	}
}
