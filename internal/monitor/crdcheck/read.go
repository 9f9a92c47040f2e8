package crdcheck

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
)

// read returns an object as the API server reads it from its storage: without unknown fields, with defaults, and at this
// version. It is a copy.
func (c *Checker) read(object map[string]any) map[string]any {
	return c.decode(object, true)
}

// decode does the same with an object of a request. An embedded object whose metadata cannot be read is dropped from the storage
// and refused in a request, so its metadata is only repaired when stored.
func (c *Checker) decode(object map[string]any, stored bool) map[string]any {
	read := runtime.DeepCopyJSON(object)
	read["apiVersion"] = c.apiVersion
	if !c.preserve {
		pruning.Prune(read, c.structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(read, c.structural)
	}
	// The error is of a request that is refused before anything is validated. What is stored has none.
	_ = objectmeta.Coerce(nil, read, c.structural, false, stored)
	defaulting.Default(read, c.structural)
	return read
}

// maxNamed is how many fields a Verdict names of each kind.
const maxNamed = 50

// changes are the fields that differ between an object as it was and as it is read.
type changes struct {
	removed, added named
}

// named is a list of fields that is cut.
type named struct {
	fields []string
	more   int
}

func (n *named) add(at *path) {
	if len(n.fields) >= maxNamed {
		n.more++
		return
	}
	n.fields = append(n.fields, at.String())
}

// compareObjects names the fields that are gone, and those that came or have another value: a null that became the default. Of a
// field with fields in it, it names only the field.
func (d *changes) compareObjects(at *path, was, is any) {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			d.compareMaps(at, was, is)
			return
		}
	case []any:
		if is, ok := is.([]any); ok && len(was) == len(is) {
			for i := range was {
				d.compareObjects(at.item(i), was[i], is[i])
			}
			return
		}
	default:
		if was == is { // both are scalars: maps and lists are taken above, and never become one
			return
		}
	}
	d.added.add(at)
}

func (d *changes) compareMaps(at *path, was, is map[string]any) {
	for _, name := range sortedKeys(was, is) {
		before, had := was[name]
		after, has := is[name]
		child := at.child(name)
		switch {
		case at == nil && slices.Contains(metaFields, name):
		case had && has:
			d.compareObjects(child, before, after)
		case had:
			d.removed.add(child)
		default:
			d.added.add(child)
		}
	}
}

func sortedKeys(was, is map[string]any) []string {
	keys := make([]string, 0, max(len(was), len(is)))
	for name := range was {
		keys = append(keys, name)
	}
	for name := range is {
		if _, both := was[name]; !both {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys
}
