package change

import (
	"encoding/json"
	"fmt"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// Fields are owned as the library says that writes managedFields: each path of a set is, what is below one that has nothing below it
// in the set is, and what is above one is in part.
func FuzzOwns(f *testing.F) {
	generate.Seed(f, 40)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		set := fieldpath.NewSet()
		for range source.Below(12) {
			path, _ := anyPath(source)
			set.Insert(path)
		}
		text, err := set.ToJSON()
		if err != nil {
			t.Fatal(err)
		}
		fields, err := decode(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			path, steps := anyPath(source)
			want := set.Has(path)
			set.Iterate(func(p fieldpath.Path) {
				want = want || isPrefix(path, p)
				want = want || isPrefix(p, path) && !hasBelow(set, p)
			})
			if got := owns(&fields, steps) > 0; got != want {
				t.Fatalf("%s in %s: %v, want %v", path, text, got, want)
			}
		}
	})
}

func isPrefix(short, long fieldpath.Path) bool {
	return len(short) <= len(long) && short.Equals(long[:len(short)])
}

func hasBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	found := false
	set.Iterate(func(p fieldpath.Path) { found = found || len(p) > len(path) && isPrefix(path, p) })
	return found
}

// anyPath makes a path as the library has it, and the same as steps.
func anyPath(source *generate.Source) (path fieldpath.Path, steps []step) {
	var text []byte
	for i := range 1 + source.Below(4) {
		name := generate.Pick(source, "a", "b", "odd name")
		switch choice := source.Below(4); {
		case choice == 2 && i > 0:
			key := fmt.Sprint(source.Below(3))
			path = append(path, fieldpath.PathElement{Key: fieldpath.KeyByFields("name", key)})
			text = fmt.Appendf(text, `[name=%q]`, key)
		case choice == 3 && i > 0:
			item := value.NewValueInterface(name)
			path = append(path, fieldpath.PathElement{Value: &item})
			quoted, _ := json.Marshal(name)
			text = fmt.Appendf(text, `[=%s]`, quoted)
		default:
			path = append(path, fieldpath.PathElement{FieldName: &name})
			text = appendName(text, name)
		}
	}
	steps, err := parsePath(string(text))
	if err != nil {
		panic(err)
	}
	return path, steps
}

// A path is read as the steps that it was written from.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{`.a[name="x",port=1].b`, `["x]"]`, `[="a\"]"]`, `[3][]`, `.a[*]`, `["a"="b"]`, `[{"a":1}=2]`, `[=[1]]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		steps, err := parsePath(path)
		if err != nil {
			return
		}
		var again []byte
		for _, s := range steps {
			switch s.typ {
			case nameStep:
				again = appendName(again, s.name)
			case indexStep:
				again = fmt.Appendf(again, "[%d]", s.index)
			case keysStep:
				again = append(again, '[')
				for i := range s.keys {
					if i > 0 {
						again = append(again, ',')
					}
					again = s.keys[i].encode(append(appendKeyName(again, s.keys[i].key), '='))
				}
				again = append(again, ']')
			case valueStep:
				again = append(s.value.encode(append(again, "[="...)), ']')
			case orderStep:
				again = append(again, "[]"...)
			case eachStep:
				again = append(again, "[*]"...)
			}
		}
		second, err := parsePath(string(again))
		if err != nil || len(second) != len(steps) {
			t.Fatalf("%q is written as %q: %v", path, again, err)
		}
		for i := range steps {
			if steps[i].typ != second[i].typ || steps[i].index != second[i].index || steps[i].typ == nameStep && steps[i].name != second[i].name {
				t.Fatalf("%q is written as %q", path, again)
			}
		}
	})
}
