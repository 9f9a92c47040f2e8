//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// operatorPods returns the operator's pods that are not on their way out.
func (f *fixture) operatorPods() []corev1.Pod {
	f.Helper()
	pods, err := cluster.OperatorPods(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return pods
}

// leaseHolder returns the identity of the process that leads, or nothing.
func (f *fixture) leaseHolder() string {
	f.Helper()
	holder, err := cluster.LeaseHolder(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return holder
}

func (f *fixture) waitForLeader() *corev1.Pod {
	f.Helper()
	var leader *corev1.Pod
	f.Eventually(func() (err error) {
		leader, err = cluster.Leader(f.Context())
		return err
	})
	return leader
}

// killLeader kills the operator's leader. It cannot release its Lease, which has to expire.
func (f *fixture) killLeader() {
	f.Helper()
	leader := f.waitForLeader()
	f.Cleanup(f.operatorIsComplete)
	if !cluster.Local {
		if err := cluster.Delete(f.Context(), leader, client.GracePeriodSeconds(0)); err != nil {
			f.Fatalf("kill the leader: %v", err)
		}
		return
	}
	if err := cluster.KillOperator(leader); err != nil {
		f.Fatalf("kill the leader: %v", err)
	}
}

// operatorIsComplete waits until the operator has all its pods.
func (f *fixture) operatorIsComplete() {
	f.Helper()
	// The test's own context has ended by now.
	ctx := context.Background()
	if err := livecluster.Eventually(ctx, time.Minute, func() error { return cluster.OperatorComplete(ctx) }); err != nil {
		f.Error(err)
	}
}

func TestAnOperatorRestartChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.Create(secret("db", "PASSWORD", "x"))
	f.Create(f.app(replicas(2), envFrom("db")))
	f.good()
	before, ended := f.settled(), livecluster.Restarts(f.pods())
	load := f.traffic(f.serviceURL())

	f.deleteOperatorPods()
	f.operatorHasLookedAtEverything()
	load.Stop("an operator restart")

	after := f.children()
	for object, version := range before {
		if after[object] != version {
			t.Errorf("%s was changed by the restart, or replaced", object)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %d objects, want %d", len(after), len(before))
	}
	if got := livecluster.Restarts(f.pods()); got != ended {
		t.Errorf("pods restarted %d times", got-ended)
	}
}

// settled waits until nothing of the application has changed for a second: the controllers of
// Kubernetes still write for a moment after a rollout.
func (f *fixture) settled() map[string]string {
	f.Helper()
	last, since := f.children(), time.Now()
	f.Eventually(func() error {
		if now := f.children(); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return errors.New("the application keeps changing")
		}
		return nil
	})
	return last
}

// children returns the version of everything that an application consists of. Of pods
// it is only the identity: their versions are the kubelet's business.
func (f *fixture) children() map[string]string {
	f.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&slipwayv1alpha1.WebAppList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{},
		&corev1.ServiceList{}, &corev1.PodList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &policyv1.PodDisruptionBudgetList{},
	} {
		if err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace)); err != nil {
			f.Fatalf("list %T: %v", list, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			f.Fatal(err)
		}
		for _, item := range items {
			object := item.(client.Object)
			version := string(object.GetUID())
			if _, isPod := object.(*corev1.Pod); !isPod {
				version += "/" + object.GetResourceVersion()
			}
			versions[fmt.Sprintf("%T %s", object, object.GetName())] = version
		}
	}
	return versions
}

// deleteOperatorPods deletes all pods of the operator and waits for others.
func (f *fixture) deleteOperatorPods() {
	f.Helper()
	old := map[types.UID]bool{}
	for _, pod := range f.operatorPods() {
		old[pod.UID] = true
		if err := cluster.Delete(f.Context(), &pod); err != nil {
			f.Fatalf("delete the operator's pod %q: %v", pod.Name, err)
		}
	}
	f.Cleanup(f.operatorIsComplete)
	f.Eventually(func() error {
		leader, err := cluster.Leader(f.Context())
		if err == nil && old[leader.UID] {
			return errors.New("an old pod still leads")
		}
		return err
	})
}

// operatorHasLookedAtEverything waits until the leader has reconciled every
// WebApp of the cluster and has nothing left to do.
func (f *fixture) operatorHasLookedAtEverything() {
	f.Helper()
	f.Eventually(func() error { return cluster.OperatorHasLookedAtEverything(f.Context()) })
}

func TestAStandbyTakesOver(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*fixture)
		goal time.Duration
	}{
		// test/chaos measures both more often. Here is room for a busy machine.
		{"when the leader leaves", (*fixture).deleteLeader, 10 * time.Second},
		{"when the leader is killed", (*fixture).killLeader, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.Create(f.app(replicas(0)))
			f.ready()
			holder := f.leaseHolder()
			start := time.Now()
			c.end(f)
			f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Port = 9090 })

			f.Eventually(func() error {
				if now := f.leaseHolder(); now == "" || now == holder {
					return fmt.Errorf("the lease is held by %q", now)
				}
				return nil
			})
			held := time.Since(start)
			f.Eventually(func() error {
				if port := mustGet(f, appName, &corev1.Service{}).Spec.Ports[0].Port; port != 9090 {
					return fmt.Errorf("the Service's port is %d", port)
				}
				return nil
			})
			worked := time.Since(start)
			f.Measured("another holds the lease after %v, and a change is acted on after %v", held.Round(time.Millisecond), worked.Round(time.Millisecond))
			if worked > c.goal {
				t.Errorf("a change took %v, want at most %v", worked, c.goal)
			}
			f.ready()
		})
	}
}

func (f *fixture) deleteLeader() {
	f.Helper()
	f.Delete(f.waitForLeader())
	f.Cleanup(f.operatorIsComplete)
}
