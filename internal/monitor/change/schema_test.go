package change_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Definitions are edited all the time, in what they say to people. No object changes by that.
func TestDescriptionOfASchemaChangesNothing(t *testing.T) {
	edited := strings.ReplaceAll(widgetSchema, `"type":"string"`, `"type":"string","description":"said in other words","title":"x","example":"y","maxLength":99`)
	object := widgetAt("7", `"finalizers":["b","a"]`, `"spec":{"tags":["y","x"],"login":"hunter2","ports":[{"port":80,"protocol":"TCP"}],"credentials":{"user":"a"}}`)
	before, after := reduce(t, object, newSchema(t, widgetSchema)), reduce(t, object, newSchema(t, edited))
	if before.Hash != after.Hash {
		t.Errorf("%s\n%s", before.Body, after.Body)
	}
	records, folded := change.Records(&before, &after, change.Context{Kind: widgets, Schema: newSchema(t, edited)})
	if len(records) != 0 || folded != 0 {
		t.Errorf("%d records, %d folded", len(records), folded)
	}
}

func TestSchemaSaysWhatIsSecret(t *testing.T) {
	s := newSchema(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"a":{"type":"string","format":"password"},
		"b":{"type":"array","items":{"type":"string","format":"password"}},
		"c":{"type":"object","additionalProperties":{"type":"string","format":"password"}},
		"d":{"allOf":[{"anyOf":[{"format":"password"}]}]},
		"e":{"type":"object","oneOf":[{"properties":{"f":{"format":"password"}}},{"properties":{"g":{"type":"string"}}}]},
		"h":{"type":"string"}}}}}`)
	state := reduce(t, widget(`"spec":{"a":"canary","b":["canary","x"],"c":{"k":"canary"},"d":"canary","e":{"f":"canary","g":"seen"},"h":"seen"}`), s)
	if strings.Contains(string(state.Body), "canary") || strings.Count(string(state.Body), "seen") != 2 || state.Redacted != 6 {
		t.Errorf("%d hidden: %s", state.Redacted, state.Body)
	}
}

// Whoever may write a definition cannot take the monitor down with it, and what is not read of it hides rather than shows.
func TestHostileSchemas(t *testing.T) {
	deep := &apiextensionsv1.JSONSchemaProps{Type: "string"}
	for range 100_000 {
		deep = &apiextensionsv1.JSONSchemaProps{Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: deep}}
	}
	wide := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 205_000 {
		wide.Properties[fmt.Sprintf("f%06d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	cycle := &apiextensionsv1.JSONSchemaProps{}
	cycle.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: cycle}
	cycle.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Schema: cycle}
	branches := &apiextensionsv1.JSONSchemaProps{}
	branches.AllOf = []apiextensionsv1.JSONSchemaProps{{}, {}}
	branches.AllOf[0].AllOf, branches.AllOf[1].AnyOf = branches.AllOf, branches.AllOf
	for name, props := range map[string]*apiextensionsv1.JSONSchemaProps{"deep": deep, "wide": wide, "a cycle": cycle, "branches": branches} {
		start := time.Now()
		s := change.NewSchema(props)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: %v", name, took)
		}
		t.Logf("%s: %v", name, time.Since(start))
		state := reduce(t, widget(`"f204999":{"spec":["canary"]}`), s)
		if name != "deep" && strings.Contains(string(state.Body), "canary") {
			t.Errorf("%s: %s", name, state.Body)
		}
	}
	if change.NewSchema(nil) != nil {
		t.Error("a schema of nothing")
	}
}

// A schema with nothing of interest in it takes no memory: there are thousands of definitions with thousands of fields.
func TestSchemaKeepsOnlyWhatIsOfInterest(t *testing.T) {
	var fields []string
	for i := range 500 {
		fields = append(fields, fmt.Sprintf(`"field%d":{"type":"object","description":"text","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}}`, i))
	}
	if s := newSchema(t, `{"type":"object","properties":{`+strings.Join(fields, ",")+`}}`); s != nil {
		t.Errorf("of a schema that says nothing remains %+v", s)
	}
}
