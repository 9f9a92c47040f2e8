//go:build scale

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// operatorEnv makes the binary the operator; its value is the kubeconfig. The process
// writes the address of its instruments to standard output.
const operatorEnv = "SLIPWAY_SCALE_OPERATOR"

// state is what the operator process tells about itself.
type state struct {
	// Synced is how long after the start of the process every cache was filled; 0: not yet.
	Synced time.Duration
	// Reconciles is how many times Reconcile has returned, with an error or without.
	Reconciles int
	// Errors is how many of them returned an error.
	Errors int
	// Waiting is how many WebApps are queued or being worked on.
	Waiting int
	// CPU is the processor time of the process.
	CPU time.Duration
	// Requests are all requests so far.
	Requests []count
}

// count is one entry of requests.Counts, whose keys are no JSON keys.
type count struct {
	Kind requests.Kind
	N    int
}

// memory is what the operator process keeps.
type memory struct {
	// Heap is what is live after a garbage collection, in bytes.
	Heap uint64
	// Resident is the process's resident memory after that, in bytes.
	Resident uint64
}

// instruments serve the measurements of the process. They are all that the process has
// beside the operator.
type instruments struct {
	counter requests.Counter
	synced  chan struct{}
	took    time.Duration
}

// runOperator is main of the operator process: what cmd/slipway-operator runs, with
// every request counted.
func runOperator() error {
	started := time.Now()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(operatorEnv))
	if err != nil {
		return err
	}
	config.QPS = -1
	own := &instruments{synced: make(chan struct{})}
	own.counter.Watch(config)
	mgr, err := operator.NewManager(config, operator.Options{MetricsAddress: "0", ProbeAddress: "0"}, operator.Seams{})
	if err != nil {
		return err
	}
	// It counts all WebApps whenever metrics are read, and the instruments read them often.
	crmetrics.Registry.Unregister(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: webapp.AppsByCondition.Name, Help: webapp.AppsByCondition.Help,
	}, webapp.AppsByCondition.Labels))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		if err := http.Serve(listener, own.handler()); !errors.Is(err, net.ErrClosed) {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	fmt.Println("http://" + listener.Addr().String())
	ctx := ctrl.SetupSignalHandler()
	go func() {
		if waitForCaches(ctx, mgr.GetCache()) == nil {
			own.took = time.Since(started)
			close(own.synced)
		}
	}()
	return mgr.Start(ctx)
}

// waitForCaches waits until every cache of the cache budget is filled.
func waitForCaches(ctx context.Context, caches cache.Cache) error {
	kinds := []client.Object{
		&slipwayv1alpha1.WebApp{}, &appsv1.Deployment{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{},
		&policyv1.PodDisruptionBudget{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}, &corev1.Pod{},
		&slipwayv1alpha1.Backup{}, &slipwayv1alpha1.BackupRun{}, &batchv1.Job{},
		metadataOf(appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		metadataOf(corev1.SchemeGroupVersion.WithKind("Secret")),
		metadataOf(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
	}
	var filled []func() bool
	for _, kind := range kinds {
		// Not waiting here: before the manager has started there is nothing to wait for.
		informer, err := caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		filled = append(filled, informer.HasSynced)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(filled, func(synced func() bool) bool { return !synced() }) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func metadataOf(kind schema.GroupVersionKind) client.Object {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	return metadata
}

func (i *instruments) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/state", func(w http.ResponseWriter, _ *http.Request) { answer(w, i.state()) })
	mux.HandleFunc("/memory", func(w http.ResponseWriter, _ *http.Request) { answer(w, measureMemory()) })
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	return mux
}

func answer(w http.ResponseWriter, value any) {
	if err := json.NewEncoder(w).Encode(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (i *instruments) state() state {
	var s state
	select {
	case <-i.synced:
		s.Synced = i.took
	default:
	}
	for kind, n := range i.counter.Counts() {
		s.Requests = append(s.Requests, count{Kind: kind, N: n})
	}
	s.CPU = processorTime()
	s.readMetrics()
	return s
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// readMetrics reads what controller-runtime tells about its reconciles and its queue.
func (s *state) readMetrics() {
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			switch family.GetName() {
			case "controller_runtime_reconcile_total":
				s.Reconciles += int(m.GetCounter().GetValue())
				if labels["result"] == "error" {
					s.Errors += int(m.GetCounter().GetValue())
				}
			case "controller_runtime_active_workers", "workqueue_depth":
				s.Waiting += int(m.GetGauge().GetValue())
			}
		}
	}
}

// measureMemory collects garbage first, so that what is left is what the operator
// keeps. Twice: what finalizers and pools hold on to survives the first time.
func measureMemory() memory {
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return memory{Heap: stats.HeapAlloc, Resident: resident("/proc/self/status", "VmRSS:")}
}
