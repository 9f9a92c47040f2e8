//go:build apitest

package webapp_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// 150 WebApps of one tenant are made, and changed without an end. The WebApp of another tenant gets its Deployment and its status
// after a few of those, and not after all.
func TestWebAppsOfOneTenantDoNotDelayAnother(t *testing.T) {
	const many, times = 150, 5
	env.StartOperator(t, nil)
	greedy, quiet := newFixture(t), newFixture(t)
	alone := make([]time.Duration, times)
	for n := range times {
		alone[n] = quiet.converge(fmt.Sprint("alone-", n))
	}
	greedy.each(many, func(name string) error {
		return env.Client.Create(t.Context(), greedy.app(named(name)))
	})
	// It goes on with changes, so that the queue never gets empty.
	var changes atomic.Int64
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			app := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("app-", n%many), Namespace: greedy.namespace}}
			patch := fmt.Appendf(nil, `{"spec":{"env":{"CHANGE":"%d"}}}`, n)
			if env.Client.Patch(t.Context(), app, client.RawPatch(types.MergePatchType, patch)) == nil {
				changes.Add(1)
			}
		}
	}()
	before := greedy.made()
	beside := make([]time.Duration, times)
	var first int
	for n := range times {
		beside[n] = quiet.converge(fmt.Sprint("beside-", n))
		if n == 0 {
			first = greedy.made() - before
		}
	}
	close(stop)
	<-ended
	slices.Sort(alone)
	slices.Sort(beside)
	t.Logf("measured: a WebApp has its status after %v alone, %v beside %d WebApps of another tenant and %d changes of them (medians of %d); of %d that had no Deployment %d got one before the first of them",
		alone[times/2], beside[times/2], many, changes.Load(), times, many-before, first)
	if limit := max(2*alone[times/2], time.Second); beside[times/2] > limit {
		t.Errorf("it took %v beside another tenant, want at most %v", beside[times/2], limit)
	}
}

func named(name string) func(*slipwayv1alpha1.WebApp) {
	return func(app *slipwayv1alpha1.WebApp) { app.Name = name }
}

// each does something for as many names, some at a time.
func (f *fixture) each(many int, do func(name string) error) {
	f.Helper()
	errs := make(chan error, many)
	for worker := range 8 {
		go func() {
			for n := worker; n < many; n += 8 {
				errs <- do(fmt.Sprint("app-", n))
			}
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			f.Fatal(err)
		}
	}
}

// converge makes a WebApp, and returns after how long the operator had made its Deployment and told of it.
func (f *fixture) converge(name string) time.Duration {
	f.Helper()
	began := time.Now()
	f.create(f.app(named(name)))
	environment.Eventually(f, func() error {
		app := &slipwayv1alpha1.WebApp{}
		if err := f.get(name, app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("WebApp %q has no status of its generation", name)
		}
		return f.get(name, &appsv1.Deployment{})
	})
	return time.Since(began)
}

// made is how many Deployments the operator has made.
func (f *fixture) made() int {
	f.Helper()
	list := &appsv1.DeploymentList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	return len(list.Items)
}
