//go:build peers

package peers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	gateway = "edge"
	host    = "app.example.com"
	// kept is the name of the route that is there all the time.
	kept = "kept"
	// patience is how long what should come may take.
	patience = 5 * time.Minute
)

// TestSideBySide does the same to every contender, ROUNDS times (default 1), one contender at a time and each with a namespace, a
// GatewayClass and a Gateway of its own. ROUTES (default 1000) is the size of the first crowd and MORE (default 3000) that of the
// second. ONLY names one contender.
func TestSideBySide(t *testing.T) {
	table := &report{}
	for round := range setting(t, "ROUNDS", 1) {
		order := slices.Clone(contenders)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if only := os.Getenv("ONLY"); only != "" && only != c.name {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				f := livetest.New(t, cluster)
				f.Patience = patience
				(&play{Fixture: f, contender: &c, table: table}).run()
			})
		}
	}
	t.Logf("\n%s", table)
	if err := table.write(); err != nil {
		t.Error(err)
	}
}

func setting(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number", name, text)
	}
	return n
}

// play is one contender in one round.
type play struct {
	*livetest.Fixture

	contender *contender
	table     *report
	processes []process
	statuses  *statuses
	asker     *asker
	load      *load
	crowd     []*member
	others    int // routes beside the crowd
}

// run is the script.
func (p *play) run() {
	p.startBackends()
	p.processes = p.contender.install(p.Fixture)
	p.statuses = followStatuses(p.Fixture, p.contender.controller)
	p.contender.createGateway(p.Fixture)
	p.keep(route(kept, blue))
	p.Eventually(func() error { return p.statuses.allSettled(1) })
	if p.contender.withoutDataPlane {
		p.grow(setting(p.T, "ROUTES", 1000))
		p.steadyChanges()
		p.grow(setting(p.T, "MORE", 3000))
		p.shrink()
		return
	}
	p.startAsking()
	p.grow(setting(p.T, "ROUTES", 1000))
	p.firstAnswers()
	p.steadyChanges()
	p.changeUnderLoad()
	p.failover()
	p.grow(setting(p.T, "MORE", 3000))
	p.shrink()
	p.judge()
}

// judge tells what became of the requests for the route that stays.
func (p *play) judge() {
	p.load.stop()
	p.tell("requests at 200/s for a route that did not change, not answered by its backend", p.load.count())
	if first := p.load.first.Load(); first != nil {
		p.Logf("the first wrong answer: %s", *first)
	}
	if p.contender.ours && p.load.wrong.Load() > 0 {
		p.Errorf("%s requests were answered wrongly", p.load.count())
	}
}

// tell reports a figure.
func (p *play) tell(what string, value any) {
	text := fmt.Sprint(value)
	if took, ok := value.(time.Duration); ok {
		text = took.Round(time.Millisecond).String()
	}
	p.Measured("%s: %s: %s", p.contender.name, what, text)
	p.table.add(what, p.contender.name, text)
}

// keep creates a route that is there until the end.
func (p *play) keep(object *gatewayv1.HTTPRoute) {
	p.Create(object)
	p.others++
}

// startAsking waits until the route that stays is served, and asks for it until the end.
func (p *play) startAsking() {
	service := &corev1.Service{}
	p.Eventually(func() error { return p.Get(p.contender.service, service) })
	p.asker = newAsker(p.T, service.Spec.ClusterIP)
	p.Eventually(func() error { return p.asker.check(p.Context(), "/"+kept, blue) })
	p.load = startLoad(p.T, p.asker, "/"+kept, 200, 4)
}

// grow creates so many routes as fast as they are taken, and watches what becomes of them.
func (p *play) grow(count int) {
	if count == 0 {
		return
	}
	title := fmt.Sprintf("%d new routes beside %d", count, len(p.crowd)+p.others)
	p.statuses.writes()
	before := usage(p.Fixture, p.processes)
	first := len(p.crowd)
	for i := range count {
		p.crowd = append(p.crowd, newMember(first+i))
	}
	members := p.crowd[first:]
	answers := p.follow(title, members)
	start := time.Now()
	p.createAll(members)
	created := time.Now()
	p.tell(title+": created within", created.Sub(start))
	p.await(title+": every status says so, after the last", created, func() error { return p.statuses.allSettled(len(p.crowd) + p.others) })
	p.await(title+": the listener counts them, after the last", created, func() error { return p.statuses.counted(len(p.crowd) + p.others) })
	answers(created)
	all, most, gateways := p.statuses.writes()
	p.tell(title+": status writes of routes; of one at most; of the Gateway", fmt.Sprintf("%d; %d; %d", all, most, gateways))
	p.tellUse(title, before, 0)
}

// follow asks for members while they are created. The result waits until all have answered, and tells when that was and what was
// wrong.
func (p *play) follow(title string, members []*member) (result func(created time.Time)) {
	if p.contender.withoutDataPlane {
		return func(time.Time) {}
	}
	load := p.load.count()
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	v, served := &verdicts{}, make(chan error, 1)
	var last time.Time
	go func() {
		err := awaitLive(ctx, p.asker, members, v)
		last = time.Now()
		served <- err
	}()
	return func(created time.Time) {
		defer cancel()
		if err := <-served; err != nil {
			p.tell(title+": all are served, after the last", "never: "+err.Error())
		} else {
			p.tell(title+": all are served, after the last", max(last.Sub(created), 0))
		}
		p.tell(title+": wrong answers before a route is served", v.early.Load())
		p.tell(title+": wrong answers of a route that was served", v.lost.Load())
		p.tell(title+": wrong answers of the route that stays", p.load.count().since(load))
		if p.contender.ours && v.lost.Load() > 0 {
			p.Errorf("%s: %d requests were answered wrongly", title, v.lost.Load())
		}
	}
}

func (p *play) createAll(members []*member) {
	var wait sync.WaitGroup
	next := make(chan *member)
	errs := make(chan error, len(members))
	for range 20 {
		wait.Go(func() {
			for m := range next {
				object := route(m.name, m.color)
				object.Namespace, object.Labels = p.Namespace, map[string]string{ofCrowd: ""}
				if err := p.Cluster.Create(p.Context(), object); err != nil {
					errs <- err
					continue
				}
				m.created.Store(true)
			}
		})
	}
	for _, m := range members {
		next <- m
	}
	close(next)
	wait.Wait()
	select {
	case err := <-errs:
		p.Fatal(err)
	default:
	}
}

// await tells how long after a time something is so, or that it never is.
func (p *play) await(what string, since time.Time, check func() error) {
	if err := livecluster.Eventually(p.Context(), time.Minute, check); err != nil {
		p.tell(what, "not within a minute: "+err.Error())
		return
	}
	p.tell(what, time.Since(since))
}

// tellUse reports what the processes have used since before: processor time, or cores if it is known how long it took.
func (p *play) tellUse(title string, before map[string]use, took time.Duration) {
	after := usage(p.Fixture, p.processes)
	for _, process := range p.processes {
		plane, seconds := process.plane, after[process.plane].seconds-before[process.plane].seconds
		if took > 0 {
			p.tell(title+": cores, "+plane, fmt.Sprintf("%.3f", seconds/took.Seconds()))
		} else {
			p.tell(title+": processor time, "+plane, fmt.Sprintf("%.2f s", seconds))
		}
		p.tell(title+": resident after it, "+plane, fmt.Sprintf("%.0f MiB", after[plane].bytes/(1<<20)))
	}
}

// firstAnswers measures the time from the API server's answer until a new route's first 200, one at a time.
func (p *play) firstAnswers() {
	const samples = 30
	var took []time.Duration
	ticker := time.NewTicker(1100 * time.Millisecond)
	defer ticker.Stop()
	for i := range samples {
		<-ticker.C
		name := fmt.Sprintf("sample-%d", i)
		object := route(name, blue)
		p.Create(object)
		took = append(took, p.served(name))
		p.Delete(object)
	}
	slices.Sort(took)
	p.tell(fmt.Sprintf("a new route beside %d: first answer, median", len(p.crowd)+p.others), took[samples/2])
	p.tell(fmt.Sprintf("a new route beside %d: first answer, slowest of %d", len(p.crowd)+p.others, samples), took[samples-1])
}

// served returns how long it takes from now until a route answers. It is asked up to a thousand times a second.
func (p *play) served(name string) time.Duration {
	start := time.Now()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for p.asker.check(p.Context(), "/"+name, blue) != nil {
		if time.Since(start) > time.Minute {
			p.Fatalf("%s is not served", name)
		}
		<-ticker.C
	}
	return time.Since(start)
}

// point gives a route another backend.
func (p *play) point(name, path, backend string) {
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/rules/0/backendRefs/0/name","value":%q}]`, backend)
	object := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	if err := p.Cluster.Patch(p.Context(), object, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		p.Fatalf("%s: %v", path, err)
	}
}

// steadyChanges changes ten routes a second for half a minute.
func (p *play) steadyChanges() {
	const every, duration = 100 * time.Millisecond, 30 * time.Second
	if len(p.crowd) == 0 {
		return
	}
	title := fmt.Sprintf("10 changes a second among %d", len(p.crowd)+p.others)
	p.statuses.writes()
	before, start := usage(p.Fixture, p.processes), time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := range int(duration / every) {
		<-ticker.C
		m := p.crowd[i*7919%len(p.crowd)]
		m.color = map[string]string{blue: green, green: blue}[m.color]
		p.point(m.name, m.name, m.color)
	}
	p.tellUse(title, before, time.Since(start))
	last := time.Now()
	p.await(title+": every status says so, after the last", last, func() error { return p.statuses.allSettled(len(p.crowd) + p.others) })
	all, _, gateways := p.statuses.writes()
	p.tell(title+": writes of routes, changes included; of the Gateway", fmt.Sprintf("%d; %d", all, gateways))
}

// changeUnderLoad moves a route from one backend to the other and back under 500 requests a second.
func (p *play) changeUnderLoad() {
	const changes, rate = 100, 500
	p.keep(route("moved", blue))
	p.Eventually(func() error { return p.asker.check(p.Context(), "/moved", blue) })
	load := startLoad(p.T, p.asker, "/moved", rate, 8)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for i := range changes {
		<-ticker.C
		p.point("moved", "/moved", []string{green, blue}[i%2])
	}
	load.stop()
	p.tell(fmt.Sprintf("%d changes of a route under %d requests/s: wrong answers", changes, rate), load.count())
	if p.contender.ours && load.wrong.Load() > 0 {
		p.Errorf("%s requests were answered wrongly: %s", load.count(), *load.first.Load())
	}
}

// failover sends requests to two endpoints of which one fails, in two ways. Nobody is told to check endpoints or to try again: it is
// what one gets without asking.
func (p *play) failover() {
	p.failing("one of two endpoints answers 503", "never", mixed)
	p.failing("one of two endpoints takes no connection", "half", half)
}

// failing sends a thousand requests to a backend of which one of two endpoints fails.
func (p *play) failing(title, name, backend string) {
	const requests = 1000
	object := route(name, backend)
	p.Create(object)
	p.Eventually(func() error {
		status, _, err := p.asker.ask(p.Context(), "/"+name)
		if err == nil && status == http.StatusNotFound {
			return fmt.Errorf("the route is not served yet")
		}
		return err
	})
	failed := 0
	for range requests {
		status, _, err := p.asker.ask(p.Context(), "/"+name)
		if err != nil || status != http.StatusOK {
			failed++
		}
	}
	p.tell(title+": requests that are not answered with 200", fmt.Sprintf("%.1f %%", float64(failed)*100/requests))
	p.Delete(object)
}

// shrink deletes the crowd, and waits until the listener counts what is left.
func (p *play) shrink() {
	p.statuses.writes()
	err := p.Cluster.DeleteAllOf(p.Context(), &gatewayv1.HTTPRoute{}, client.InNamespace(p.Namespace), client.HasLabels{ofCrowd})
	if err != nil {
		p.Fatal(err)
	}
	title, gone := fmt.Sprintf("%d routes are deleted", len(p.crowd)), time.Now()
	p.await(title+": the listener counts the rest", gone, func() error { return p.statuses.counted(p.others) })
	_, _, gateways := p.statuses.writes()
	p.tell(title+": status writes of the Gateway", gateways)
}

// cleanupContext is one for what is done after a test.
func cleanupContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
