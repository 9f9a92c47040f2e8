package supervisor

import (
	"fmt"
	"testing"

	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

func TestWhetherObjectsHaveAStatusIsReadFromTheVersionThatIsFollowed(t *testing.T) {
	const (
		conditions  = `{"type":"object","properties":{"status":{"type":"object","properties":{"conditions":{"type":"array"}}}}}`
		none        = `{"type":"object","properties":{"spec":{"type":"object","properties":{"status":{"type":"string"}}}}}`
		anything    = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
		subresource = `"subresources":{"status":{}},`
	)
	status := func(text string) string { return `{"type":"object","properties":{"status":` + text + `}}` }
	version := func(name string, storage bool, more, schema string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,%s"schema":{"openAPIV3Schema":%s}}`, name, storage, more, schema)
	}
	only := func(more, schema string) string { return version("v1", true, more, schema) }
	tests := map[string]struct {
		versions, spec string
		want           bool
	}{
		"a status with the subresource":           {versions: only(subresource, conditions)},
		"a status without it":                     {versions: only("", conditions)},
		"neither":                                 {versions: only("", none), want: true},
		"other subresources":                      {versions: only(`"subresources":{"scale":{"specReplicasPath":".spec.replicas"}},`, none), want: true},
		"the subresource, and nothing to keep":    {versions: only(subresource, none), want: true},
		"any field, with the subresource":         {versions: only(subresource, anything)},
		"any field, without it":                   {versions: only("", anything), want: true},
		"any field of a definition of old":        {versions: only(subresource, none), spec: `"preserveUnknownFields":true,`},
		"a status of any field":                   {versions: only(subresource, status(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`))},
		"a status of texts":                       {versions: only(subresource, status(`{"type":"object","additionalProperties":{"type":"string"}}`))},
		"a status that is an object":              {versions: only(subresource, status(`{"type":"object","x-kubernetes-embedded-resource":true}`))},
		"a status that is a word":                 {versions: only("", status(`{"type":"string"}`))},
		"a status that can hold nothing":          {versions: only(subresource, status(`{"type":"object"}`)), want: true},
		"a schema that cannot be read":            {versions: only(subresource, `{"properties":7}`)},
		"the stored version has one":              {versions: version("v1alpha1", true, subresource, conditions) + "," + version("v1", false, "", none)},
		"the stored version has none":             {versions: version("v1alpha1", true, "", none) + "," + version("v1", false, subresource, conditions), want: true},
		"none is stored, and the highest has one": {versions: version("v1alpha1", false, "", none) + "," + version("v1", false, subresource, conditions)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw := `{"metadata":{"name":"widgets.example.com","uid":"a"},"spec":{` + tc.spec + `"group":"example.com","scope":"Namespaced",` +
				`"names":{"plural":"widgets","kind":"Widget"},"versions":[` + tc.versions + `]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`
			read, err := readDefinition(Object{Name: "widgets.example.com", Raw: []byte(raw)}, &packer{})
			if err != nil {
				t.Fatal(err)
			}
			if got := judgeDefinition(read, selection.Kinds{}).noStatus; got != tc.want {
				t.Errorf("no status: %t, want %t", got, tc.want)
			}
		})
	}
}
