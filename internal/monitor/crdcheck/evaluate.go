package crdcheck

import (
	"context"
	"maps"
	"slices"
	"strings"

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
	e := &evaluation{session: &session{Checker: c, ctx: ctx}, read: read, tried: map[string]attempt{}}
	if wrong := e.everything(read); len(wrong) > 0 || c.creation {
		e.addProblems(&v, wrong)
	}
	v.conclude()
	switch err := ctx.Err(); {
	case err != nil:
		v.State, v.Incomplete = Unknown, err.Error()
	case v.Incomplete != "":
		v.State = Unknown
	case e.over:
		v.Incomplete = "the check was cut short: it would have taken too long"
	}
	return v
}

// evaluation finds out which writes are refused, by trying some.
type evaluation struct {
	*session
	// read is the object.
	read map[string]any
	// tried are the writes that were tried, by the key of the field that they change.
	tried map[string]attempt
	// order are the same keys, in the order in which they were tried.
	order []string
}

// attempt is a write that was tried, and the keys of the errors with which it was refused.
type attempt struct {
	at      *path
	refused sets.Set[string]
}

// addProblems adds the problems. wrong is whatever is wrong with the object.
func (e *evaluation) addProblems(v *Verdict, wrong field.ErrorList) {
	known := sets.Set[string]{}
	add := func(err *field.Error, when When, edit *path) {
		known.Insert(keyOf(err))
		if broken, ok := strings.CutPrefix(err.Detail, "rule compile error: "); ok {
			v.Incomplete = shorten("a rule does not compile: "+broken, maxMessage)
			return
		}
		if len(v.Problems) >= 2*maxProblems {
			v.MoreProblems++
			return
		}
		problem := Problem{When: when, Field: fieldOf(e.read, err), Message: messageOf(err)}
		if edit != nil {
			problem.Edit = edit.String()
		}
		v.Problems = append(v.Problems, problem)
	}
	metadata := (*path)(nil).child("metadata")
	for _, err := range relevant(e.update(touched(e.read, metadata), e.read), known) {
		add(err, EveryWrite, nil)
	}
	if e.hasStatus {
		for _, err := range relevant(e.updateStatus(touched(e.read, (*path)(nil).child("status")), e.read), known) {
			add(err, EveryStatusWrite, nil)
		}
	}
	// Duplicates that exist are let through.
	duplicates := sets.Set[string]{}
	for _, err := range listtype.ValidateListSetsAndMaps(nil, e.structural, e.read) {
		duplicates.Insert(keyOf(err))
	}
	rest := relevant(wrong, known.Union(duplicates))
	if extra := len(rest) - maxErrors; extra > 0 {
		rest, v.MoreProblems = rest[:maxErrors], v.MoreProblems+extra
	}
	for i, edit := range e.owners(rest) {
		if edit != nil {
			add(rest[i], OnEdit, edit)
		}
	}
	for _, err := range relevant(e.create(e.read), known) {
		add(err, OnCreation, nil)
	}
}

// owners finds out which fields cannot be changed because of each error, nil where there is none. An error is let through as long
// as the field to which it belongs does not change, and it does when anything in it does. So that field is the outermost one whose
// change makes the error come back.
func (e *evaluation) owners(wrong field.ErrorList) []*path {
	owners := make([]*path, len(wrong))
	for i, err := range wrong {
		for _, at := range prefixes(locate(e.read, placeOf(err))) {
			if e.try(at).Has(keyOf(err)) {
				owners[i] = at
				break
			}
		}
	}
	for i, err := range wrong {
		if owners[i] == nil {
			owners[i] = e.hidden(err)
		}
	}
	return owners
}

// hidden returns a field for an error that did not come back with a change of its own field: it is not reported as long as
// something worse is wrong there. It may have come back with a change that was tried for the sake of another error.
func (e *evaluation) hidden(err *field.Error) *path {
	for _, key := range e.order {
		if e.tried[key].refused.Has(keyOf(err)) {
			return e.tried[key].at
		}
	}
	at := locate(e.read, placeOf(err))
	if isMetadata(at) {
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
func (e *evaluation) try(at *path) sets.Set[string] {
	key := at.key()
	if done, ok := e.tried[key]; ok {
		return done.refused
	}
	if len(e.tried) >= maxTries {
		e.over = true
		return nil
	}
	old := touched(e.read, at)
	var errs field.ErrorList
	if e.hasStatus && at.steps()[0].name == "status" {
		errs = e.updateStatus(old, e.read)
	} else {
		errs = e.update(old, e.read)
	}
	refused := sets.Set[string]{}
	for _, err := range errs {
		refused.Insert(keyOf(err))
	}
	e.tried[key] = attempt{at: at, refused: refused}
	e.order = append(e.order, key)
	return refused
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
