//go:build apitest

package webapp_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// noticed waits for what a watch tells, and fails when it took as long as a recheck: with
// room for a busy machine, since what tells it takes milliseconds.
func (f *fixture) noticed(what string, check func() error) {
	f.Helper()
	start := time.Now()
	environment.Eventually(f, check)
	took := time.Since(start)
	if f.Logf("%s: told after %v", what, took.Round(time.Millisecond)); took > 5*time.Second {
		f.Errorf("%s: told after %v, as long as a recheck takes", what, took)
	}
}

// recordReplicas watches the Deployment and returns a function that tells which
// numbers of pods it asked for, in order.
func (f *fixture) recordReplicas() func() []int32 {
	f.Helper()
	watching, err := client.NewWithWatch(env.Config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		f.Fatal(err)
	}
	events, err := watching.Watch(f.Context(), &appsv1.DeploymentList{}, client.InNamespace(f.namespace))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(events.Stop)
	var mutex sync.Mutex
	var seen []int32
	go func() {
		for event := range events.ResultChan() {
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			mutex.Lock()
			if replicas := *deployment.Spec.Replicas; len(seen) == 0 || seen[len(seen)-1] != replicas {
				seen = append(seen, replicas)
			}
			mutex.Unlock()
		}
	}()
	return func() []int32 {
		mutex.Lock()
		defer mutex.Unlock()
		return append([]int32(nil), seen...)
	}
}

// ownerOfReplicas tells whether a field manager, and not the operator's first one,
// owns the number of pods.
func ownerOfReplicas(deployment *appsv1.Deployment, manager string) error {
	var owners []string
	for _, entry := range deployment.ManagedFields {
		if entry.Subresource == "" && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:replicas"`) {
			owners = append(owners, entry.Manager)
		}
	}
	if len(owners) != 1 || owners[0] != manager {
		return fmt.Errorf("replicas are owned by %v, want %s", owners, manager)
	}
	return nil
}
