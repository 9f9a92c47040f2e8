//go:build monitortest

package crdcheck

import (
	"fmt"
	"testing"
	"time"
)

// Rules that cost much end, as they do in the API server, and the check with them.
func TestCheckOfExpensiveRules(t *testing.T) {
	schema := specSchema(t, "{type: object, properties: {l: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: 'self.l.all(a, self.l.all(b, self.l.all(c, a + b != c)))'}]}")
	list := make([]any, 2000)
	for i := range list {
		list[i] = fmt.Sprintf("item %d", i)
	}
	object := widget(t, "{}")
	object["spec"] = map[string]any{"l": list}
	start := time.Now()
	v := checker(t, definition(schema)).Check(t.Context(), object)
	if took := time.Since(start); v.State != Breaks || took > 3*time.Minute {
		t.Errorf("%+v after %v", v, took)
	}
}

func TestCheckOfManyErrors(t *testing.T) {
	before := map[string]any{}
	for i := range 3000 {
		before[fmt.Sprintf("k%04d", i)] = "wrong"
	}
	object := widget(t, "{}")
	object["spec"] = before
	v := checker(t, definition(specSchema(t, "{type: object, additionalProperties: {type: string, maxLength: 1}}"))).Check(t.Context(), object)
	if v.State != BreaksOnEdit || len(v.Problems) != maxProblems || v.MoreProblems == 0 {
		t.Errorf("%s, %d problems and %d more, %s", v.State, len(v.Problems), v.MoreProblems, v.Incomplete)
	}
}
