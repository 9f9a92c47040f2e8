//go:build monitororacle

package monitor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// revision is one write that the API server has confirmed.
type revision struct {
	version int
	at      time.Time
}

// truth is what truly happened to one object.
type truth struct {
	resource   string
	definition types.UID
	name       string
	created    time.Time // as the API server says
	revisions  []revision
	gone       time.Time // zero while it is there
}

// generator does things, and remembers them.
type generator struct {
	t       *testing.T
	client  kube.Client
	objects dynamic.Interface
	group   string
	random  *rand.Rand

	mutex   sync.Mutex
	truths  map[types.UID]*truth
	named   map[string]types.UID    // of objects that are there, by resource/name
	defined map[string]types.UID    // definitions that are there, by resource
	made    map[types.UID]time.Time // when definitions were made
	writes  int
}

func newGenerator(t *testing.T, seed uint64) *generator {
	objects, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &generator{
		t: t, client: env.Client, objects: objects, group: fmt.Sprintf("g%d.example.com", time.Now().UnixNano()),
		random: rand.New(rand.NewPCG(seed, 1)), truths: map[types.UID]*truth{}, named: map[string]types.UID{}, defined: map[string]types.UID{}, made: map[types.UID]time.Time{},
	}
}

func version(name string, storage bool, description string) apiextensionsv1.CustomResourceDefinitionVersion {
	preserve := true
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: description, XPreserveUnknownFields: &preserve,
		}},
	}
}

// define makes a definition, and waits until its objects can be listed.
func (g *generator) define(resource string) {
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource + "." + g.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: g.group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: resource, Kind: "K" + resource},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, ""), version("v2", false, "")},
		},
	}
	environment.Eventually(g.t, func() error { return g.client.Create(g.t.Context(), d) })
	environment.Eventually(g.t, func() error {
		_, err := g.resource(resource).List(g.t.Context(), metav1.ListOptions{})
		return err
	})
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.defined[resource], g.made[d.UID] = d.UID, d.CreationTimestamp.Time
}

func (g *generator) resource(resource string) dynamic.ResourceInterface {
	return g.objects.Resource(schema.GroupVersionResource{Group: g.group, Version: "v1", Resource: resource})
}

// edit changes a definition.
func (g *generator) edit(resource string, do func(*apiextensionsv1.CustomResourceDefinition)) {
	environment.Eventually(g.t, func() error {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := g.client.Get(g.t.Context(), kube.ObjectKey{Name: resource + "." + g.group}, d); err != nil {
			return err
		}
		do(d)
		return g.client.Update(g.t.Context(), d)
	})
}

func (g *generator) describe(resource string) {
	g.edit(resource, func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Schema.OpenAPIV3Schema.Description = strconv.FormatInt(time.Now().UnixNano(), 10)
		}
	})
}

// turn stores objects at the other version.
func (g *generator) turn(resource string) {
	g.edit(resource, func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Storage = !d.Spec.Versions[i].Storage
		}
	})
}

// undefine deletes a definition with all objects.
func (g *generator) undefine(resource string) {
	name := resource + "." + g.group
	if err := g.client.Delete(g.t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		g.t.Fatal(err)
	}
	environment.Eventually(g.t, func() error {
		err := g.client.Get(g.t.Context(), kube.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is still there (%w)", name, err)
	})
	g.mutex.Lock()
	defer g.mutex.Unlock()
	delete(g.defined, resource)
	for _, one := range g.truths {
		if one.resource == resource && one.gone.IsZero() {
			one.gone = time.Now()
			delete(g.named, resource+"/"+one.name)
		}
	}
}

// write does one thing to one object. What the API server did not confirm is looked up: it may have happened.
func (g *generator) write(ctx context.Context, resource string, random *rand.Rand) {
	name := objectName(random.IntN(names))
	key := resource + "/" + name
	g.mutex.Lock()
	uid, exists := g.named[key]
	definition := g.defined[resource]
	g.mutex.Unlock()
	client := g.resource(resource)
	switch {
	case definition == "": // there is no such kind
	case !exists:
		made, err := client.Create(ctx, g.object(resource, name), metav1.CreateOptions{})
		if err != nil {
			g.lookUp(ctx, resource, name, definition)
			return
		}
		g.note(made, resource, definition)
	case random.IntN(6) == 0:
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			g.lookUp(ctx, resource, name, definition)
			return
		}
		g.noteGone(resource, uid)
	default:
		patch := fmt.Sprintf(`{"spec":{"value":"%d"}}`, time.Now().UnixNano())
		made, err := client.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			g.lookUp(ctx, resource, name, definition)
			return
		}
		g.note(made, resource, definition)
	}
}

// names is how many objects of a resource there may be.
const names = 12

func objectName(number int) string { return fmt.Sprintf("o%d", number) }

// lookUpAll notes how all objects are in the end.
func (g *generator) lookUpAll(ctx context.Context) {
	for _, resource := range resources {
		for number := range names {
			g.lookUp(ctx, resource, objectName(number), g.defined[resource])
		}
	}
}

// lookUp notes how an object is. While its definition comes or goes that cannot be said, and undefine notes it.
func (g *generator) lookUp(ctx context.Context, resource, name string, definition types.UID) {
	made, err := g.resource(resource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		g.note(made, resource, definition)
	case apierrors.IsNotFound(err):
		g.mutex.Lock()
		uid, known := g.named[resource+"/"+name]
		g.mutex.Unlock()
		if known {
			g.noteGone(resource, uid)
		}
	}
}

func (g *generator) noteGone(resource string, uid types.UID) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	one := g.truths[uid]
	one.gone = time.Now()
	delete(g.named, resource+"/"+one.name)
}

func (g *generator) object(resource, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": g.group + "/v1", "kind": "K" + resource, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"value": strconv.FormatInt(time.Now().UnixNano(), 10)},
	}}
}

func (g *generator) note(made *unstructured.Unstructured, resource string, definition types.UID) {
	number, err := strconv.Atoi(made.GetResourceVersion())
	if err != nil {
		g.t.Error(err)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.defined[resource] != definition {
		return // it went with its definition, or is one of the next: nobody can say any more
	}
	one := g.truths[made.GetUID()]
	if one != nil && one.revisions[len(one.revisions)-1].version >= number {
		return // it was looked up, and is known
	}
	g.writes++
	if one == nil {
		one = &truth{resource: resource, definition: definition, name: made.GetName(), created: made.GetCreationTimestamp().Time}
		g.truths[made.GetUID()] = one
		g.named[resource+"/"+made.GetName()] = made.GetUID()
	}
	one.revisions = append(one.revisions, revision{number, time.Now()})
}
