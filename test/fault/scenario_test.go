//go:build faulttest

package fault_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// scenario is what happens to an operator: data, read from testdata/<kind>/*.yaml.
type scenario struct {
	// Kind is the folder.
	Kind string `json:"-"`
	// Name says what it is about.
	Name string `json:"name"`
	// Pods is how the pods of an image behave, ready unless said here.
	Pods map[string]workload.Behaviour `json:"pods"`
	// Steps follow each other, each when the cluster has come to rest after the one before.
	Steps []step `json:"steps"`
}

// step is one thing that a user does.
type step struct {
	// Apply is an object as the user wants it.
	Apply map[string]any `json:"apply"`
}

func (s step) object(namespace string) *unstructured.Unstructured {
	object := (&unstructured.Unstructured{Object: s.Apply}).DeepCopy()
	object.SetNamespace(namespace)
	return object
}

func readScenarios(t *testing.T) []scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in testdata (%v)", err)
	}
	var scenarios []scenario
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := scenario{Kind: filepath.Base(filepath.Dir(file))}
		if err := yaml.UnmarshalStrict(raw, &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		scenarios = append(scenarios, s)
	}
	return scenarios
}
