package clitest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// WidgetsBefore and WidgetsAfter are a definition and what it is changed to.
const (
	WidgetsBefore = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              mode: {type: string, enum: [fast, slow]}
              old: {type: string}
              size: {type: integer}
`
	WidgetsAfter = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(self.size) || self.size != 13 || self.missing == ''", message: size is not 13}
            properties:
              mode: {type: string, enum: [fast], description: how}
              missing: {type: string}
              size: {type: integer}
`
)

// Files writes files into a folder and returns their paths.
func Files(t *testing.T, texts ...string) []string {
	t.Helper()
	folder := t.TempDir()
	var paths []string
	for i, text := range texts {
		path := filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}
