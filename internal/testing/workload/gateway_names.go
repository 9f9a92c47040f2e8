package workload

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
)

// secretsOf are the names of the Secrets that the routes, policies and streams of an APIGateway name, and configMapsOf those of its
// ConfigMaps.
func secretsOf(gateway *unstructured.Unstructured) []string {
	routes, _, _ := unstructured.NestedFieldNoCopy(gateway.Object, "spec", "routes")
	list, _ := routes.([]any)
	var names []string
	for _, item := range list {
		route, _ := item.(map[string]any)
		for _, field := range []string{"apiKey.secretRef", "basic.secretRef", "jwt.jwksSecretRef", "oidc.clientSecretRef"} {
			path := append(append([]string{"auth"}, strings.Split(field, ".")...), "name")
			if name, found, _ := unstructured.NestedString(route, path...); found && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if typed := typedGateway(gateway); typed != nil {
		names = append(names, desired.Secrets(typed)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func configMapsOf(gateway *unstructured.Unstructured) []string {
	if typed := typedGateway(gateway); typed != nil {
		return desired.ConfigMaps(typed)
	}
	return nil
}

// typedGateway is nil for one that cannot be read.
func typedGateway(gateway *unstructured.Unstructured) *slipwayv1alpha1.APIGateway {
	typed := &slipwayv1alpha1.APIGateway{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(gateway.Object, typed) != nil {
		return nil
	}
	return typed
}
