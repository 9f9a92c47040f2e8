//go:build apitest

package cli

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/cli/crd"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// TestCRDCheck asks about a change, applies it, and looks whether what was said comes true.
func TestCRDCheck(t *testing.T) {
	f := newFixture(t)
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	paths := clitest.Files(t, clitest.WidgetsBefore, clitest.WidgetsAfter)
	f.expect(0, []string{"widgets.example.com: new\n"}, "crd", "check", paths[0])

	before := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(clitest.WidgetsBefore), before); err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = definitions.Delete(f.Context(), "widgets.example.com", metav1.DeleteOptions{}) })
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace(f.Namespace)
	environment.Eventually(t, func() error {
		_, err := widgets.List(t.Context(), metav1.ListOptions{})
		return err
	})
	for name, spec := range map[string]map[string]any{"good": {"mode": "fast"}, "slow": {"mode": "slow", "old": "x"}} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": spec,
		}}
		if _, err := widgets.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.expect(0, []string{"widgets.example.com: nothing changed; 2 objects checked: all fine\n"}, "crd", "check", paths[0])
	f.expect(crd.ExitBreaks, []string{
		"2 objects checked: 1 cannot be edited in places, 1 loses fields", f.Namespace + "/slow   v1        BreaksOnEdit   .spec.mode   an edit is refused",
		".spec.old    is removed",
	}, "crd", "check", paths[1])

	after := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(clitest.WidgetsAfter), after); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		current, err := definitions.Get(t.Context(), "widgets.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		after.SetResourceVersion(current.GetResourceVersion())
		_, err = definitions.Update(t.Context(), after, metav1.UpdateOptions{})
		return err
	})
	environment.Eventually(t, func() error {
		slow, err := widgets.Get(t.Context(), "slow", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, has, _ := unstructured.NestedString(slow.Object, "spec", "old"); has {
			return errors.New("the field is there")
		}
		return nil
	})
	f.expect(crd.ExitBreaks, []string{"nothing changed; 2 objects checked: 1 cannot be edited in places\n"}, "crd", "check", paths[1])
}
