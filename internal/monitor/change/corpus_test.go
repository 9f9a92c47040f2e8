package change_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// manifests calls found with each object in the YAML files below a folder, as JSON.
func manifests(t *testing.T, folder string, found func(file string, object []byte)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" || strings.Contains(path, "/templates/") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) > change.MaxBytes {
			return err
		}
		for _, document := range bytes.Split(content, []byte("\n---")) {
			object, err := yaml.YAMLToJSON(document)
			var head struct {
				Kind, APIVersion string
				Metadata         struct{ Name string }
			}
			if err == nil && json.Unmarshal(object, &head) == nil && head.Kind != "" && head.APIVersion != "" && head.Metadata.Name != "" {
				found(path, object)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is shipped here has no secrets, so nothing of it is hidden. With CORPUS the folders in it are measured instead, separated by
// colons: each manifest with something hidden is told, and how many there are.
func TestManifestsWithoutSecretsStayReadable(t *testing.T) {
	folders, measured := []string{"../../../config", "../../../docs"}, os.Getenv("CORPUS")
	if measured != "" {
		folders = strings.Split(measured, ":")
	}
	policy := newPolicy(t, change.Options{})
	objects, alarms, values, hidden := 0, 0, 0, int64(0)
	for _, folder := range folders {
		manifests(t, folder, func(file string, object []byte) {
			state, err := change.Reduce(object, widgets, nil, policy)
			if err != nil || bytes.Contains(object, []byte(`"kind":"Secret"`)) {
				return
			}
			objects++
			values += bytes.Count(object, []byte(`:`))
			if state.Redacted == 0 {
				return
			}
			alarms++
			hidden += state.Redacted
			for _, path := range hiddenIn("", object, state.Body) {
				t.Logf("%s: %s", file, path)
			}
		})
	}
	t.Logf("%d of %d manifests and %d of %d values have something hidden", alarms, objects, hidden, values)
	switch {
	case measured == "" && alarms > 0:
		t.Errorf("something is hidden in %d of %d manifests", alarms, objects)
	case measured == "" && objects < 30:
		t.Errorf("only %d manifests were found", objects)
	}
}

// hiddenIn are the paths of what is hidden, with the beginnings of the values.
func hiddenIn(path string, before, after json.RawMessage) (paths []string) {
	var objectBefore, objectAfter map[string]json.RawMessage
	var listBefore, listAfter []json.RawMessage
	switch {
	case json.Unmarshal(after, &objectAfter) == nil && json.Unmarshal(before, &objectBefore) == nil:
		for name, value := range objectAfter {
			if was, found := objectBefore[name]; found {
				paths = append(paths, hiddenIn(path+"."+name, was, value)...)
			}
		}
	case json.Unmarshal(after, &listAfter) == nil && json.Unmarshal(before, &listBefore) == nil && len(listAfter) == len(listBefore):
		for i := range listAfter {
			paths = append(paths, hiddenIn(path+"[]", listBefore[i], listAfter[i])...)
		}
	case bytes.Contains(after, []byte(change.Redacted)):
		paths = append(paths, path+" = "+string(before[:min(len(before), 100)]))
	}
	return paths
}
