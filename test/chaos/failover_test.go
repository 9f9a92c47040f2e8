//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

const (
	// repetitions is how often the leader ends in each way.
	repetitions = 5
	// arrivals is the time between two new WebApps: few enough to be no load.
	arrivals = time.Second
	// glance is the time between two looks at the Lease.
	glance = 50 * time.Millisecond
)

// ending is a way in which the leader ends.
type ending struct {
	name string
	end  func(context.Context, *corev1.Pod) error
	// goal is after how long another must act.
	goal time.Duration
}

// endings are ordered: a container that is killed in place for the first time is started
// again at once, and for the second time only after a while; the ways that follow give
// its pod a successor.
func endings() []ending {
	return []ending{
		{"killed, and the kubelet starts its container again", func(_ context.Context, pod *corev1.Pod) error {
			return cluster.KillOperator(pod)
		}, 18 * time.Second},
		{"told to end", func(ctx context.Context, pod *corev1.Pod) error {
			return cluster.Delete(ctx, pod)
		}, 3 * time.Second},
		{"killed, and its pod is gone", func(ctx context.Context, pod *corev1.Pod) error {
			return errors.Join(cluster.KillOperator(pod), deletePod(ctx, pod))
		}, 18 * time.Second},
	}
}

// From the end of the leader on WebApps are created, at once, now and then, and when the
// other one has taken over; and a child is damaged.
func TestAStandbyActsInTime(t *testing.T) {
	acted, waited := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range repetitions {
		for _, e := range endings() {
			f := &failover{T: t, namespace: newNamespace(t), created: map[string]time.Time{}, deployed: map[string]time.Time{}}
			after, longest := f.measure(e)
			acted[e.name], waited[e.name] = append(acted[e.name], after), append(waited[e.name], longest)
			if after > e.goal {
				t.Errorf("the leader is %s: another acts after %v, want at most %v", e.name, after, e.goal)
			}
		}
	}
	for _, e := range endings() {
		measured(t, "the leader is %s: another acts after %s (goal %v); a WebApp waits for %s", e.name, spread(acted[e.name]), e.goal, spread(waited[e.name]))
	}
}

// failover is one end of a leader.
type failover struct {
	*testing.T
	namespace string

	mutex sync.Mutex
	// created and deployed are when WebApps were created, and when their Deployments were
	// seen.
	created, deployed map[string]time.Time
}

// measure ends the leader. It returns how long it took until another one acted, and how
// long the WebApp waited that waited longest.
func (f *failover) measure(e ending) (acted, longest time.Duration) {
	f.Helper()
	ctx := f.Context()
	f.must(insist(ctx, "wait for the operator", cluster.OperatorComplete))
	f.watchDeployments()
	f.create("steady")
	f.must(insist(ctx, "wait for the Service", func(ctx context.Context) error {
		return cluster.Get(ctx, f.key("steady"), &corev1.Service{})
	}))
	var leading *corev1.Pod
	f.must(insist(ctx, "wait for a leader", func(ctx context.Context) (err error) {
		leading, err = cluster.Leader(ctx)
		return err
	}))
	holder, err := cluster.LeaseHolder(ctx)
	f.must(err)

	start := time.Now()
	f.must(e.end(ctx, leading))
	f.create("app-0")
	f.must(f.damage())
	lease := f.createUntilAnotherLeads(holder)
	f.must(insist(ctx, "wait for the repair", f.repaired))
	longest = f.longestWait()
	f.onePerApp()
	return f.firstAct(lease.Spec.AcquireTime.Time).Sub(start), longest
}

func (f *failover) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *failover) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: f.namespace, Name: name}
}

// create creates a WebApp without pods, so that only the operator is measured.
func (f *failover) create(name string) {
	f.Helper()
	at := time.Now()
	f.must(cluster.Create(f.Context(), &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: cluster.DemoImage, Port: 8080, Replicas: ptr(int32(0))},
	}))
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.created[name] = at
}

// watchDeployments notes when each Deployment appears.
func (f *failover) watchDeployments() {
	f.Helper()
	watcher, err := cluster.Watch(f.Context(), &appsv1.DeploymentList{}, client.InNamespace(f.namespace))
	f.must(err)
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			f.mutex.Lock()
			if f.deployed[deployment.Name].IsZero() {
				f.deployed[deployment.Name] = time.Now()
			}
			f.mutex.Unlock()
		}
	})
	f.Cleanup(func() { watcher.Stop(); done.Wait() })
}

// damage changes a child, which the operator undoes.
func (f *failover) damage() error {
	return insist(f.Context(), "damage the Service", func(ctx context.Context) error {
		service := &corev1.Service{}
		if err := cluster.Get(ctx, f.key("steady"), service); err != nil {
			return err
		}
		service.Labels[slipwayv1alpha1.LabelName] = "damaged"
		return cluster.Update(ctx, service)
	})
}

func (f *failover) repaired(ctx context.Context) error {
	service := &corev1.Service{}
	if err := cluster.Get(ctx, f.key("steady"), service); err != nil {
		return err
	}
	if got := service.Labels[slipwayv1alpha1.LabelName]; got != "steady" {
		return fmt.Errorf("the Service's label is %q", got)
	}
	return nil
}

// createUntilAnotherLeads creates WebApps until another process holds the Lease, and one
// more for that one. It returns the Lease.
func (f *failover) createUntilAnotherLeads(holder string) *coordinationv1.Lease {
	f.Helper()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	deadline := time.After(patience)
	last := time.Now()
	for n := 1; ; {
		select {
		case <-deadline:
			f.Fatalf("the Lease is held by %q after %v", holder, patience)
		case <-ticker.C:
		}
		lease, err := cluster.Lease(f.Context())
		f.must(err)
		now := lease.Spec.HolderIdentity
		other := now != nil && *now != "" && *now != holder
		if other || time.Since(last) > arrivals {
			last = time.Now()
			f.create(fmt.Sprintf("app-%d", n))
			n++
		}
		if other {
			return lease
		}
	}
}

// firstAct is when the first Deployment was made after a moment.
func (f *failover) firstAct(since time.Time) time.Time {
	f.Helper()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var first time.Time
	for _, at := range f.deployed {
		if at.After(since) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// longestWait waits until every WebApp has its Deployment, and returns how long the
// slowest took.
func (f *failover) longestWait() time.Duration {
	f.Helper()
	var longest time.Duration
	f.must(livecluster.Eventually(f.Context(), patience, func() error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		longest = 0
		for name, created := range f.created {
			deployed := f.deployed[name]
			if deployed.IsZero() {
				return fmt.Errorf("WebApp %q has no Deployment", name)
			}
			longest = max(longest, deployed.Sub(created))
		}
		return nil
	}))
	return longest
}

// onePerApp checks that the change of leaders made nothing twice, and recreated nothing.
func (f *failover) onePerApp() {
	f.Helper()
	var s *state
	n := len(f.created)
	// A Service is made when its Deployment has been.
	f.must(insist(f.Context(), "wait for the children", func(ctx context.Context) (err error) {
		if s, err = read(ctx, f.namespace); err == nil && len(s.services.Items) < n {
			return fmt.Errorf("%d WebApps have %d Services", n, len(s.services.Items))
		}
		return err
	}))
	if deployments, services := len(s.deployments.Items), len(s.services.Items); deployments != n || services != n {
		f.Errorf("%d WebApps have %d Deployments and %d Services", n, deployments, services)
	}
	for i := range s.deployments.Items {
		if d := &s.deployments.Items[i]; d.Generation != 1 {
			f.Errorf("Deployment %q was written again: generation %d", d.Name, d.Generation)
		}
	}
}
