//go:build scale

package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// TestNoOp measures a reconcile of a WebApp that is as it should be.
func TestNoOp(t *testing.T) {
	s := startServer(t)
	webApps := follow(t, s, &slipwayv1alpha1.WebAppList{})
	apps := newApps(s.namespaces(t, "no-op", 1), 50)
	p := startOperator(t, s)
	converge(t, s, webApps, apps, nil)
	p.stop(t)
	measureNoOp(t, s, apps)
}

// measureNoOp benchmarks a reconcile of a WebApp that is as it should be. It runs in this
// process, with a manager of its own whose controller is at steady state.
func measureNoOp(t *testing.T, s *server, apps []*slipwayv1alpha1.WebApp) {
	t.Helper()
	counter := &requests.Counter{}
	config := rest.CopyConfig(s.config)
	counter.Watch(config)
	mgr, err := operator.NewManager(config, operator.Options{MetricsAddress: "0", ProbeAddress: "0"}, operator.Seams{AllowSecondController: true})
	if err != nil {
		t.Fatalf("make the manager: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	}()
	if err := waitForCaches(ctx, mgr.GetCache()); err != nil {
		t.Fatalf("wait for the caches: %v", err)
	}
	reconciler := webapp.NewReconciler(mgr, webapp.Options{})
	reconcileOne := func(i int) {
		if _, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(apps[i%len(apps)])}); err != nil {
			t.Errorf("Reconcile: %v", err)
		}
	}
	// The manager's own controller looks at everything once, and then is quiet.
	for now := (state{}); now.Reconciles < len(apps) || now.Waiting > 0; {
		for i := range apps {
			reconcileOne(i)
		}
		now = state{}
		now.readMetrics()
	}
	defer profileHere(t, "noop.prof")()
	before := counter.Counts()
	var cpu time.Duration
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		start := processorTime()
		for i := range b.N {
			reconcileOne(i)
		}
		// Of the last and longest run: with the time for collecting its garbage, without
		// what other programs took meanwhile.
		cpu = (processorTime() - start) / time.Duration(b.N)
	})
	made := counter.Counts().Since(before)
	if n := made.Writes() + made.Sum(requests.Reads, requests.Lists); n > 0 {
		t.Errorf("reconciles without work made requests: %s", made)
	}
	results.add(row{
		What: "a reconcile that finds nothing to do (cached reads)", Goal: "300 us CPU, 400 allocations",
		Measured: fmt.Sprintf("%d us CPU (%d us by the clock), %d allocations, %d KiB", cpu.Microseconds(),
			result.NsPerOp()/1000, result.AllocsPerOp(), result.AllocedBytesPerOp()>>10),
		Values: map[string]float64{
			"cpuUS": float64(cpu.Nanoseconds()) / 1000, "clockUS": float64(result.NsPerOp()) / 1000,
			"allocs": float64(result.AllocsPerOp()), "bytes": float64(result.AllocedBytesPerOp()),
		},
	}, met(cpu <= 300*time.Microsecond && result.AllocsPerOp() <= 400))
}

// profileHere profiles this process until the function that it returns is called, when
// BENCH_PROFILE names a folder.
func profileHere(t *testing.T, name string) func() {
	t.Helper()
	folder := os.Getenv("BENCH_PROFILE")
	if folder == "" {
		return func() {}
	}
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		t.Fatalf("profile: %v", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		t.Fatalf("profile: %v", err)
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}
}
