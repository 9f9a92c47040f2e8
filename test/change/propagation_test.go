//go:build change

package change

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// goals are the median and the 99th percentile that are wanted, by number of routes.
var goals = map[int][2]time.Duration{
	10:   {30 * time.Millisecond, 150 * time.Millisecond},
	1000: {60 * time.Millisecond, 300 * time.Millisecond},
}

// TestPropagation measures how long it takes from the API server's answer until the first
// request through the Service sees a changed route, and until status calls it live on
// both pods: with nothing else to do, and while somebody else changes another route each
// second. SAMPLES (default 60) changes of each sort.
func TestPropagation(t *testing.T) {
	samples := setting(t, "SAMPLES", 60)
	r := newRun(t, 1, &ofAPIGateway{})
	r.update(func(spec *slipwayv1alpha1.APIGatewaySpec) { spec.Replicas = ptr(int32(2)) })
	r.settled()
	for _, count := range []int{10, 1000} {
		r.routes = r.routes[:0]
		for i := range count {
			r.routes = append(r.routes, route("", fmt.Sprintf("/route-%d/", i), blue, portHTTP1))
		}
		r.apply()
		for _, company := range []string{"idle", "one change per second besides"} {
			ctx, cancel := context.WithCancel(t.Context())
			var wait sync.WaitGroup
			if company != "idle" {
				wait.Go(func() { r.changeAnother(ctx) })
			}
			seen, live := r.samples(count, samples)
			cancel()
			wait.Wait()
			for _, m := range []struct {
				what string
				took []time.Duration
			}{{"first 200 through the Service", seen}, {"live in status, of 2 pods", live}} {
				slices.Sort(m.took)
				at := func(percent int) time.Duration {
					return m.took[(len(m.took)-1)*percent/100].Round(100 * time.Microsecond)
				}
				measured(t, "| %d | %s | %s | %v | %v | %v | %v |", count, company, m.what, at(50), at(90), at(99), at(100))
			}
			at := func(percent int) time.Duration { return seen[(len(seen)-1)*percent/100] }
			if goal := goals[count]; at(50) > goal[0] || at(99) > goal[1] {
				t.Errorf("%d routes, %s: p50 %v and p99 %v, want at most %v and %v", count, company, at(50), at(99), goal[0], goal[1])
			}
		}
	}
}

// changeAnother edits the last route each second.
func (r *run) changeAnother(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		g := &slipwayv1alpha1.APIGateway{}
		if err := cluster.Get(ctx, r.key(gateway), g); err != nil {
			continue // the next one will do
		}
		edition := slipwayv1alpha1.HeaderValue(fmt.Sprint(n))
		g.Spec.Routes[len(g.Spec.Routes)-1].ResponseHeaders = &slipwayv1alpha1.HeaderEdit{Set: []slipwayv1alpha1.HeaderField{{Name: edited, Value: edition}}}
		_ = cluster.Update(ctx, g) // on a conflict, too
	}
}

// samples makes changes, about one a second, and returns how long each took until it was seen, and until
// status called it live.
func (r *run) samples(count, samples int) (seen, live []time.Duration) {
	r.Helper()
	ticker := time.NewTicker(1100 * time.Millisecond)
	defer ticker.Stop()
	transport := r.transport(http1)
	defer transport.CloseIdleConnections()
	for i := range samples {
		<-ticker.C
		path := fmt.Sprintf("/changed-%d-%d/", count, i)
		g := &slipwayv1alpha1.APIGateway{}
		r.eventually(func() error {
			if err := cluster.Get(r.Context(), r.key(gateway), g); err != nil {
				return err
			}
			g.Spec.Routes[0].Path = path
			return cluster.Update(r.Context(), g)
		})
		answered := time.Now()
		var wait sync.WaitGroup
		called := make(chan time.Time, 1)
		wait.Go(func() { called <- r.calledLive(g) })
		r.must(awaitPath(r.Context(), transport, path))
		seen = append(seen, time.Since(answered))
		wait.Wait()
		at := <-called
		if at.IsZero() {
			r.Fatalf("change %d was not called live", i)
		}
		live = append(live, max(at.Sub(answered), 0))
	}
	return seen, live
}

// awaitPath asks, up to a thousand times a second, until a path is found.
func awaitPath(ctx context.Context, transport *http.Transport, path string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK {
			return nil
		}
		<-ticker.C
	}
}

// calledLive returns when status says that every pod serves every route of a generation,
// or of a later one. The zero time: it never does.
func (r *run) calledLive(g *slipwayv1alpha1.APIGateway) time.Time {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	watcher, err := cluster.Watch(ctx, &slipwayv1alpha1.APIGatewayList{}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": gateway})
	if err != nil {
		return time.Time{}
	}
	defer watcher.Stop()
	for e := range watcher.ResultChan() {
		now, ok := e.Object.(*slipwayv1alpha1.APIGateway)
		if !ok {
			continue
		}
		routes := now.Status.Routes
		if now.Status.ObservedGeneration >= g.Generation && routes.Live == routes.Total && routes.Total == int32(len(g.Spec.Routes)) {
			return time.Now()
		}
	}
	return time.Time{}
}
