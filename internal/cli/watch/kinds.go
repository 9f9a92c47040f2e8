package watch

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitions follows the definitions of the cluster: it starts to watch a kind when it is served, and stops when it is not.
// The reflector calls it from one goroutine.
type definitions struct {
	*watcher
	ctx     context.Context
	running map[string]followed
	// begun reports whether the first list has come.
	begun bool
}

// followed is a kind that is being watched.
type followed struct {
	kind change.Kind
	stop context.CancelFunc
}

// followDefinitions watches every custom resource.
func (w *watcher) followDefinitions(ctx context.Context) {
	d := &definitions{watcher: w, ctx: ctx, running: map[string]followed{}}
	w.reflect(ctx, definitionsResource, "", "", d, func(err error) {
		if apierrors.IsForbidden(err) {
			w.send(ctx, sighting{
				fatal: fmt.Errorf("you may not list the kinds of the cluster (customresourcedefinitions): name the kind to watch"),
			})
			return
		}
		w.send(ctx, sighting{resource: definitionsResource.GroupResource().String(), problem: refusal(err)})
	})
}

// Replace takes a list of all definitions.
func (d *definitions) Replace(list []any, _ string) error {
	var names []string
	there := map[string]bool{}
	for _, item := range list {
		if definition := definitionOf(item); definition != nil {
			there[definition.Name] = true
			if kind, ok := served(definition); ok {
				names = append(names, kind.GroupResource().String())
			}
		}
	}
	if !d.begun {
		d.begun = true
		d.send(d.ctx, sighting{begun: names})
	}
	for name := range d.running {
		if !there[name] {
			d.end(name)
		}
	}
	for _, item := range list {
		d.update(item)
	}
	return nil
}

// Add takes a new definition.
func (d *definitions) Add(object any) error { d.update(object); return nil }

// Update takes a changed definition.
func (d *definitions) Update(object any) error { d.update(object); return nil }

// Delete takes a definition that is gone. Its objects went before it.
func (d *definitions) Delete(object any) error {
	if definition := definitionOf(object); definition != nil {
		d.end(definition.Name)
	}
	return nil
}

// Resync does nothing.
func (d *definitions) Resync() error { return nil }

func (d *definitions) end(name string) {
	if running, ok := d.running[name]; ok {
		running.stop()
		delete(d.running, name)
		d.send(d.ctx, sighting{resource: running.kind.GroupResource().String(), problem: "the cluster does not have this kind any more"})
	}
}

func (d *definitions) update(object any) {
	definition := definitionOf(object)
	if definition == nil {
		return
	}
	kind, ok := served(definition)
	running, isRunning := d.running[definition.Name]
	if isRunning && ok && running.kind == kind {
		return
	}
	if isRunning {
		// Another version is served, or another definition has the name.
		running.stop()
		delete(d.running, definition.Name)
	}
	if !ok {
		return
	}
	ctx, stop := context.WithCancel(d.ctx)
	d.running[definition.Name] = followed{kind, stop}
	d.follow(ctx, kind, schemaOf(definition, kind.Version))
}

// served returns the kind of a definition, at the stored version if that is served. ok is false if nothing is served.
func served(definition *apiextensionsv1.CustomResourceDefinition) (kind change.Kind, ok bool) {
	established := false
	for _, c := range definition.Status.Conditions {
		established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	version := ""
	for _, v := range definition.Spec.Versions {
		if v.Served && (version == "" || v.Storage) {
			version = v.Name
		}
	}
	return change.Kind{
		Group: definition.Spec.Group, Version: version, Kind: definition.Spec.Names.Kind, Resource: definition.Spec.Names.Plural,
		Namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped, Definition: definition.UID,
	}, established && version != ""
}

func definitionOf(object any) *apiextensionsv1.CustomResourceDefinition {
	from, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, definition) != nil {
		return nil
	}
	return definition
}

// readDefinition reads the definition of a kind. It is nil for a kind that Kubernetes brings.
func (w *watcher) readDefinition(ctx context.Context, resource schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	object, err := w.Objects.Resource(definitionsResource).Get(ctx, resource.String(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return definitionOf(object), nil
}

func schemaOf(definition *apiextensionsv1.CustomResourceDefinition, version string) *change.Schema {
	if definition == nil {
		return nil
	}
	for _, v := range definition.Spec.Versions {
		if v.Name == version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			return change.NewSchema(v.Schema.OpenAPIV3Schema)
		}
	}
	return nil
}

var (
	_ cache.ReflectorStore = &definitions{}
	_ cache.ReflectorStore = &kindStore{}
)
