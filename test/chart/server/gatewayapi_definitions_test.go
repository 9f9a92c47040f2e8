//go:build chart

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// shipped are the definitions of a channel as their Go module has them, by name.
func (w *world) shipped(channel string) map[string]*apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(moduleFolder(w.T), channel, "gateway.networking.*.yaml"))
	if err != nil || len(files) == 0 {
		w.Fatalf("no definitions of the channel %s (%v)", channel, err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			w.Fatal(err)
		}
		if crd.Kind == "CustomResourceDefinition" {
			all[crd.Name] = crd
		}
	}
	return all
}

func moduleFolder(t *testing.T) string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(folder)), "config", "crd")
}

// gatewayCRDs are the definitions of the Gateway API in the cluster, to the last byte. It waits until they are in force, because until
// then their status changes.
func (w *world) gatewayCRDs() map[string]string {
	w.Helper()
	all := map[string]string{}
	environment.Eventually(w.T, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := w.List(w.Context(), list); err != nil {
			return err
		}
		for i := range list.Items {
			crd := &list.Items[i]
			if !strings.Contains(crd.GetName(), ".gateway.networking.") {
				continue
			}
			text, err := json.Marshal(crd)
			if err != nil {
				return err
			}
			for _, last := range lastConditions(crd.GetName()) {
				if !strings.Contains(string(text), `"status":"True","type":"`+last+`"`) {
					return fmt.Errorf("%s is not %s", crd.GetName(), last)
				}
			}
			all[crd.GetName()] = string(text)
		}
		return nil
	})
	return all
}

// lastConditions are those that the API server writes last, in either order. One of them is about the names that are Kubernetes' own.
func lastConditions(name string) []string {
	if strings.HasSuffix(name, suffix) {
		return []string{"Established", "KubernetesAPIApprovalPolicyConformant"}
	}
	return []string{"Established"}
}

// unchanged checks that nothing has been written to the definitions, other than to the named ones.
func (w *world) unchanged(after string, before map[string]string, but ...string) {
	w.Helper()
	now := w.gatewayCRDs()
	for _, name := range but {
		delete(before, name+suffix)
		delete(now, name+suffix)
	}
	if diff := cmp.Diff(before, now); diff != "" {
		w.Errorf("after %s: -before +now:\n%s", after, diff)
	}
}

// getCRD reads a definition of the Gateway API.
func (w *world) getCRD(name string) *apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := w.Get(w.Context(), types.NamespacedName{Name: name}, crd); err != nil {
		w.Fatal(err)
	}
	return typed(w.T, crd)
}

func typed(t *testing.T, object *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := json.Marshal(object)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := errors.Join(err, json.Unmarshal(text, crd)); err != nil {
		t.Fatal(err)
	}
	return crd
}

// reference is a definition of the Gateway API, to patch.
func (w *world) reference(name string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(name + suffix)
	return crd
}

// isShipped checks that a definition in the cluster says what the module says, and that nothing of Helm's deletes it.
func (w *world) isShipped(want *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	got := w.getCRD(want.Name)
	got.Spec.Conversion = nil // a default
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		w.Errorf("%s: -shipped +installed:\n%s", want.Name, diff)
	}
	for name, value := range want.Annotations {
		if got.Annotations[name] != value {
			w.Errorf("%s: %s is %q, want %q", want.Name, name, got.Annotations[name], value)
		}
	}
	for name, value := range want.Labels {
		if got.Labels[name] != value {
			w.Errorf("%s: %s is %q, want %q", want.Name, name, got.Labels[name], value)
		}
	}
	if got.Annotations["helm.sh/resource-policy"] != "keep" {
		w.Errorf("%s has the annotations %v", want.Name, got.Annotations)
	}
}
