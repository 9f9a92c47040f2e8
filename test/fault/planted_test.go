//go:build faulttest

package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// A matrix in which everything passes proves nothing by itself. It has to find the mistakes
// that operators typically make, and one that is only late. Each is put into our operator, and
// the scenario named here has to catch it.
func TestPlantedBugsAreCaught(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scenario string
		plant    func(*environment.Options)
		// because is an expression for a part of what the oracle has to say.
		because string
	}{
		"a handler that acts on the first event of an object alone": {
			// It waits for its own writes to be shown, in vain. Or it does not hear that the pods are ready: what it hears of
			// depends on which event comes first.
			"webapp/drift", func(o *environment.Options) { o.NewCache = edgeTriggered },
			"something left to do|was not shown everything|it does not come to rest",
		},
		"an owner that is recognised by its name, not by its UID": {
			"webapp/recreate", func(o *environment.Options) { o.NewClient = planted(trustNames) }, "another end",
		},
		"status that is written before the children": {
			"webapp/update", func(o *environment.Options) { o.NewClient = planted(statusFirst) }, "said it was ready",
		},
		"environment variables in the order of a map": {
			"webapp/update", func(o *environment.Options) { o.NewClient = planted(mapOrder) }, "another end",
		},
		"a whole update without replicas under an autoscaler": {
			"webapp/autoscaling", func(o *environment.Options) { o.NewClient = planted(fullUpdate) }, "another end",
		},
		"a status that is written late": {
			"webapp/create", func(o *environment.Options) { o.NewClient = planted(statusLate) }, fmt.Sprintf("within %v", scenario.SettleWithin),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() { table.Add("the matrix itself", "planted bugs caught", !t.Failed()) })
			s := find(t, tc.scenario)
			_, err := bench.Play(t, s, scenario.Trial{Plant: tc.plant}, reference(t, s))
			switch {
			case err == nil:
				t.Error("it was not caught")
			case !regexp.MustCompile(tc.because).MatchString(err.Error()):
				t.Errorf("it was caught, but not because %q: %v", tc.because, err)
			default:
				t.Logf("caught: %v", err)
			}
		})
	}
}

func find(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	for _, kind := range declared {
		for _, s := range kind.Scenarios {
			if s.Kind+"/"+s.Name == name {
				return s
			}
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return scenario.Scenario{}
}

// edgeTriggered makes a cache whose handlers hear of an object once, when it appears.
func edgeTriggered(config *rest.Config, options cache.Options) (cache.Cache, error) {
	made, err := cache.New(config, options)
	return deafCache{made}, err
}

type deafCache struct{ cache.Cache }

func (c deafCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, object, options...)
	if _, declared := object.(*slipwayv1alpha1.WebApp); declared {
		return informer, err
	}
	return deafInformer{informer}, err
}

type deafInformer struct{ cache.Informer }

// firstOnly passes on that an object appears, and nothing else.
type firstOnly struct {
	toolscache.ResourceEventHandler
}

func (firstOnly) OnUpdate(_, _ any) {}
func (firstOnly) OnDelete(any)      {}

func (i deafInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(firstOnly{handler})
}

func (i deafInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(firstOnly{handler}, options)
}

// planted makes clients with a bug.
func planted(bug func(client.Client) client.Client) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		right, err := client.New(config, options)
		if err != nil {
			return nil, err
		}
		return bug(right), nil
	}
}

// trustNames shows every object as owned by the object that has the name of its owner now.
func trustNames(right client.Client) client.Client { return namesOnly{right} }

type namesOnly struct{ client.Client }

func (c namesOnly) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if _, declared := object.(*slipwayv1alpha1.WebApp); declared {
		return nil
	}
	owners := object.GetOwnerReferences()
	for i, owner := range owners {
		app := &slipwayv1alpha1.WebApp{}
		if c.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: owner.Name}, app) == nil {
			owners[i].UID = app.UID
		}
	}
	object.SetOwnerReferences(owners)
	return nil
}

// statusFirst holds the writes of children back until status is written.
func statusFirst(right client.Client) client.Client { return &postponing{Client: right} }

type postponing struct {
	client.Client
	mu    sync.Mutex
	later []func(context.Context) error
}

func (c *postponing) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, isDeployment := object.(*appsv1.Deployment); !isDeployment {
		return c.Client.Patch(ctx, object, patch, options...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	copied := object.DeepCopyObject().(client.Object)
	c.later = append(c.later, func(ctx context.Context) error { return c.Client.Patch(ctx, copied, patch, options...) })
	return c.pretend(ctx, object, patch, options...)
}

// pretend takes a write for done: the answer asks for what was written, and has pods for that already. It is otherwise what the
// cache has.
func (c *postponing) pretend(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	cached := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), cached); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := c.Client.Patch(ctx, object, patch, append(slices.Clone(options), client.DryRunAll)...); err != nil {
		return err
	}
	answer := object.(*appsv1.Deployment)
	answer.ResourceVersion, answer.Generation, answer.Status = cached.ResourceVersion, cached.Generation, cached.Status
	pods := *answer.Spec.Replicas
	answer.Status.Replicas, answer.Status.UpdatedReplicas, answer.Status.ReadyReplicas, answer.Status.AvailableReplicas = pods, pods, pods, pods
	return nil
}

func (c *postponing) Status() client.SubResourceWriter {
	return postponingStatus{c.Client.Status(), c}
}

type postponingStatus struct {
	client.SubResourceWriter
	of *postponing
}

func (s postponingStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := s.SubResourceWriter.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for _, do := range s.of.later {
		if err := do(ctx); err != nil {
			return err
		}
	}
	s.of.later = nil
	return nil
}

// statusLate writes status a little later than anybody may wait for it.
func statusLate(right client.Client) client.Client { return hesitant{right} }

type hesitant struct{ client.Client }

func (c hesitant) Status() client.SubResourceWriter { return hesitantStatus{c.Client.Status()} }

type hesitantStatus struct{ client.SubResourceWriter }

func (s hesitantStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	timer := time.NewTimer(scenario.SettleWithin + 2*time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return s.SubResourceWriter.Patch(ctx, object, patch, options...)
}

// mapOrder applies environment variables in another order than by name, as code that ranges
// over a map mostly does.
func mapOrder(right client.Client) client.Client {
	return patching{right, func(deployment map[string]any) {
		for _, container := range containers(deployment) {
			if env, ok := container.(map[string]any)["env"].([]any); ok {
				slices.Reverse(env)
			}
		}
	}}
}

func containers(deployment map[string]any) []any {
	node := deployment
	for _, field := range []string{"spec", "template", "spec"} {
		node, _ = node[field].(map[string]any)
	}
	list, _ := node["containers"].([]any)
	return list
}

// fullUpdate applies the default number of pods where none is desired.
func fullUpdate(right client.Client) client.Client {
	return patching{right, func(deployment map[string]any) {
		if spec, ok := deployment["spec"].(map[string]any); ok && spec["replicas"] == nil {
			spec["replicas"] = 1
		}
	}}
}

// patching changes what is desired of a Deployment.
type patching struct {
	client.Client
	change func(map[string]any)
}

func (c patching) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
		raw, err := patch.Data(object)
		if err != nil {
			return err
		}
		wanted := map[string]any{}
		if err := json.Unmarshal(raw, &wanted); err != nil {
			return err
		}
		c.change(wanted)
		if raw, err = json.Marshal(wanted); err != nil {
			return err
		}
		patch = client.RawPatch(patch.Type(), raw)
	}
	return c.Client.Patch(ctx, object, patch, options...)
}
