//go:build scale

package scale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// withSecret is how many of the many WebApps besides refer to a Secret.
const withSecret = 500

// TestMany measures with the large number of WebApps: how long they take beside a raw
// client, what they cost in memory, and a restart of the operator.
func TestMany(t *testing.T) {
	if size.manyApps == 0 {
		t.Skip("BENCH_MANY_APPS is 0")
	}
	namespaceCount := max(1, size.manyApps/size.perNamespace)
	var times comparison
	// An API server of its own for each, because so many objects leave their traces in one.
	t.Run("raw client", func(t *testing.T) {
		s := startServer(t)
		webApps := follow(t, s, &slipwayv1alpha1.WebAppList{})
		warmUp(t, s, webApps)
		times.timeRaw(t, s, webApps, s.namespaces(t, "many", namespaceCount), size.manyApps)
	})
	s := startServer(t)
	webApps := follow(t, s, &slipwayv1alpha1.WebAppList{})
	warmUp(t, s, webApps)
	namespaces := s.namespaces(t, "many", namespaceCount)
	apps, p, empty := times.timeOperator(t, s, webApps, namespaces, size.manyApps)
	goal := 180 * time.Second * time.Duration(size.manyApps) / 10000
	times.report(fmt.Sprintf("%d WebApps in %d namespaces", size.manyApps, len(namespaces)), &goal)
	measureHeap(t, p, empty, len(apps))

	createWithSecret(t, s, webApps, namespaces)
	p.rest(t)
	p.stop(t)
	total := len(apps) + withSecret
	before := measureRestart(t, s, total)
	measureUnrelated(t, s, namespaces[0], total, before)
}

// createWithSecret makes WebApps whose pods use a Secret.
func createWithSecret(t *testing.T, s *server, webApps *follower, namespaces []string) {
	t.Helper()
	namespaces = namespaces[:min(len(namespaces), 10)]
	err := each(namespaces, func(namespace string) error {
		return s.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "database"},
			StringData: map[string]string{"PASSWORD": "correct horse battery staple"},
		})
	})
	if err != nil {
		t.Fatalf("make Secrets: %v", err)
	}
	apps := newApps(namespaces, withSecret, func(app *slipwayv1alpha1.WebApp) {
		app.Name = "secret-" + app.Name
		app.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "database"}}}
	})
	converge(t, s, webApps, apps, nil)
}

// measureRestart starts the operator with everything there already. It returns what the
// operator keeps then.
func measureRestart(t *testing.T, s *server, total int) memory {
	t.Helper()
	start := time.Now()
	p := launchOperator(t, s)
	profiled := make(chan struct{})
	go func() {
		defer close(profiled)
		p.profile(t, "restart.prof", "profile?seconds=10")
	}()
	p.await(t, "a reconcile of every WebApp", func(now state) bool { return now.Reconciles >= total && now.Waiting == 0 })
	full := time.Since(start)
	<-profiled
	after := p.rest(t)
	made := after.requests()
	reads := made.Sum(requests.Reads)
	what := fmt.Sprintf("restart with %d WebApps, %d of which refer to a Secret", total, withSecret)
	results.requests(what, made.String())
	results.add(row{
		What: what + ": requests", Goal: "0 writes, 0 live reads",
		Measured: fmt.Sprintf("%d writes, %d live reads, %d events, %d errors in %d reconciles (caches filled by %d lists and watches)",
			made.Writes(), reads, made.Sum(requests.Events), after.Errors, after.Reconciles, made.Sum(requests.Lists, requests.Watches)),
		Values: map[string]float64{"writes": float64(made.Writes()), "reads": float64(reads), "reconciles": float64(after.Reconciles)},
	}, met(made.Writes()+reads+made.Sum(requests.Events) == 0))
	if made.Writes()+reads > 0 {
		t.Errorf("the restarted operator made requests: %s", made)
	}
	results.add(row{
		What: what + ": caches filled", Goal: "5 s after the start of the process",
		Measured: fmt.Sprintf("%.1f s", after.Synced.Seconds()),
		Values:   map[string]float64{"seconds": after.Synced.Seconds()},
	}, met(after.Synced <= 5*time.Second))
	results.add(row{
		What: what + ": a reconcile of everything", Goal: "20 s after the start of the process",
		Measured: fmt.Sprintf("%.1f s (%.1f s CPU)", full.Seconds(), after.CPU.Seconds()),
		Values:   map[string]float64{"seconds": full.Seconds(), "cpuSeconds": after.CPU.Seconds()},
	}, met(full <= 20*time.Second))
	kept := p.memory(t)
	p.profile(t, "heap-restart.prof", "heap")
	results.add(row{
		What: what + ": memory", Goal: "350 MiB resident at most",
		Measured: fmt.Sprintf("heap %.0f MiB, resident %.0f MiB, at most %.0f MiB", mib(kept.Heap), mib(kept.Resident), mib(p.peak())),
		Values:   map[string]float64{"heapMiB": mib(kept.Heap), "residentMiB": mib(kept.Resident), "peakMiB": mib(p.peak())},
	}, met(mib(p.peak()) <= 350))
	p.stop(t)
	return kept
}

// measureUnrelated adds what Secrets and ConfigMaps that no WebApp refers to cost.
func measureUnrelated(t *testing.T, s *server, namespace string, total int, before memory) {
	t.Helper()
	if size.unrelated == 0 {
		return
	}
	numbers := make([]int, size.unrelated)
	for i := range numbers {
		numbers[i] = i
	}
	payload := make([]byte, 1024)
	err := each(numbers, func(i int) error {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("unrelated-%05d", i), Labels: map[string]string{"app": "other"}}
		var object client.Object = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"payload": payload}}
		if i%2 == 1 {
			object = &corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{"payload": payload}}
		}
		return s.client.Create(t.Context(), object)
	})
	if err != nil {
		t.Fatalf("make unrelated objects: %v", err)
	}
	p := startOperator(t, s)
	p.await(t, "a reconcile of every WebApp", func(now state) bool { return now.Reconciles >= total && now.Waiting == 0 })
	p.rest(t)
	now := p.memory(t)
	p.profile(t, "heap-unrelated.prof", "heap")
	each := (float64(now.Heap) - float64(before.Heap)) / float64(size.unrelated) / 1024
	results.add(row{
		What: fmt.Sprintf("memory for %d unrelated Secrets and ConfigMaps of 1 KiB", size.unrelated), Goal: "2 KiB each",
		Measured: fmt.Sprintf("%.2f KiB each (heap %+.1f MiB, resident %+.1f MiB, at most %.0f MiB)", each,
			mib(now.Heap)-mib(before.Heap), mib(now.Resident)-mib(before.Resident), mib(p.peak())),
		Values: map[string]float64{"kib": each, "heapMiB": mib(now.Heap) - mib(before.Heap), "peakMiB": mib(p.peak())},
	}, met(each <= 2))
	p.stop(t)
}
