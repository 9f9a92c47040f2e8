package crdcheck

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of one check.
const (
	// maxErrors is how many errors are looked at in one object.
	maxErrors = 64
	// maxTries is how many writes are tried on it.
	maxTries = 64
)

// Check says how an object fares that exists, when the definition of this Checker is applied. The object is one that the API
// server gave, of any version: it is taken as if its fields had been stored, and only its apiVersion changed. It is not changed.
//
// Time and memory are bounded whatever the definition and the object are. A context that ends makes the verdict Unknown.
func (c *Checker) Check(ctx context.Context, object map[string]any) Verdict {
	if err := measureObject(c.costs, object); err != nil {
		return Verdict{State: Unknown, Incomplete: err.Error()}
	}
	if err := ctx.Err(); err != nil {
		return Verdict{State: Unknown, Incomplete: err.Error()}
	}
	read := c.read(object)
	d := &changes{}
	d.compareObjects(nil, object, read)
	v := Verdict{
		Pruned: d.removed.fields, MorePruned: d.removed.more,
		Defaulted: d.added.fields, MoreDefaulted: d.added.more,
	}
	j := &judge{session: &session{Checker: c, ctx: ctx}, read: read, tried: map[string]sets.Set[string]{}}
	if wrong := j.everything(read); len(wrong) > 0 || c.optional {
		j.judge(&v, wrong)
	}
	v.conclude()
	switch err := ctx.Err(); {
	case err != nil:
		v.State, v.Incomplete = Unknown, err.Error()
	case j.over:
		v.Incomplete = "the check was cut short: it would have taken too long"
	}
	return v
}

// judge finds out which writes are refused, by trying some.
type judge struct {
	*session
	// read is the object.
	read map[string]any
	// tried is what each write that was tried is refused for, by the key of the field that it changes.
	tried map[string]sets.Set[string]
}

// judge adds the problems. wrong is whatever is wrong with the object.
func (j *judge) judge(v *Verdict, wrong field.ErrorList) {
	known := sets.Set[string]{}
	add := func(err *field.Error, when When, edit string) {
		known.Insert(keyOf(err))
		if len(v.Problems) >= 2*maxProblems {
			v.MoreProblems++
			return
		}
		v.Problems = append(v.Problems, Problem{When: when, Edit: edit, Field: fieldOf(j.read, err), Message: messageOf(err)})
	}
	metadata := (*path)(nil).child("metadata")
	for _, err := range relevant(j.update(touched(j.read, metadata), j.read), known) {
		add(err, EveryWrite, "")
	}
	if j.hasStatus {
		for _, err := range relevant(j.updateStatus(touched(j.read, (*path)(nil).child("status")), j.read), known) {
			add(err, EveryStatusWrite, "")
		}
	}
	// Duplicates that exist are let through.
	duplicates := sets.Set[string]{}
	for _, err := range listtype.ValidateListSetsAndMaps(nil, j.structural, j.read) {
		duplicates.Insert(keyOf(err))
	}
	rest := relevant(wrong, known.Union(duplicates))
	if extra := len(rest) - maxErrors; extra > 0 {
		rest, v.MoreProblems = rest[:maxErrors], v.MoreProblems+extra
	}
	for _, attributed := range j.attribute(rest) {
		if attributed.edit == nil {
			continue
		}
		add(attributed.err, OnEdit, attributed.edit.String())
	}
	for _, err := range relevant(j.create(j.read), known) {
		add(err, OnCreation, "")
	}
}

// attribution is an error, and the field whose change it refuses.
type attribution struct {
	err  *field.Error
	edit *path
}

// attribute finds out which fields cannot be changed. An error is let through as long as the field to which it belongs does not
// change, and it does when anything in it does. So that field is the outermost one whose change makes the error come back.
func (j *judge) attribute(wrong field.ErrorList) []attribution {
	found := make([]attribution, len(wrong))
	for i, err := range wrong {
		found[i] = attribution{err: err, edit: j.owner(err)}
	}
	for i := range found {
		if found[i].edit == nil {
			found[i].edit = j.hidden(found[i].err)
		}
	}
	return found
}

// owner returns the field to which an error belongs, nil when no change was refused for it.
func (j *judge) owner(err *field.Error) *path {
	for _, at := range prefixes(locate(j.read, placeOf(err))) {
		if j.try(at).Has(keyOf(err)) {
			return at
		}
	}
	return nil
}

// hidden returns a field for an error that no change of its own field showed. It is not shown as long as something worse is wrong
// with the same field.
func (j *judge) hidden(err *field.Error) *path {
	at := locate(j.read, placeOf(err))
	if at == nil || isMetadata(at) {
		return nil
	}
	return at
}

func isMetadata(at *path) bool {
	steps := at.steps()
	return len(steps) > 0 && slices.Contains(metaFields, steps[0].name)
}

// prefixes returns the paths on the way to a field, the outermost first. The root is not one of them, nor is the metadata: both
// change with every write.
func prefixes(at *path) []*path {
	if at == nil || isMetadata(at) {
		return nil
	}
	return at.steps()
}

// try returns what a write is refused for that changes a field and leaves what is wrong as it is. Only the old object is another
// one, so some rules with oldSelf may refuse it that would not refuse a real write. Who asks looks for an error that is known.
func (j *judge) try(at *path) sets.Set[string] {
	key := at.key()
	if result, done := j.tried[key]; done {
		return result
	}
	if len(j.tried) >= maxTries {
		j.over = true
		return nil
	}
	old := touched(j.read, at)
	var errs field.ErrorList
	if j.hasStatus && at.steps()[0].name == "status" {
		errs = j.updateStatus(old, j.read)
	} else {
		errs = j.update(old, j.read)
	}
	result := sets.Set[string]{}
	for _, err := range errs {
		result.Insert(keyOf(err))
	}
	j.tried[key] = result
	return result
}

// relevant returns the errors that are not known, each once and in a fixed order.
func relevant(errs field.ErrorList, known sets.Set[string]) field.ErrorList {
	byKey := map[string]*field.Error{}
	for _, err := range errs {
		if key := keyOf(err); !known.Has(key) && key != keyOf(notAsked()) {
			byKey[key] = err
		}
	}
	list := make(field.ErrorList, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		list = append(list, byKey[key])
	}
	return list
}

// touched returns an object that differs in one field. It shares everything else.
func touched(object map[string]any, at *path) map[string]any {
	changed, _ := touch(object, at.steps()).(map[string]any)
	return changed
}

// mark is a key that no object has.
const mark = "\x00touched"

func touch(value any, steps []*path) any {
	if len(steps) == 0 {
		return altered(value)
	}
	switch value := value.(type) {
	case map[string]any:
		clone := maps.Clone(value)
		clone[steps[0].name] = touch(value[steps[0].name], steps[1:])
		return clone
	case []any:
		clone := slices.Clone(value)
		clone[steps[0].index] = touch(value[steps[0].index], steps[1:])
		return clone
	default:
		return altered(value)
	}
}

// altered returns another value of the same type. What is in a map or a list stays as it is.
func altered(value any) any {
	switch value := value.(type) {
	case map[string]any:
		clone := make(map[string]any, len(value)+1)
		maps.Copy(clone, value)
		clone[mark] = mark
		return clone
	case []any:
		return append(slices.Clone(value), nil)
	case string:
		return value + mark
	case bool:
		return !value
	case int64:
		return value ^ 1
	case float64:
		return -value - 1
	default:
		return map[string]any{}
	}
}
