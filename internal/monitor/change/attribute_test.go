package change_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// entry is an entry of managedFields. Who may have a subresource after a slash, and an operation in front.
func entry(who, time, fields string) string {
	operation := "Update"
	if rest, found := strings.CutPrefix(who, "Apply "); found {
		operation, who = "Apply", rest
	}
	who, subresource, _ := strings.Cut(who, "/")
	return fmt.Sprintf(`{"manager":%q,"operation":%q,"subresource":%q,"time":"2026-01-01T00:00:0%sZ","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{%s}}`,
		who, operation, subresource, time, fields)
}

func owned(version, rest string, entries ...string) string {
	return widgetAt(version, `"managedFields":[`+strings.Join(entries, ",")+`]`, rest)
}

func likely(name, operation, subresource string, others ...string) change.Actor {
	return change.Actor{Name: name, Operation: operation, Subresource: subresource, Confidence: change.Likely, Source: "managedFields", Others: others}
}

func TestAttribute(t *testing.T) {
	size, image := `"f:spec":{"f:size":{}}`, `"f:spec":{"f:image":{}}`
	ready := `"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}}}`
	for name, c := range map[string]struct {
		before, after string
		want          change.Actor
	}{
		"who took the field over": {
			owned("1", `"spec":{"size":1}`, entry("old", "1", size)),
			owned("2", `"spec":{"size":2}`, entry("old", "1", ``), entry("kubectl-edit", "2", size)), likely("kubectl-edit", "Update", ""),
		},
		"who owned it and wrote again": {
			owned("1", `"spec":{"size":1}`, entry("op", "1", size), entry("other", "1", image)),
			owned("2", `"spec":{"size":2}`, entry("op", "2", size), entry("other", "1", image)), likely("op", "Update", ""),
		},
		"who applied it": {
			owned("1", `"spec":{"size":1}`, entry("Apply argocd", "1", size)), owned("2", `"spec":{"size":2}`, entry("Apply argocd", "2", size)), likely("argocd", "Apply", ""),
		},
		"twice within a second": {
			owned("1", `"spec":{"size":1}`, entry("op", "1", size), entry("other", "1", image)),
			owned("2", `"spec":{"size":2}`, entry("op", "1", size), entry("other", "1", image)), likely("op", "Update", ""),
		},
		"a status": {
			owned("1", `"status":{"conditions":[{"type":"Ready","status":"False"}]}`, entry("op", "1", size), entry("op/status", "1", ready)),
			owned("2", `"status":{"conditions":[{"type":"Ready","status":"True"}]}`, entry("op", "1", size), entry("op/status", "2", ready)), likely("op", "Update", "status"),
		},
		"somebody else wrote something else": {
			owned("1", `"spec":{"size":1}`, entry("op", "1", size)), owned("2", `"spec":{"size":2}`, entry("op", "1", ``), entry("other", "2", image)), change.Actor{Confidence: change.Unknown},
		},
		"two at once, most fields first": {
			owned("1", `"spec":{"size":1,"image":"a","x":1}`), owned("2", `"spec":{"size":2,"image":"b","x":2}`, entry("a", "2", image), entry("b", "2", `"f:spec":{"f:size":{},"f:x":{}}`)), likely("b", "Update", "", "a"),
		},
		"the whole and the part, most exact first": {
			owned("1", `"spec":{"a":{"b":1}}`), owned("2", `"spec":{"a":{"b":2}}`, entry("a", "2", `"f:spec":{"f:a":{}}`), entry("b", "2", `"f:spec":{"f:a":{"f:b":{}}}`)), likely("b", "Update", "", "a"),
		},
		"a field that was added with what is below": {
			owned("1", `"spec":{}`), owned("2", `"spec":{"a":{"b":{"c":1}}}`, entry("op", "2", `"f:spec":{"f:a":{".":{},"f:b":{"f:c":{}}}}`)), likely("op", "Update", ""),
		},
		"who applied a field no longer": {
			owned("1", `"spec":{"size":1,"image":"a"}`, entry("Apply argocd", "1", `"f:spec":{"f:size":{},"f:image":{}}`)), owned("2", `"spec":{"image":"a"}`, entry("Apply argocd", "2", image)), likely("argocd", "Apply", ""),
		},
		"somebody removed what another owned": {
			owned("1", `"spec":{"size":1,"image":"a"}`, entry("op", "1", `"f:spec":{"f:size":{},"f:image":{}}`)), owned("2", `"spec":{"image":"a"}`, entry("op", "1", image)), change.Actor{Confidence: change.Unknown},
		},
		"an item by its keys": {
			owned("1", `"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`),
			owned("2", `"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}`,
				entry("a", "2", `"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{}}}}`), entry("b", "2", `"f:spec":{"f:containers":{"k:{\"name\":\"b\"}":{"f:image":{}}}}`)), likely("b", "Update", ""),
		},
		"a list that is owned as a whole": {
			owned("1", `"spec":{"args":["a"]}`), owned("2", `"spec":{"args":["b"]}`, entry("op", "2", `"f:spec":{"f:args":{}}`)), likely("op", "Update", ""),
		},
		"a finalizer": {
			widgetAt("1", `"finalizers":["a"]`), widgetAt("2", `"finalizers":["a","b/c"],"managedFields":[`+entry("op", "2", `"f:metadata":{"f:finalizers":{".":{},"v:\"b/c\"":{}}}`)+`]`), likely("op", "Update", ""),
		},
		"an item of which a secret is the key": {
			owned("1", `"spec":{"users":[{"name":"https://a:`+canary+`@b","x":1}]}`), owned("2", `"spec":{"users":[{"name":"https://a:`+canary+`@b","x":2}]}`,
				entry("op", "2", `"f:spec":{"f:users":{"k:{\"name\":\"https://a:`+canary+`@b\"}":{"f:x":{}}}}`)), likely("op", "Update", ""),
		},
		"a secret below which nothing is said": {
			owned("1", `"spec":{"credentials":{"user":"a"}}`), owned("2", `"spec":{"credentials":{"user":"b"}}`, entry("op", "2", `"f:spec":{"f:credentials":{"f:user":{}}}`)), likely("op", "Update", ""),
		},
		"nobody": {owned("1", `"spec":{"size":1}`), owned("2", `"spec":{"size":2}`), change.Actor{Confidence: change.Unknown}},
	} {
		before, after := reduce(t, c.before, nil), reduce(t, c.after, nil)
		fields, _, err := change.Compare(&before, &after, nil)
		if err != nil || len(fields) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, change.Attribute(&before, &after, fields)); diff != "" {
			t.Errorf("%s: %v\n%s", name, lines(fields), diff)
		}
	}
}

func TestWhoCreatedAnObject(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   change.Actor
	}{
		"nobody says":                    {widget(), change.Actor{Confidence: change.Unknown}},
		"one":                            {owned("1", `"spec":{}`, entry("kubectl-create", "1", `"f:spec":{}`)), likely("kubectl-create", "Update", "")},
		"the first of several":           {owned("1", `"spec":{}`, entry("later", "3", `"f:spec":{}`), entry("first", "1", `"f:spec":{}`)), likely("first", "Update", "")},
		"the object before its status":   {owned("1", `"spec":{}`, entry("a/status", "1", `"f:status":{}`), entry("b", "1", `"f:spec":{}`)), likely("b", "Update", "", "a")},
		"managedFields that are no list": {widgetAt("1", `"managedFields":{"manager":"x"}`), change.Actor{Confidence: change.Unknown}},
	} {
		state := reduce(t, c.object, nil)
		if diff := cmp.Diff(c.want, change.Attribute(nil, &state, nil)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Whatever stands in managedFields, an answer comes soon.
func TestHostileManagers(t *testing.T) {
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf(`"k:{\"name\":\"n%d\"}":{"f:x":{}}`, i))
	}
	fields := `"f:spec":{"f:items":{` + strings.Join(many, ",") + `}}`
	items := func(value string) string {
		var list []string
		for i := range 600 {
			list = append(list, fmt.Sprintf(`{"name":"n%d","x":%s}`, i, value))
		}
		return `"spec":{"items":[` + strings.Join(list, ",") + `]}`
	}
	before := reduce(t, owned("1", items("1"), entry("a", "1", fields)), nil)
	after := reduce(t, owned("2", items("2"), entry("a", "2", fields)), nil)
	found, _, err := change.Compare(&before, &after, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	actor := change.Attribute(&before, &after, found)
	if took := time.Since(start); took > 5*time.Second || actor.Name != "a" {
		t.Errorf("%v: %+v", took, actor)
	}
}
