package scenario

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// A run has a namespace, and a second one if its steps name it. Many runs share a cluster, so an object that is in no
// namespace has the name of the namespace of its run. That is how everybody knows whose it is.
const (
	// namespaceHere stands in a text for the namespace of the run.
	namespaceHere = "NAMESPACE"
	// elsewhere makes the name of the second namespace of that of the run.
	elsewhere = "-elsewhere"
)

// homeOf is the namespace of the run that an object belongs to.
func homeOf(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return strings.TrimSuffix(object.GetNamespace(), elsewhere)
}

// called is what an object is called in every run: kind and name, for example Deployment/shop, or
// Secret/NAMESPACE-elsewhere/web in the second namespace.
func called(kind string, object metav1.Object) string {
	home := homeOf(object)
	place := ""
	if namespace := object.GetNamespace(); namespace != "" && namespace != home {
		place = namespaceHere + elsewhere + "/"
	}
	return kind + "/" + place + strings.ReplaceAll(object.GetName(), home, namespaceHere)
}

// Namespaces are those that a run may have, by the first.
func Namespaces(home string) []string { return []string{home, home + elsewhere} }

// namespaces are those of the run.
func (r *run) namespaces() []string {
	if r.scenario.goesElsewhere() {
		return Namespaces(r.namespace)
	}
	return []string{r.namespace}
}

// makeElsewhere makes the second namespace of the run, if it has one.
func (r *run) makeElsewhere() {
	r.Helper()
	for _, name := range r.namespaces()[1:] {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := r.Env.Client.Create(r.Context(), namespace); err != nil {
			r.Fatalf("make a namespace: %v", err)
		}
	}
}

// goesElsewhere reports whether a step names the second namespace.
func (s Scenario) goesElsewhere() bool {
	text, err := json.Marshal(s.Steps)
	return err == nil && strings.Contains(string(text), namespaceHere+elsewhere)
}

// placed is an object as it is in the run: in its namespace, unless it names another one or is in none.
func (r *run) placed(object map[string]any) (*unstructured.Unstructured, error) {
	made := (&unstructured.Unstructured{Object: object}).DeepCopy()
	made.Object, _ = filled(made.Object, r.namespace).(map[string]any)
	namespaced, err := r.Env.Client.IsObjectNamespaced(made)
	if err != nil {
		return nil, err
	}
	if namespaced && made.GetNamespace() == "" {
		made.SetNamespace(r.namespace)
	}
	return made, nil
}

// filled is a value with the namespace of the run in its texts. What holds others is changed.
func filled(node any, namespace string) any {
	switch node := node.(type) {
	case string:
		return strings.ReplaceAll(node, namespaceHere, namespace)
	case []any:
		for i, item := range node {
			node[i] = filled(item, namespace)
		}
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(node)) {
			value := filled(node[key], namespace)
			delete(node, key)
			node[strings.ReplaceAll(key, namespaceHere, namespace)] = value
		}
	}
	return node
}

// read reads an object of the run by what it is called.
func (r *run) read(apiVersion, name string) (*unstructured.Unstructured, error) {
	kind, name, _ := strings.Cut(name, "/")
	metadata := map[string]any{"name": name}
	if place, in, apart := strings.Cut(name, "/"); apart {
		metadata["namespace"], metadata["name"] = place, in
	}
	object, err := r.placed(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	if err != nil {
		return nil, err
	}
	return object, r.Env.Client.Get(r.Context(), client.ObjectKeyFromObject(object), object)
}

// ownObjects has the caches of an operator show, of the kinds that are in no namespace, the objects of its run alone: in a
// cluster one operator sees them all, and here there are many.
func (r *run) ownObjects(next cache.NewCacheFunc) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		options.ByObject = maps.Clone(options.ByObject)
		for object, by := range options.ByObject {
			if by.Field != nil || by.Label != nil {
				continue
			}
			namespaced, err := r.Env.Client.IsObjectNamespaced(object)
			if err != nil || namespaced {
				continue // a kind that the cluster does not have is not shown at all
			}
			if by, err = r.own(object, by); err != nil {
				return nil, err
			}
			options.ByObject[object] = by
		}
		return next(config, options)
	}
}

// own is what is kept of a kind that is in no namespace, of this run alone.
func (r *run) own(object client.Object, by cache.ByObject) (cache.ByObject, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return by, err
	}
	if gvk != corev1.SchemeGroupVersion.WithKind("Namespace") {
		by.Field = fields.OneTermEqualSelector("metadata.name", r.namespace)
		return by, nil
	}
	named, err := labels.NewRequirement(corev1.LabelMetadataName, selection.In, r.namespaces())
	if err != nil {
		return by, err
	}
	by.Label = labels.NewSelector().Add(*named)
	return by, nil
}
