package recorder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// managed makes an object of an API version, with an entry of managedFields for each manager: its name, version, time and fields.
func managed(apiVersion, version, rest string, entries ...[4]string) supervisor.Object {
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":"example.com/%s","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:spec":%s}}`, e[0], e[1], e[2], e[3]))
	}
	raw := fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":%q,"resourceVersion":%q,"managedFields":[%s]},%s}`,
		apiVersion, someUID, version, strings.Join(all, ","), rest)
	return supervisor.Object{Namespace: "a", Name: "w", UID: someUID, ResourceVersion: version, Raw: []byte(raw)}
}

const (
	plain       = `{"type":"object"}`
	withDefault = `{"type":"object","properties":{"spec":{"type":"object","properties":{"d":{"type":"string","default":"x"}}}}}`
)

// updates says of each update that is stored who made it, and which fields differ.
func (s *session) updates() (found []string) {
	s.t.Helper()
	for _, r := range s.records(widgets) {
		if r.Type != change.Updated {
			continue
		}
		who := r.Actor.Name
		switch {
		case r.SchemaDriven && who == "":
			who = "nobody"
		case who == "":
			who = "nobody knows"
		}
		text := who + ":"
		for _, f := range r.Fields {
			text += " " + f.Path
		}
		found = append(found, text)
	}
	return found
}

// TestNoChangeIsBookedToWhoMadeNone: after the definition has changed, or another version is followed, the next one who writes an object
// has made what that one wrote, and nothing else.
func TestNoChangeIsBookedToWhoMadeNone(t *testing.T) {
	t.Parallel()
	const early, late = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"
	first := [4]string{"maker", "v1", early, `{"f:a":{}}`}
	edit := func(version, fields string) [4]string { return [4]string{"editor", version, late, fields} }
	v2 := widgets
	v2.Version = "v2"
	same, other := [2]string{plain, plain}, [2]string{plain, withDefault}
	for name, test := range map[string]struct {
		kind change.Kind
		// schema is that of the kind before and after: the same, or another one.
		schema [2]string
		next   supervisor.Object
		// list reports whether a list shows it, and not a watch.
		list bool
		want []string
	}{
		"another version, and an edit":           {v2, other, managed("v2", "3", `"spec":{"a":1,"b":2}`, first, edit("v2", `{"f:b":{}}`)), false, []string{"editor: .spec.b"}},
		"another version, and nothing else":      {v2, other, managed("v2", "3", `"spec":{"a":1}`, first), false, nil},
		"another version, listed":                {v2, other, managed("v2", "2", `"spec":{"a":1}`, first), true, nil},
		"another version, listed with a default": {v2, other, managed("v2", "2", `"spec":{"a":1,"d":"x"}`, first), true, []string{"nobody: .spec.d"}},
		"another version with other names":       {v2, other, managed("v2", "3", `"spec":{"renamed":1,"b":2}`, first, edit("v2", `{"f:b":{}}`)), false, []string{"nobody: .spec.a .spec.renamed", "editor: .spec.b"}},
		"another version with other forms":       {v2, other, managed("v2", "3", `"spec":{"a":"1","b":2}`, first, edit("v2", `{"f:b":{}}`)), false, []string{"nobody: .spec.a", "editor: .spec.b"}},
		"a default that was added, and an edit":  {widgets, other, managed("v1", "3", `"spec":{"a":1,"b":2,"d":{"x":1}}`, first, edit("v1", `{"f:b":{}}`)), false, []string{"nobody: .spec.d", "editor: .spec.b"}},
		"a default, and a heartbeat":             {widgets, other, managed("v1", "3", `"spec":{"a":1,"d":"x"}`, first, edit("v1", `{"f:a":{}}`)), false, []string{"nobody: .spec.d"}},
		"managedFields only":                     {widgets, same, managed("v1", "3", `"spec":{"a":1}`, first, edit("v1", `{"f:a":{}}`)), false, nil},
		"an edit":                                {widgets, same, managed("v1", "3", `"spec":{"a":2}`, edit("v1", `{"f:a":{}}`)), false, []string{"editor: .spec.a"}},
		"a field that was removed":               {widgets, same, managed("v1", "3", `"spec":{}`, [4]string{"maker", "v1", late, `{}`}), false, []string{"maker: .spec.a"}},
		"one that somebody else removed":         {widgets, same, managed("v1", "3", `"spec":{"b":2}`, edit("v1", `{"f:b":{}}`)), false, []string{"editor: .spec.a .spec.b"}},
		"without managedFields":                  {v2, other, managed("v2", "3", `"spec":{"a":2}`), false, []string{"nobody knows: .spec.a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, widgets, nil)
			s.openAs(widgets, test.schema[0])
			s.event(supervisor.Added, managed("v1", "2", `"spec":{"a":1}`, first))
			s.records(widgets)
			s.r.recent.Clear()
			s.openAs(test.kind, test.schema[1])
			if test.list {
				s.list("5", test.next)
			} else {
				s.event(supervisor.Modified, test.next)
			}
			if diff := cmp.Diff(test.want, s.updates()); diff != "" {
				t.Error(diff)
			}
			state, err := s.s.State(t.Context(), widgets.GroupResource(), someUID)
			if err != nil || !strings.Contains(string(state.Body), `"apiVersion":"example.com/`+test.kind.Version) {
				t.Errorf("the last state is %s %v", state.Body, err)
			}
		})
	}
}

// TestWithoutAnotherDefinitionSomebodyWrote: who writes an object says in managedFields who owns what, as that one likes. What a mutating
// webhook, a policy or the API server adds is owned by nobody. So as long as the kind is defined as it was, no field that changes counts
// as one that nobody wrote.
func TestWithoutAnotherDefinitionSomebodyWrote(t *testing.T) {
	t.Parallel()
	const early, late = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"
	maker := [4]string{"maker", "v1", early, `{"f:a":{},"f:deny":{}}`}
	partly := [4]string{"maker", "v1", early, `{"f:a":{}}`}
	mallory := [4]string{"mallory", "v1", late, `{"f:a":{}}`}
	editor := [4]string{"editor", "v1", late, `{"f:b":{}}`}
	both := managed("v1", "2", `"spec":{"a":1,"deny":["*"]}`, maker)
	emptied := managed("v1", "3", `"spec":{"a":1,"deny":["*"]}`)
	services := widgets
	services.Definition = ""
	for name, test := range map[string]struct {
		kind change.Kind
		// schemas are those of the kind, by the number of the object before which it gets them.
		schemas map[int]string
		objects []supervisor.Object
		want    []string
	}{
		"managedFields emptied before": {widgets, nil, []supervisor.Object{both, emptied, managed("v1", "4", `"spec":{"a":2}`, mallory)}, []string{"mallory: .spec.a .spec.deny"}},
		"emptied with it":              {widgets, nil, []supervisor.Object{both, managed("v1", "4", `"spec":{"a":2}`)}, []string{"nobody knows: .spec.a .spec.deny"}},
		"emptied before the definition changes": {
			widgets,
			map[int]string{2: withDefault},
			[]supervisor.Object{both, emptied, managed("v1", "4", `"spec":{"a":2}`, mallory)},
			[]string{"mallory: .spec.a .spec.deny"},
		},
		"written since the definition changed": {
			widgets,
			map[int]string{1: withDefault},
			[]supervisor.Object{both, managed("v1", "3", `"spec":{"a":1,"d":"x","deny":["*"]}`, partly), managed("v1", "4", `"spec":{"a":2,"d":"x"}`, mallory)},
			[]string{"nobody: .spec.d", "mallory: .spec.a .spec.deny"},
		},
		"a removal of what nobody owns":              {widgets, nil, []supervisor.Object{managed("v1", "2", `"spec":{"a":1,"deny":["*"]}`, partly), managed("v1", "3", `"spec":{"a":2}`, mallory)}, []string{"mallory: .spec.a .spec.deny"}},
		"that alone":                                 {widgets, nil, []supervisor.Object{managed("v1", "2", `"spec":{"a":1,"deny":["*"]}`, partly), managed("v1", "3", `"spec":{"a":1}`, partly)}, []string{"nobody knows: .spec.deny"}},
		"an edit to which a webhook adds":            {widgets, nil, []supervisor.Object{both, managed("v1", "3", `"spec":{"a":1,"b":2,"deny":["*"],"injected":true}`, maker, editor)}, []string{"editor: .spec.b .spec.injected"}},
		"an edit of which nobody kept track":         {widgets, nil, []supervisor.Object{both, managed("v1", "3", `"spec":{"a":1,"b":2,"deny":["*"]}`, maker)}, []string{"nobody knows: .spec.b"}},
		"what the API server allots to a kind of it": {services, map[int]string{0: ""}, []supervisor.Object{both, managed("v1", "3", `"spec":{"a":1,"b":2,"deny":["*"],"nodePort":30000}`, maker, editor)}, []string{"editor: .spec.b .spec.nodePort"}},
		"a definition that was not known":            {widgets, map[int]string{0: "", 1: withDefault}, []supervisor.Object{both, managed("v1", "3", `"spec":{"a":1}`, mallory)}, []string{"nobody knows: .spec.deny"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, test.kind, nil)
			for i, object := range test.objects {
				schema, another := test.schemas[i]
				switch {
				case i == 0 && !another:
					s.openAs(test.kind, plain)
				case i == 0:
					s.openAs(test.kind, schema)
				case another:
					if err := s.j.SchemaChanged(t.Context(), supervisor.Schema{JSON: []byte(schema)}); err != nil {
						t.Fatal(err)
					}
				}
				what := supervisor.Modified
				if i == 0 {
					what = supervisor.Added
				}
				s.event(what, object)
			}
			if diff := cmp.Diff(test.want, s.updates()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
