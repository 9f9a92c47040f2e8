//go:build chart

package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leftRights are all roles, bindings, webhooks and admission policies that have to do with Slipway, by whatever sign: a label, a name,
// or a subject. The policies that protect the definitions stay on purpose, and give nobody a right.
func (w *world) leftRights() []string {
	w.Helper()
	var left []string
	for _, kind := range []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			item.SetManagedFields(nil)
			raw, err := item.MarshalJSON()
			if err != nil {
				w.Fatal(err)
			}
			policy := strings.HasPrefix(kind.Kind, "ValidatingAdmissionPolicy") && item.GetName() != "slipway-monitor-kinds"
			if strings.Contains(string(raw), "slipway") && !policy {
				left = append(left, fmt.Sprintf("%s %s/%s", kind.Kind, item.GetNamespace(), item.GetName()))
			}
		}
	}
	return left
}

// applyConfig applies dist/install.yaml, which is config/default, as kubectl apply --server-side does. With hooks, the role for them is as
// the component config/backup-hooks makes it.
func (w *world) applyConfig(hooks bool) {
	w.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "dist", "install.yaml"))
	if err != nil {
		w.Fatal(err)
	}
	defer file.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.Fatal(err)
		}
		if hooks && object.GetName() == "slipway-backup-hooks" {
			switch object.GetKind() {
			case "ClusterRole":
				object.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods/exec"}, "verbs": []any{"get", "create"}}}
			case "ClusterRoleBinding":
				object.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "slipway-operator", "namespace": namespace}}
			}
		}
		if err := w.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			w.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// TestAnUninstallLeavesNoRight installs in the ways that there are, one over the other, and uninstalls with Helm. Then an install that is
// limited to namespaces comes, with an operator of the same name, and may do nothing that it does not ask for.
func TestAnUninstallLeavesNoRight(t *testing.T) {
	w := begin(t)
	for _, name := range []string{"team-a", "team-b"} {
		if err := w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"--set", "backup.hooks.enabled=true", "--set", "monitor.builtin={deployments.apps}"}
	limited := []string{"--set", "namespaces={team-a,team-b}"}
	takeOver := []string{"--create-namespace", "--take-ownership"}
	for _, tc := range []struct {
		name    string
		hooks   bool
		install []string
	}{
		{"the chart", false, takeOver},
		{"the chart with all there is", false, slices.Concat(takeOver, all)},
		{"the chart, limited", false, slices.Concat(takeOver, limited, []string{"--set", "backup.hooks.enabled=true"})},
		{"install.yaml with hooks, then the chart", true, takeOver},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{t, w.Client, w.config}
			if tc.hooks {
				w.applyConfig(true)
			}
			w.mustHelm(today("install", tc.install...)...)
			if tc.hooks && w.may(w.asOperator(), "create", "", "pods/exec", "", "kube-system") {
				t.Error("the chart was not asked for hooks, and the operator may still exec")
			}
			w.mustHelm("uninstall", "slipway")
			if left := w.leftRights(); len(left) > 0 {
				t.Errorf("after the uninstall there are\n%s", strings.Join(left, "\n"))
			}
		})
	}
	w.mustHelm(today("install", slices.Concat(takeOver, limited)...)...)
	if w.may(w.asOperator(), "create", "", "pods/exec", "", "kube-system") || w.may(w.asOperator(), "create", "", "pods/exec", "", "team-a") {
		t.Error("the operator of a limited install may exec")
	}
}
