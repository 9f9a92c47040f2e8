//go:build faulttest

package fault_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observed are the kinds whose objects are the state of a namespace: what a user
// declares, and what the operator makes of it.
var observed = []schema.GroupVersionKind{
	{Group: "slipway.dev", Version: "v1alpha1", Kind: "WebApp"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
}

// readState returns every observed object of a namespace by kind and name, without what
// differs from run to run: identities, versions, times and addresses.
func readState(ctx context.Context, reader client.Reader, namespace string) (map[string]any, error) {
	state := map[string]any{}
	for _, kind := range observed {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, object := range list.Items {
			mask(object.Object, namespace)
			state[kind.Kind+"/"+object.GetName()] = object.Object
		}
	}
	return state, nil
}

// volatile are the fields that differ from run to run.
var volatile = []string{
	"uid", "resourceVersion", "generation", "observedGeneration", "creationTimestamp", "time",
	"lastTransitionTime", "lastUpdateTime", "startTime", "clusterIP", "clusterIPs", "deployment.kubernetes.io/revision",
	"slipway.dev/config-versions",
}

func mask(node any, namespace string) {
	switch node := node.(type) {
	case map[string]any:
		for _, field := range volatile {
			delete(node, field)
		}
		if fields, ok := node["managedFields"].([]any); ok {
			node["managedFields"] = managers(fields)
		}
		for key, value := range node {
			if text, ok := value.(string); ok {
				node[key] = strings.ReplaceAll(text, namespace, "NAMESPACE")
				continue
			}
			mask(value, namespace)
		}
	case []any:
		for _, item := range node {
			mask(item, namespace)
		}
	}
}

// managers keeps who owns something, not the names of the owned fields: they hold UIDs.
func managers(fields []any) []any {
	var names []any
	for _, field := range fields {
		if entry, ok := field.(map[string]any); ok && strings.HasPrefix(fmt.Sprint(entry["manager"]), "slipway-") {
			names = append(names, fmt.Sprint(entry["manager"], " ", entry["operation"], " ", entry["subresource"]))
		}
	}
	return names
}
