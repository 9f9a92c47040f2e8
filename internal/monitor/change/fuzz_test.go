package change_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// An object has one form: what was reduced is not reduced further, and neither the order of members nor that of sets matters.
func FuzzReduce(f *testing.F) {
	generate.Seed(f, 60)
	policy, s := newPolicy(f, change.Options{Paths: []string{".spec.open.a"}}), newSchema(f, widgetSchema)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		object := anyWidget(source)
		random := rand.New(rand.NewPCG(uint64(len(data)), 1))
		first := reduceWith(t, string(write(object, nil)), s, policy)
		if !json.Valid(first.Body) {
			t.Fatalf("no JSON: %s", first.Body)
		}
		again := reduceWith(t, string(first.Body), s, policy)
		if !bytes.Equal(first.Body, again.Body) || first.Hash != again.Hash || again.Redacted != 0 {
			t.Fatalf("reduced again, %d more hidden:\n%s\n%s", again.Redacted, first.Body, again.Body)
		}
		shuffle(object, random)
		other := reduceWith(t, string(write(object, random)), s, policy)
		if !bytes.Equal(first.Body, other.Body) || first.Redacted != other.Redacted {
			t.Fatalf("in another order:\n%s\n%s", first.Body, other.Body)
		}
		if records, _ := change.Records(&first, at(other, "9"), change.Context{Schema: s}); len(records) != 0 {
			t.Fatalf("the same, and yet %+v", records)
		}
	})
}

// shuffle changes the order of lists of which the order means nothing.
func shuffle(value any, random *rand.Rand) {
	object, ok := value.(map[string]any)
	if !ok {
		if list, ok := value.([]any); ok {
			for _, item := range list {
				shuffle(item, random)
			}
		}
		return
	}
	for key, member := range object {
		list, ok := member.([]any)
		if ok && (key == "finalizers" && !hasTwins(list, "") || key == "resourceRefs" && !hasTwins(list, "name")) {
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		shuffle(member, random)
	}
}

// hasTwins reports whether two items of a list may be the same, or do not have the key. The order then counts.
func hasTwins(list []any, key string) bool {
	seen := map[any]bool{}
	for _, item := range list {
		object, isObject := item.(map[string]any)
		if _, isList := item.([]any); isList || isObject != (key != "") {
			return true
		}
		if isObject {
			for _, other := range []string{"kind", "apiVersion", "namespace", "group"} {
				if _, has := object[other]; has {
					return true
				}
			}
			item, _ = object[key].(string)
		}
		if seen[item] || item == "" && isObject {
			return true
		}
		seen[item] = true
	}
	return false
}

// The fields that differ say all that differs: put into what was before, they give what is after. Nothing differs from itself.
func FuzzCompare(f *testing.F) {
	generate.Seed(f, 60)
	policy := newPolicy(f, change.Options{})
	schemas := []*change.Schema{nil, newSchema(f, widgetSchema)}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		s := schemas[source.Below(2)]
		object := anyWidget(source)
		before := reduceWith(t, string(write(object, nil)), s, policy)
		after := reduceWith(t, string(write(mutateWidget(source, object), nil)), s, policy)
		if fields, truncated, err := change.Compare(&before, &before, s); len(fields) != 0 || truncated || err != nil {
			t.Fatalf("differs from itself: %v, %v", lines(fields), err)
		}
		fields, truncated, err := change.Compare(&before, &after, s)
		if err != nil || truncated {
			t.Fatalf("truncated %v, %v", truncated, err)
		}
		if (len(fields) == 0) != (before.Hash == after.Hash) {
			t.Fatalf("%d fields differ:\n%s\n%s", len(fields), before.Body, after.Body)
		}
		patched, err := change.Patch(before.Body, fields, s)
		if err != nil || !bytes.Equal(patched, after.Body) {
			t.Fatalf("%v\nfrom %s\nto   %s\ngot  %s\n%s", err, before.Body, after.Body, patched, strings.Join(lines(fields), "\n"))
		}
		seen := map[string]bool{}
		for _, field := range fields {
			if key := string(field.Op) + field.Path; seen[key] {
				t.Fatalf("%s stands twice", key)
			} else {
				seen[key] = true
			}
			if (field.Old == nil) != (field.Op == change.Added) || (field.New == nil) != (field.Op == change.Removed) || bytes.Equal(field.Old, field.New) {
				t.Fatalf("%+v", field)
			}
		}
		again, _, _ := change.Compare(&before, &after, s)
		if diff := cmp.Diff(fields, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever stands in a store and in fields, Patch either refuses it or gives a body in its canonical form.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":[1,2]}`, ".a[0]", "Removed", "", ".a[5]", "Added", "1")
	f.Add(`{"a":[{"name":"x"}]}`, `.a[name="x"].b`, "Added", "1", ".a[]", "Changed", `["name=\"x\""]`)
	f.Add(`{"a":{}}`, `.a["odd name"]`, "Added", "{}", `.finalizers[="b"]`, "Removed", "")
	f.Fuzz(func(t *testing.T, body, path1, op1, new1, path2, op2, new2 string) {
		patched, err := change.Patch([]byte(body), []change.Field{
			{Path: path1, Op: change.Op(op1), New: json.RawMessage(new1)}, {Path: path2, Op: change.Op(op2), New: json.RawMessage(new2)},
		}, nil)
		if err != nil {
			return
		}
		again, err := change.Patch(patched, nil, nil)
		if err != nil || !bytes.Equal(again, patched) || !json.Valid(patched) {
			t.Fatalf("%s is not canonical: %s, %v", patched, again, err)
		}
	})
}
