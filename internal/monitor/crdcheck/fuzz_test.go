package crdcheck

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// hostile reads a schema out of whatever text. ok is false for what no client could send.
func hostile(text string) (*apiextensionsv1.JSONSchemaProps, bool) {
	if len(text) > 20_000 {
		return nil, false
	}
	schema := &apiextensionsv1.JSONSchemaProps{}
	return schema, yaml.Unmarshal([]byte(text), schema) == nil
}

// Findings about any two schemas are the same twice, short, and in order. A schema does not differ from itself. What comes one way
// goes the other way.
func FuzzCompare(f *testing.F) {
	for _, c := range changeCases {
		f.Add(c.before, c.after)
	}
	f.Add("{type: object, properties: {\"\\x1b[2J\": {type: string, enum: [\"\\x1b]0;x\"]}}}", "{items: [{}, {}], additionalItems: {}, dependencies: {a: [b]}, patternProperties: {a: {}}}")
	f.Add("{not: {not: {}}, allOf: [{}], default: {a: [1.5, null]}}", "{$ref: '#', definitions: {a: {}}, multipleOf: 0, enum: [null, {}]}")
	f.Fuzz(func(t *testing.T, first, second string) {
		a, ok1 := hostile(first)
		b, ok2 := hostile(second)
		if !ok1 || !ok2 {
			return
		}
		before, after := definition(a), definition(b, withStatus)
		found := Compare(before, after)
		if diff := cmp.Diff(found, Compare(before.DeepCopy(), after.DeepCopy())); diff != "" {
			t.Errorf("not the same twice:\n%s", diff)
		}
		for i, finding := range found {
			checkText(t, finding.Path, maxPath+3)
			checkText(t, finding.Message, maxMessage)
			if finding.Severity.rank() < 0 || finding.Code == "" || i > 0 && found[i-1].Severity.rank() > finding.Severity.rank() {
				t.Errorf("finding %d: %+v", i, finding)
			}
		}
		if same := Compare(before, before.DeepCopy()); len(same) > 0 && same[0].Code != TooLarge {
			t.Errorf("the same schema differs: %+v", same)
		}
		back := Compare(after, before)
		if added, gone := counted(found, SubresourceAdded), counted(back, SubresourceRemoved); added != gone {
			t.Errorf("%d subresources come and %d go back", added, gone)
		}
		if added, gone := counted(found, RequiredAdded), counted(back, RequiredAdded); added > 0 && gone > 0 && len(a.Required) == 0 && len(b.Properties) == 0 {
			t.Errorf("%d fields are required now, and %d the other way", added, gone)
		}
		Refused(t.Context(), before, after)
	})
}

func counted(found []Finding, code Code) int {
	count := 0
	for _, finding := range found {
		if finding.Code == code {
			count++
		}
	}
	return count
}

// checkText checks that a text is short and of whole characters.
func checkText(t *testing.T, text string, limit int) {
	t.Helper()
	if utf8.RuneCountInString(text) > limit {
		t.Errorf("%d characters: %s", utf8.RuneCountInString(text), text)
	}
}

// A verdict about any object and any schema comes, is the same twice, and says of its parts what its state says. The object stays
// as it is. Read twice it is as read once, and then nothing more is pruned or defaulted.
func FuzzCheck(f *testing.F) {
	for _, c := range changeCases {
		for _, object := range c.objects {
			f.Add(c.after, object)
		}
	}
	f.Add("{type: object, properties: {a: {type: string, pattern: '((((a{1,500}){1,2}'}}}", "{a: aaaaaaaaaaaaaaaaaaaaaaaa}")
	f.Add("{type: object, properties: {a: {type: object, nullable: true, default: {b: {c: 1}}, properties: {b: {type: object, default: {d: 1}}}}}}", "{a: null, \"\\u0000touched\": 1}")
	f.Fuzz(func(t *testing.T, schemaText, objectText string) {
		schema, ok := hostile(schemaText)
		if !ok || len(objectText) > 20_000 {
			return
		}
		object := map[string]any{}
		raw, err := yaml.YAMLToJSON([]byte(objectText))
		if err != nil || utiljson.Unmarshal(raw, &object) != nil || object == nil {
			return
		}
		if schema.Properties["spec"].Type == "" && schema.Properties["status"].Type == "" {
			schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *schema}}
			object = map[string]any{"spec": object}
		}
		object["kind"], object["metadata"] = "Widget", map[string]any{"name": "w"}
		c, err := NewChecker(definition(schema, withStatus), "v1")
		if err != nil {
			return
		}
		was, _ := json.Marshal(object)
		v := c.Check(t.Context(), object)
		if is, _ := json.Marshal(object); string(was) != string(is) {
			t.Errorf("the object was %s, is %s", was, is)
		}
		checkVerdict(t, v)
		if again := c.Check(t.Context(), object); cmp.Diff(v, again) != "" && !strings.Contains(schemaText, "rule") {
			t.Errorf("not the same twice:\n%s", cmp.Diff(v, again))
		}
		if v.State == Unknown {
			return
		}
		if again := c.Check(t.Context(), c.read(object)); again.State != v.State && !strings.Contains(schemaText, "rule") {
			t.Errorf("as it is read it is %s, and was %s", again.State, v.State)
		}
	})
}

func checkVerdict(t *testing.T, v Verdict) {
	t.Helper()
	worst := Fine
	for _, problem := range v.Problems {
		checkText(t, problem.Message, maxMessage)
		checkText(t, problem.Edit, maxPath+3)
		checkText(t, problem.Field, 2*maxPath)
		switch {
		case problem.When == EveryWrite || problem.When == EveryStatusWrite:
			worst = Breaks
		case problem.When == OnEdit && worst == Fine:
			worst = BreaksOnEdit
		}
		if (problem.Edit != "") != (problem.When == OnEdit) || problem.When.rank() < 0 || problem.Field == "" {
			t.Errorf("problem %+v", problem)
		}
	}
	if v.State != worst && v.State != Unknown || v.State == Unknown && v.Incomplete == "" {
		t.Errorf("the state is %s, of %s", v.State, fmt.Sprintf("%+v", v))
	}
}

// A path that the API server writes leads to the field, whatever its name is.
func FuzzLocate(f *testing.F) {
	f.Add("a", "b", 1)
	f.Add("a.b", "c[0]", 0)
	f.Add("", "]", 2)
	f.Fuzz(func(t *testing.T, first, second string, index int) {
		if strings.ContainsAny(first+second, ".[]") || index < 0 || index > 3 || len(first+second) > 1000 {
			// Names with such characters may be taken for others: only that it ends is checked.
			checkText(t, locate(map[string]any{first: map[string]any{second: "x"}}, first+"."+second).String(), 2*maxPath)
			return
		}
		list := make([]any, index+1)
		list[index] = map[string]any{second: "x"}
		object := map[string]any{first: list}
		want := (*path)(nil).child(first).item(index).child(second).String()
		if got := locate(object, fmt.Sprintf("%s[%d].%s", first, index, second)).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
