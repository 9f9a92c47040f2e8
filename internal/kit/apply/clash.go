package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// Ports are found again by their number, and their names are unique. Who changes the number
// of a desired port leaves an item of his own that has its name. An apply puts the desired
// one beside it, which the API server refuses.

// update applies to a child that exists. Items of lists that have the name of a desired one
// are taken out of its way, once.
func (a *Applier) update(ctx context.Context, owner client.Object, child Child, desired []byte) error {
	err := a.patchExisting(ctx, owner, child, desired, client.ForceOwnership)
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueDuplicate) {
		claimed, claimErr := a.claimNamesakes(ctx, owner, child)
		switch {
		case claimErr != nil:
			return claimErr
		case claimed:
			err = a.patchExisting(ctx, owner, child, desired, client.ForceOwnership)
		}
	}
	if err != nil {
		return err
	}
	return a.conclude(child, desired)
}

// claimNamesakes makes this field manager the owner, and the only one, of the items that
// have the name of a desired item and another key. It changes nothing else: the next apply
// leaves them out, and so removes them. It reports whether there were any.
func (a *Applier) claimNamesakes(ctx context.Context, owner client.Object, child Child) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kindOf(child.Desired))
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(child.Current), live); err != nil {
		return false, outcome.Classify(subject(child.Desired), err)
	}
	if live.ResourceVersion != child.Current.GetResourceVersion() {
		return false, outcome.StaleCache(subject(child.Desired))
	}
	desired, err := value.NewValueReflect(child.Desired)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", subject(child.Desired), err)
	}
	current, err := value.NewValueReflect(child.Current)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", subject(child.Desired), err)
	}
	all := &fieldpath.Set{}
	for i := range live.ManagedFields {
		if set := setOf(&live.ManagedFields[i]); set != nil {
			all = all.Union(set)
		}
	}
	namesakes := &fieldpath.Set{}
	search := comparison{allocator: value.NewFreelistAllocator()}
	search.namesakes(namesakes, nil, all, desired, current)
	own := a.ownEntry(live)
	if namesakes.Empty() || own == nil {
		return false, nil
	}
	if err := claim(live, own, namesakes); err != nil {
		return false, fmt.Errorf("write the managed fields of %s: %w", subject(child.Desired), err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.ResourceVersion, "managedFields": live.ManagedFields,
	}})
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", subject(child.Desired), err)
	}
	// To read this write again, the client would watch the metadata of the kind, beside the kind
	// itself. Nobody reads it: the apply that follows comes after it.
	err = a.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(a.FieldManager),
		client.DisableReadYourWritesConsistency)
	if err = a.failed(err, owner, child.Current); err != nil {
		return false, outcome.Classify(subject(child.Desired), err)
	}
	return true, nil
}

// claim takes what is in or below the items from the managed fields of all others, and puts
// it into our own.
func claim(object client.Object, own *metav1.ManagedFieldsEntry, items *fieldpath.Set) error {
	ours := setOf(own)
	entries := object.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		set := setOf(entry)
		if entry == own || set == nil {
			continue
		}
		taken := &fieldpath.Set{}
		set.Iterate(func(path fieldpath.Path) {
			if items.Has(path) || isBelow(items, path) {
				taken.Insert(path.Copy())
			}
		})
		if taken.Empty() {
			continue
		}
		ours = ours.Union(taken)
		if err := write(entry, set.Difference(taken)); err != nil {
			return err
		}
	}
	if err := write(own, ours); err != nil {
		return err
	}
	object.SetManagedFields(slices.DeleteFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		set := setOf(&entry)
		return set != nil && set.Empty()
	}))
	return nil
}

func write(entry *metav1.ManagedFieldsEntry, set *fieldpath.Set) error {
	raw, err := set.ToJSON()
	if err != nil {
		return err
	}
	entry.FieldsV1 = &metav1.FieldsV1{}
	return entry.FieldsV1.UnmarshalJSON(bytes.TrimSpace(raw))
}

// namesakes collects the paths of the items that are there, are not desired, and have the
// name of a desired one. owned are the fields below path that anybody owns: they tell the
// keys of lists.
func (c comparison) namesakes(found *fieldpath.Set, path fieldpath.Path, owned *fieldpath.Set, desired, live value.Value) {
	ownedElements(owned, func(element fieldpath.PathElement) bool {
		below := append(path.Copy(), element)
		children, _ := owned.Children.Get(element)
		if children == nil {
			children = &fieldpath.Set{}
		}
		switch {
		case element.FieldName != nil && desired.IsMap() && live.IsMap():
			want, isDesired := desired.AsMap().Get(*element.FieldName)
			is, isThere := live.AsMap().Get(*element.FieldName)
			if isDesired && isThere {
				c.namesakes(found, below, children, want, is)
			}
		case element.Key != nil && desired.IsList() && live.IsList():
			list := desired.AsList()
			at, is := c.find(list, element, true), c.find(live.AsList(), element, false)
			switch {
			case is < 0:
			case at >= 0:
				c.namesakes(found, below, children, list.At(at), live.AsList().At(is))
			case c.hasNamesake(list, live.AsList().At(is)):
				found.Insert(below)
			}
		}
		return true
	})
}

// hasNamesake reports whether an item of the list has the name of this one.
func (c comparison) hasNamesake(list value.List, item value.Value) bool {
	name, ok := item.AsMap().Get("name")
	if !ok {
		return false
	}
	for i := range list.Length() {
		other := list.At(i)
		if !other.IsMap() {
			continue
		}
		if is, ok := other.AsMap().Get("name"); ok && value.EqualsUsing(c.allocator, is, name) {
			return true
		}
	}
	return false
}
