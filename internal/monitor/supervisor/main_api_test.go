//go:build apitest && monitortest

package supervisor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var (
	env *environment.Environment

	cyclesFlag = flag.Int("supervisor.cycles", 20, "how many definitions are made and deleted")
	kindsFlag  = flag.Int("supervisor.kinds", 200, "how many definitions are made at once")
)

func TestMain(m *testing.M) { environment.Main(m, &env) }

// cluster makes definitions and objects.
type cluster struct {
	t       *testing.T
	client  kube.Client
	objects dynamic.Interface // knows no discovery, which is late
	group   string
}

// newCluster gives each test a group of its own. Definitions in it are deleted with the test.
func newCluster(t *testing.T) *cluster {
	scheme := operator.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	made, err := kube.New(env.Config, kube.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, client: made, objects: objects, group: fmt.Sprintf("g%d.example.com", time.Now().UnixNano())}
	t.Cleanup(func() {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := made.List(context.Background(), list); err != nil {
			t.Error(err)
		}
		for _, one := range list.Items {
			if one.Spec.Group == c.group {
				if one.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter { // which keeps it from being deleted
					one.Spec.Conversion = nil
					_ = made.Update(context.Background(), &one)
				}
				_ = made.Delete(context.Background(), &one)
			}
		}
		environment.Eventually(t, func() error {
			if err := made.List(context.Background(), list); err != nil {
				return err
			}
			for _, one := range list.Items {
				if one.Spec.Group == c.group {
					return fmt.Errorf("%s is still there", one.Name)
				}
			}
			return nil
		})
	})
	return c
}

// versioned is a version of a definition.
func versioned(name string, storage bool, description string) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: description, XPreserveUnknownFields: ptr(true),
		}},
	}
}

func ptr[T any](value T) *T { return &value }

// define makes a definition with a version v1, unless it is changed.
func (c *cluster) define(resource string, changes ...func(*apiextensionsv1.CustomResourceDefinition)) change.Kind {
	c.t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource + "." + c.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: c.group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: resource, Kind: "K" + resource},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{versioned("v1", true, "")},
		},
	}
	for _, do := range changes {
		do(d)
	}
	if err := c.client.Create(c.t.Context(), d); err != nil {
		c.t.Fatal(err)
	}
	return change.Kind{
		Group: c.group, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.Kind, Resource: resource,
		Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped, Definition: d.UID,
	}
}

// edit changes a definition.
func (c *cluster) edit(kind change.Kind, do func(*apiextensionsv1.CustomResourceDefinition)) {
	c.t.Helper()
	environment.Eventually(c.t, func() error {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(c.t.Context(), kube.ObjectKey{Name: kind.GroupResource().String()}, d); err != nil {
			return err
		}
		do(d)
		return c.client.Update(c.t.Context(), d)
	})
}

// undefine deletes a definition and waits until it is gone.
func (c *cluster) undefine(kind change.Kind) {
	c.t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: kind.GroupResource().String()}}
	if err := c.client.Delete(c.t.Context(), d); err != nil {
		c.t.Fatal(err)
	}
	environment.Eventually(c.t, func() error {
		err := c.client.Get(c.t.Context(), kube.ObjectKeyFromObject(d), d)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the definition is still there"))
	})
}

// objectsOf is where the objects of a kind are.
func (c *cluster) objectsOf(kind change.Kind) dynamic.ResourceInterface {
	if kind.Namespaced {
		return c.objects.Resource(kind.GroupVersionResource()).Namespace("default")
	}
	return c.objects.Resource(kind.GroupVersionResource())
}

// create makes an object as soon as the kind is served.
func (c *cluster) create(kind change.Kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": int64(0)}}}
	o.SetAPIVersion(kind.GroupVersionResource().GroupVersion().String())
	o.SetKind(kind.Kind)
	o.SetName(name)
	var made *unstructured.Unstructured
	environment.Eventually(c.t, func() (err error) {
		made, err = c.objectsOf(kind).Create(c.t.Context(), o, metav1.CreateOptions{})
		return err
	})
	return made
}

// set changes a field of an object.
func (c *cluster) set(kind change.Kind, name string, to int) {
	c.t.Helper()
	environment.Eventually(c.t, func() error {
		_, err := c.objectsOf(kind).Patch(c.t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"a":%d}}`, to), metav1.PatchOptions{})
		return err
	})
}

func (c *cluster) delete(kind change.Kind, name string) {
	c.t.Helper()
	environment.Eventually(c.t, func() error { return c.objectsOf(kind).Delete(c.t.Context(), name, metav1.DeleteOptions{}) })
}

// same waits until the sink knows what the API server has.
func (c *cluster) same(sink *memorySink, kind change.Kind) {
	c.t.Helper()
	environment.Eventually(c.t, func() error {
		list, err := c.objectsOf(kind).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		got := sink.kindOf(kind)
		if len(got.objects) != len(list.Items) {
			return fmt.Errorf("%d objects are known, there are %d", len(got.objects), len(list.Items))
		}
		for _, o := range list.Items {
			if got := got.objects[string(o.GetUID())]; got.ResourceVersion != o.GetResourceVersion() {
				return fmt.Errorf("%s is known at %q, it is at %q", o.GetName(), got.ResourceVersion, o.GetResourceVersion())
			}
		}
		return nil
	})
}

// usual lets a supervisor take its usual times, and follow the group of a test alone.
func (c *cluster) usual(options *Options) {
	options.timing, options.StartsPerSecond, options.PageSize = timing{}, 0, 0
	options.Include = []string{c.group}
}

// timedSink notes when something was first reported.
type timedSink struct {
	*memorySink

	times sync.Map // what: time.Time
}

func (s *timedSink) Open(ctx context.Context, kind change.Kind, schema Schema) (Journal, error) {
	journal, err := s.memorySink.Open(ctx, kind, schema)
	return &timedJournal{journal, kind, s}, err
}

func (s *timedSink) Gone(ctx context.Context, kind change.Kind, successor time.Time) error {
	s.times.LoadOrStore("gone "+kind.Resource, time.Now())
	return s.memorySink.Gone(ctx, kind, successor)
}

type timedJournal struct {
	Journal

	kind change.Kind
	sink *timedSink
}

func (j *timedJournal) EndList(ctx context.Context, version string, complete bool) error {
	j.sink.times.LoadOrStore("listed "+j.kind.Resource, time.Now())
	return j.Journal.EndList(ctx, version, complete)
}

func (j *timedJournal) Event(ctx context.Context, event Event) error {
	j.sink.times.LoadOrStore("event "+event.Object.Name+" of "+j.kind.Resource, time.Now())
	return j.Journal.Event(ctx, event)
}

// at waits until something was reported and returns when it was.
func (s *timedSink) at(t *testing.T, what string) time.Time {
	t.Helper()
	var at time.Time
	environment.Eventually(t, func() error {
		found, ok := s.times.Load(what)
		if !ok {
			return errors.New("not yet: " + what)
		}
		at = found.(time.Time)
		return nil
	})
	return at
}

// spread writes times for people, and returns the 99th percentile.
func spread(times []time.Duration) (string, time.Duration) {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[min(len(times)-1, int(share*float64(len(times))))].Round(time.Millisecond)
	}
	return "p50 " + at(0.5).String() + ", p99 " + at(0.99).String() + ", most " + at(1).String() + " of " + strconv.Itoa(len(times)), at(0.99)
}
