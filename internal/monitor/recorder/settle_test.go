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

// TestNoChangeIsBookedToWhoMadeNone: after the definition has changed, or another version is followed, the next one who writes an object
// has made what that one wrote, and nothing else.
func TestNoChangeIsBookedToWhoMadeNone(t *testing.T) {
	t.Parallel()
	const early, late = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"
	first := [4]string{"maker", "v1", early, `{"f:a":{}}`}
	edit := func(version, fields string) [4]string { return [4]string{"editor", version, late, fields} }
	v2 := widgets
	v2.Version = "v2"
	for name, test := range map[string]struct {
		kind change.Kind
		next supervisor.Object
		// list tells that a list shows it, and not a watch.
		list bool
		want []string
	}{
		"another version, and an edit":           {v2, managed("v2", "3", `"spec":{"a":1,"b":2}`, first, edit("v2", `{"f:b":{}}`)), false, []string{"editor: .spec.b"}},
		"another version, and nothing else":      {v2, managed("v2", "3", `"spec":{"a":1}`, first), false, nil},
		"another version, listed":                {v2, managed("v2", "2", `"spec":{"a":1}`, first), true, nil},
		"another version, listed with a default": {v2, managed("v2", "2", `"spec":{"a":1,"d":"x"}`, first), true, []string{"nobody: .spec.d"}},
		"another version with other names":       {v2, managed("v2", "3", `"spec":{"renamed":1,"b":2}`, first, edit("v2", `{"f:b":{}}`)), false, []string{"nobody: .spec.a .spec.renamed", "editor: .spec.b"}},
		"another version with other forms":       {v2, managed("v2", "3", `"spec":{"a":"1","b":2}`, first, edit("v2", `{"f:b":{}}`)), false, []string{"nobody: .spec.a", "editor: .spec.b"}},
		"a default that was added, and an edit":  {widgets, managed("v1", "3", `"spec":{"a":1,"b":2,"d":{"x":1}}`, first, edit("v1", `{"f:b":{}}`)), false, []string{"nobody: .spec.d", "editor: .spec.b"}},
		"a default, and a heartbeat":             {widgets, managed("v1", "3", `"spec":{"a":1,"d":"x"}`, first, edit("v1", `{"f:a":{}}`)), false, []string{"nobody: .spec.d"}},
		"managedFields only":                     {widgets, managed("v1", "3", `"spec":{"a":1}`, first, edit("v1", `{"f:a":{}}`)), false, nil},
		"an edit":                                {widgets, managed("v1", "3", `"spec":{"a":2}`, edit("v1", `{"f:a":{}}`)), false, []string{"editor: .spec.a"}},
		"a field that was removed":               {widgets, managed("v1", "3", `"spec":{}`, [4]string{"maker", "v1", late, `{}`}), false, []string{"maker: .spec.a"}},
		"one that somebody else removed":         {widgets, managed("v1", "3", `"spec":{"b":2}`, edit("v1", `{"f:b":{}}`)), false, []string{"editor: .spec.a .spec.b"}},
		"without managedFields":                  {v2, managed("v2", "3", `"spec":{"a":2}`), false, []string{"nobody knows: .spec.a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, widgets, nil)
			s.event(supervisor.Added, managed("v1", "2", `"spec":{"a":1}`, first))
			s.records(widgets)
			s.open(test.kind)
			if test.list {
				s.list("5", test.next)
			} else {
				s.event(supervisor.Modified, test.next)
			}
			var got []string
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
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			state, err := s.s.State(t.Context(), widgets.GroupResource(), someUID)
			if err != nil || !strings.Contains(string(state.Body), `"apiVersion":"example.com/`+test.kind.Version) {
				t.Errorf("the last state is %s %v", state.Body, err)
			}
		})
	}
}
