//go:build faulttest

package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// How long nothing may happen to an object and its children for them to be in a steady state.
// The states that all others are compared with are given longer.
const (
	shortRest = 150 * time.Millisecond
	longRest  = time.Second
	// removalPatience is how long the test itself may take to collect what was made.
	removalPatience = 30 * time.Second
)

// transitionRig is what the trials of a kind share: namespaces, an operator that works
// in them, and a cluster that is played.
type transitionRig struct {
	kind       *specKind
	namespaces []string
	view       *familyView
	// trials are those under way.
	trials chan struct{}
}

// trialsAtOnce have more objects, one for each value, than there are places for.
const trialsAtOnce = 12

func newTransitionRig(t *testing.T, kind *specKind, namespaces int) *transitionRig {
	t.Helper()
	r := &transitionRig{kind: kind, trials: make(chan struct{}, trialsAtOnce)}
	for range namespaces {
		namespace := env.Namespace(t)
		r.namespaces = append(r.namespaces, namespace)
		// They have a view of their own, and watches.
		bench.Recorder.Forget(namespace)
		bench.Relay.Forget(namespace)
	}
	for _, fields := range kind.Objects {
		r.makeBefore(t, fields)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[actor](5*time.Millisecond, time.Second))
	t.Cleanup(queue.ShutDown)
	view, err := newFamilyView(ctx, env.Config, r.namespaces, kind, queue.Add)
	if err != nil {
		t.Fatal(err)
	}
	r.view = view
	gateways, err := workload.NewGateways(view.reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gateways.Close)
	cluster := &workload.Cluster{Client: env.Client, WithoutReadyPods: true, Gateways: gateways}
	for range 2 * trialsAtOnce {
		go r.playObjects(ctx, cluster, queue)
	}
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
		options.Namespaces = slices.Concat(r.namespaces, kind.ElsewhereIn)
		options.Controllers = kind.controllers
		options.GatewayAdminPort = gateways.Port
		options.BackupHooks, options.BackupExec = true, workload.Containers{}
	})
	return r
}

// makeBefore makes an object that the trials need: in the namespace that it names, or else,
// if it is in one, in every namespace of the trials.
func (r *transitionRig) makeBefore(t *testing.T, fields map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: fields}
	namespaced, err := env.Client.IsObjectNamespaced(object)
	if err != nil {
		t.Fatal(err)
	}
	if !namespaced {
		if err := env.Client.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := env.Client.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
		return
	}
	namespaces := r.namespaces
	if object.GetNamespace() != "" {
		namespaces = []string{object.GetNamespace()}
	}
	for _, namespace := range namespaces {
		copied := object.DeepCopy()
		copied.SetNamespace(namespace)
		if err := env.Client.Create(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		if status, ok := object.Object["status"]; ok {
			copied.Object["status"] = runtime.DeepCopyJSONValue(status)
			if err := env.Client.Status().Update(t.Context(), copied); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// actor is an object that the controllers of Kubernetes may have to act on.
type actor struct{ kind, namespace, name string }

func actorOf(object *unstructured.Unstructured) actor {
	return actor{object.GetKind(), object.GetNamespace(), object.GetName()}
}

// playObjects plays the controllers of Kubernetes until the context ends.
func (r *transitionRig) playObjects(ctx context.Context, cluster *workload.Cluster, queue workqueue.TypedRateLimitingInterface[actor]) {
	for {
		who, shutdown := queue.Get()
		if shutdown {
			return
		}
		object := r.view.newest(who)
		if object == nil || r.act(ctx, cluster, object) == nil {
			queue.Forget(who)
		} else {
			// A lost race.
			queue.AddRateLimited(who)
		}
		queue.Done(who)
	}
}

func (r *transitionRig) act(ctx context.Context, cluster *workload.Cluster, object *unstructured.Unstructured) error {
	collected, err := r.collect(ctx, object)
	if collected || err != nil {
		return err
	}
	return cluster.Act(ctx, object, r.kind.Pods)
}

// collect is the garbage collector for what belongs to an earlier object of the same
// name, and would be in the way of the new one.
func (r *transitionRig) collect(ctx context.Context, object *unstructured.Unstructured) (collected bool, err error) {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != r.kind.gvk.Kind {
		return false, nil
	}
	seen := r.view.newest(actor{owner.Kind, object.GetNamespace(), owner.Name})
	if seen == nil || seen.GetUID() == owner.UID {
		return false, nil
	}
	live := seen.DeepCopy()
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil || live.GetUID() == owner.UID {
		return false, client.IgnoreNotFound(err)
	}
	uid := object.GetUID()
	return true, client.IgnoreNotFound(env.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
}

func (r *transitionRig) object(i int, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(r.kind.gvk)
	object.SetNamespace(r.namespaces[i])
	object.SetName(name)
	return object
}

// here returns a spec with the object's own namespace and name in place of NAMESPACE and
// NAME, for what no two objects of the cluster may have, such as a host.
func (r *transitionRig) here(i int, name string, spec any) any {
	return withTexts(spec, strings.NewReplacer("NAMESPACE", r.namespaces[i], "NAME", name))
}

func withTexts(node any, texts *strings.Replacer) any {
	switch node := node.(type) {
	case string:
		return texts.Replace(node)
	case []any:
		list := make([]any, len(node))
		for i, item := range node {
			list[i] = withTexts(item, texts)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(node))
		for key, value := range node {
			fields[key] = withTexts(value, texts)
		}
		return fields
	default:
		return node
	}
}

// create makes an object with a spec in the i-th namespace.
func (r *transitionRig) create(t *testing.T, i int, name string, spec any) error {
	object := r.object(i, name)
	object.Object["spec"] = r.here(i, name, spec)
	return env.Client.Create(t.Context(), object, client.FieldOwner("user"))
}

// wouldBe returns the spec that an object would be kept with.
func (r *transitionRig) wouldBe(t *testing.T, name string, spec any) (any, error) {
	object := r.object(0, name)
	object.Object["spec"] = r.here(0, name, spec)
	err := env.Client.Create(t.Context(), object, client.DryRunAll)
	return object.Object["spec"], err
}

// edit gives an object another spec and returns its new generation.
func (r *transitionRig) edit(t *testing.T, i int, name string, spec any) (int64, error) {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": r.here(i, name, spec)}})
	if err != nil {
		return 0, err
	}
	object := r.object(i, name)
	err = env.Client.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("user"))
	return object.GetGeneration(), err
}

// unchanged does something that must not change the object.
func (r *transitionRig) unchanged(t *testing.T, i int, name string, do func() error) error {
	before, after := r.object(i, name), r.object(i, name)
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("the object changed (-before +after):\n%s", diff)
	}
	return nil
}

// await waits until an object and what was made of it pass a check, gives the place
// back, and waits until nothing has happened to them for a while.
func (r *transitionRig) await(t *testing.T, place *scenario.Place, i int, name string, during time.Duration, check func(family) error) (family, error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), scenario.SettleWithin+during)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var checked time.Time
	err := fmt.Errorf("nothing was seen of it")
	for {
		now := r.view.family(r.namespaces[i], name)
		if now.declared != nil && now.changed != checked {
			checked, err = now.changed, check(now)
		}
		if err == nil {
			place.Leave()
		}
		if err == nil && time.Since(now.changed) >= during {
			bench.Times.Changed(t.Name(), max(0, now.changed.Sub(begun)))
			return now, nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = errors.New("it goes on changing")
			}
			return now, fmt.Errorf("it does not come to rest within %v: %w\n%s", scenario.SettleWithin, err, now)
		case <-ticker.C:
		}
	}
}

// remove deletes an object and, as the garbage collector would, what was made of it.
func (r *transitionRig) remove(t *testing.T, i int, name string) error {
	if err := env.Client.Delete(t.Context(), r.object(i, name)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), removalPatience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		// A reconcile that was under way may still make something.
		now := r.view.family(r.namespaces[i], name)
		if len(now.all) == 0 {
			return nil
		}
		if now.declared == nil {
			if err := r.removeChildren(ctx, i, name); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %v there is still %v", removalPatience, slices.Sorted(maps.Keys(now.all)))
		case <-ticker.C:
		}
	}
}

func (r *transitionRig) removeChildren(ctx context.Context, i int, name string) error {
	for _, child := range r.view.family(r.namespaces[i], name).all {
		if child.GetKind() == r.kind.gvk.Kind {
			continue
		}
		if len(child.GetFinalizers()) > 0 {
			// No controller of Kubernetes does it here.
			patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))
			if err := env.Client.Patch(ctx, child.DeepCopy(), patch); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if err := env.Client.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// removeAll removes the objects of a trial, and their Services: another trial may want
// the same node ports, and nothing else collects them. What remains is in nobody's way.
func (r *transitionRig) removeAll(name string) {
	ctx := context.Background()
	for i := range r.namespaces {
		_ = env.Client.Delete(ctx, r.object(i, name))
	}
	for i := range r.namespaces {
		for _, child := range r.view.family(r.namespaces[i], name).all {
			if child.GetKind() == "Service" {
				_ = env.Client.Delete(ctx, child)
			}
		}
	}
}
