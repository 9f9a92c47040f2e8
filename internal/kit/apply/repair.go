package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/internal/text"
)

// Bounds of what is said of a repair.
const (
	maxRepairedFields = 3
	maxManagerName    = 64
	maxRepair         = 512
)

// ownManagers is common to the field managers of Slipway's controllers.
const ownManagers = "slipway-"

// repair updates a child that has drifted, and tells Repaired whose change that undoes.
// Whose it was is in the managed fields of others, which the caches leave out: it costs a
// read of the object's metadata. What was not desired before undoes nothing. An operator
// that has just started does not know, and tells only of what is somebody else's.
func (a *Applier) repair(ctx context.Context, owner client.Object, child Child, desired []byte) error {
	same, remembered := a.settled.hadDesired(child, desired)
	if a.Repaired == nil || remembered && !same {
		return a.update(ctx, owner, child, desired)
	}
	before := &metav1.PartialObjectMetadata{}
	before.SetGroupVersionKind(kindOf(child.Desired))
	found := a.Live.Get(ctx, client.ObjectKeyFromObject(child.Current), before) == nil
	if err := a.update(ctx, owner, child, desired); err != nil {
		return err
	}
	if !found || a.altered(child, desired) != nil {
		return nil
	}
	if what := a.undone(before, child.Current, remembered); what != "" {
		a.Repaired(owner, fmt.Sprintf("%s: %s; restored", subject(child.Desired), what))
	}
	return nil
}

// undone says which of the desired fields were somebody else's before, and whose. With
// removed also which were nobody's. It names no value.
func (a *Applier) undone(before, after client.Object, removed bool) string {
	had, has := a.ownedFields(before), a.ownedFields(after)
	if had == nil || has == nil {
		return ""
	}
	byManager := map[string][]string{}
	lost := has.Difference(had)
	lost.Iterate(func(path fieldpath.Path) {
		if isBelow(lost, path) {
			return
		}
		manager := managerOf(before, path)
		if manager == "" && !removed || strings.HasPrefix(manager, ownManagers) {
			return
		}
		byManager[manager] = append(byManager[manager], FieldName(path))
	})
	var parts []string
	for manager, fields := range byManager {
		slices.Sort(fields)
		verb := "was"
		if len(fields) > 1 {
			verb = "were"
		}
		named := strings.Join(fields[:min(len(fields), maxRepairedFields)], ", ")
		if more := len(fields) - maxRepairedFields; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		what := named + " " + verb
		if manager == "" {
			what += " removed"
		} else {
			what += fmt.Sprintf(" changed by %q", text.Cut(manager, maxManagerName))
		}
		parts = append(parts, what)
	}
	slices.Sort(parts)
	return text.Cut(strings.Join(parts, "; "), maxRepair)
}

// ownedFields are the fields that this field manager owns in an object, or nil.
func (a *Applier) ownedFields(object client.Object) *fieldpath.Set {
	entry := a.ownEntry(object)
	if entry == nil {
		return nil
	}
	return setOf(entry)
}

// setOf returns the fields of an entry, or nil when it cannot be read.
func setOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return nil
	}
	return set
}

// isBelow reports whether a field is part of another one of the set.
func isBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	for i := 1; i < len(path); i++ {
		if set.Has(path[:i]) {
			return true
		}
	}
	return false
}

// managerOf is who owns a field, the last one to write it; empty: nobody. Slipway's own come
// last.
func managerOf(object client.Object, path fieldpath.Path) string {
	var last *metav1.ManagedFieldsEntry
	entries := object.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		set := setOf(entry)
		if set == nil || !set.Has(path) {
			continue
		}
		ours := strings.HasPrefix(entry.Manager, ownManagers)
		switch {
		case last == nil, strings.HasPrefix(last.Manager, ownManagers) && !ours:
			last = entry
		case !ours && last.Time.Before(entry.Time):
			last = entry
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}

// FieldName writes the path of a field as one reads it, such as
// spec.template.spec.containers[app].image. It holds keys and no values of fields that are
// none.
func FieldName(path fieldpath.Path) string {
	text := &strings.Builder{}
	for _, element := range path {
		switch {
		case element.FieldName != nil && strings.ContainsAny(*element.FieldName, "./"):
			fmt.Fprintf(text, "[%s]", *element.FieldName)
		case element.FieldName != nil:
			if text.Len() > 0 {
				text.WriteByte('.')
			}
			text.WriteString(*element.FieldName)
		case element.Key != nil:
			var keys []string
			for _, key := range *element.Key {
				keys = append(keys, fmt.Sprint(key.Value.Unstructured()))
			}
			fmt.Fprintf(text, "[%s]", strings.Join(keys, "/"))
		case element.Value != nil:
			fmt.Fprintf(text, "[%v]", (*element.Value).Unstructured())
		case element.Index != nil:
			fmt.Fprintf(text, "[%d]", *element.Index)
		}
	}
	return text.String()
}
