//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// monitorMay asks the API server what the monitor's account may do in any namespace.
func (f *fixture) monitorMay(verb, group, resource string) bool {
	f.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:slipway-system:slipway-monitor",
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:slipway-system", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
	}}
	if err := cluster.Create(f.Context(), review); err != nil {
		f.Fatal(err)
	}
	return review.Status.Allowed
}

func TestTheMonitorMayReadEveryCustomResourceAndNoSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Eventually(func() error {
		for _, resource := range []string{"webapps", "apigateways", "backups", "backupruns", "restores"} {
			for _, verb := range []string{"get", "list", "watch"} {
				if !f.monitorMay(verb, "slipway.dev", resource) {
					return fmt.Errorf("the monitor may not %s %s", verb, resource)
				}
			}
		}
		return nil
	})
	for _, right := range [][3]string{
		{"get", "", "secrets"},
		{"list", "", "secrets"},
		{"watch", "", "secrets"},
		{"list", "", "configmaps"},
		{"list", "", "pods"},
		{"create", "", "pods"},
		{"list", "apps", "deployments"},
		{"update", "slipway.dev", "webapps"},
		{"delete", "slipway.dev", "webapps"},
		{"patch", "rbac.authorization.k8s.io", "clusterroles"},
		{"impersonate", "", "users"},
	} {
		if f.monitorMay(right[0], right[1], right[2]) {
			t.Errorf("the monitor may %s %q of group %q", right[0], right[2], right[1])
		}
	}

	// A kind that is defined now may be read now, and not when it is gone.
	group := f.Namespace + ".example.com"
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}
	if err := cluster.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Delete(context.Background(), definition); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	f.Eventually(func() error {
		if !f.monitorMay("watch", group, "widgets") {
			return fmt.Errorf("the monitor may not watch widgets of %s", group)
		}
		return nil
	})
	if err := cluster.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	f.Eventually(func() error {
		if f.monitorMay("watch", group, "widgets") {
			return fmt.Errorf("the monitor may still watch widgets of %s", group)
		}
		return nil
	})
}
