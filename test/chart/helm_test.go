//go:build helm

package chart

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// chartFolder is the chart of this checkout.
const chartFolder = "../../charts/slipway"

// operatorName is that of the operator's Deployment, ServiceAccount and roles.
const operatorName = "slipway-operator"

// helm runs Helm, and returns what it prints.
func helm(ctx context.Context, args ...string) (string, error) {
	if os.Getenv("HELM") == "" {
		return "", errors.New("HELM does not name Helm's program: run make test-helm")
	}
	command := exec.CommandContext(ctx, os.Getenv("HELM"), args...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// render returns what the chart makes for the release slipway in a namespace.
func render(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	output, err := helm(t.Context(), append([]string{"template", "slipway", chartFolder, "-n", namespace}, args...)...)
	if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// parse reads the objects of a manifest.
func parse(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("read a manifest: %v", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// ofKind returns the objects of a kind.
func ofKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
