package change_test

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

var widgets = change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: "d-1"}

func newPolicy(t testing.TB, options change.Options) *change.Policy {
	t.Helper()
	if options.Key == nil {
		options.Key = []byte("a key for tests only")
	}
	policy, err := change.NewPolicy(options)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// newSchema reads a schema as it stands in a definition.
func newSchema(t testing.TB, text string) *change.Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return change.NewSchema(props)
}

func reduce(t testing.TB, object string, s *change.Schema) change.State {
	t.Helper()
	return reduceWith(t, object, s, newPolicy(t, change.Options{}))
}

func reduceWith(t testing.TB, object string, s *change.Schema, policy *change.Policy) change.State {
	t.Helper()
	state, err := change.Reduce([]byte(object), widgets, s, policy)
	if err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return state
}

// widget is an object with what a test is about, such as "spec":{"size":1}.
func widget(parts ...string) string {
	return widgetAt("1", "", parts...)
}

// widgetAt is an object at a version, with more of its metadata.
func widgetAt(version, metadata string, parts ...string) string {
	if metadata != "" {
		metadata = "," + metadata
	}
	head := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one","namespace":"shop","uid":"u-1","resourceVersion":"` + version + `"` + metadata + `}`
	return strings.Join(append([]string{head}, parts...), ",") + "}"
}

// lines writes fields for comparing: what happened, where, and the values.
func lines(fields []change.Field) []string {
	var result []string
	for _, f := range fields {
		line := string(f.Op) + " " + f.Path
		if f.Old != nil {
			line += " from " + string(f.Old)
		}
		if f.New != nil {
			line += " to " + string(f.New)
		}
		result = append(result, line)
	}
	return result
}
