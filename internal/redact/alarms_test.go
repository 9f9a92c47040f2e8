package redact_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/redact"
)

// manifest is one document of a file in YAML.
type manifest struct{ file, text string }

// manifests are the objects of Kubernetes in the files under some directories, each once, without Secrets.
func manifests(t testing.TB, directories ...string) []manifest {
	t.Helper()
	var found []manifest
	seen := map[string]bool{}
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for text := range strings.SplitSeq(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n---") {
				var head struct{ APIVersion, Kind string }
				if seen[text] || yaml.Unmarshal([]byte(text), &head) != nil || head.APIVersion == "" || head.Kind == "" || head.Kind == "Secret" {
					continue
				}
				seen[text] = true
				found = append(found, manifest{path, text})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// alarms are the lines of a manifest that are not the same without secrets, and the values that the monitor does not store.
func alarms(t *testing.T, m manifest, policy *change.Policy) []string {
	t.Helper()
	var changed []string
	cleaned := strings.Split(redact.Clean(m.text), "\n")
	for i, line := range strings.Split(m.text, "\n") {
		if i >= len(cleaned) || cleaned[i] != line {
			changed = append(changed, line)
			break // what follows may have moved
		}
	}
	raw, err := yaml.YAMLToJSON([]byte(m.text))
	if err != nil {
		return changed
	}
	object := bytes.Replace(raw, []byte(`"metadata":{`), []byte(`"metadata":{"uid":"u",`), 1)
	state, err := change.Reduce(object, change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets"}, nil, policy)
	if err != nil {
		return changed
	}
	if at := bytes.Index(state.Body, []byte(redact.HashMarker)); at >= 0 {
		changed = append(changed, "stored: "+string(state.Body[max(0, at-60):min(len(state.Body), at+20)]))
	}
	return changed
}

// Of manifests that have no secret nearly all stay as they are: those of this project, or those in the directories that REDACT_MANIFESTS
// has, as in PATH. What is hidden is listed with -v, to see which are secrets after all.
func TestManifestsWithoutSecretsStay(t *testing.T) {
	directories := []string{"../../config", "../../docs", "../../test", "../../api"}
	if others := filepath.SplitList(os.Getenv("REDACT_MANIFESTS")); len(others) > 0 {
		directories = others
	}
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	all, hidden := manifests(t, directories...), 0
	for _, m := range all {
		found := alarms(t, m, policy)
		if len(found) == 0 {
			continue
		}
		hidden++
		t.Logf("%s: %.160q", m.file, found)
	}
	t.Logf("%d of %d manifests are changed", hidden, len(all))
	if 100*hidden > len(all) || len(all) < 20 {
		t.Errorf("%d of %d manifests are changed", hidden, len(all))
	}
}

func BenchmarkClean(b *testing.B) {
	var all strings.Builder
	for _, m := range manifests(b, "../../config", "../../docs", "../../test", "../../api") {
		all.WriteString(m.text)
	}
	if all.Len() == 0 {
		b.Fatal("no manifests")
	}
	text := strings.Repeat(all.String(), 1<<20/all.Len()+1)[:1<<20]
	var values []redact.Value
	for i := range 20 {
		values = append(values, redact.Value{Name: fmt.Sprint("PASSWORD_", i), Text: fmt.Sprintf("Zo9 & <x>-%d", i)})
	}
	for name, redactor := range map[string]*redact.Redactor{"nothing known": redact.New(), "20 values known": redact.New(values...)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				redactor.Clean(text)
			}
		})
	}
}
