package apply

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// comparison compares what is desired with what is there, guided by the fields that the
// field manager owns. They tell what a schema would: how a list's items are found again
// (their keys, wherever they stand), and which values are one indivisible thing (the
// leaves). Desired items have to be there in the desired order, which decides for example
// which environment variable may refer to which; applying restores it. Unlike a comparison
// by schema it allocates next to nothing, and reads nothing but the owned fields of a large
// object.
type comparison struct{ allocator value.Allocator }

// identity is in every configuration, and no field manager owns it.
var identity = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
)

// same reports whether the desired fields are exactly the owned ones and have the values
// that are there. ignored are desired fields that nobody owns.
func (c comparison) same(owned, ignored *fieldpath.Set, desired, live value.Value) bool {
	switch {
	case desired.IsMap() && live.IsMap():
		return c.sameFields(owned, ignored, desired, live)
	case desired.IsList() && live.IsList():
		return c.sameItems(owned, desired, live)
	default:
		return false
	}
}

func (c comparison) sameFields(owned, ignored *fieldpath.Set, desired, live value.Value) bool {
	desiredMap, liveMap := desired.AsMapUsing(c.allocator), live.AsMapUsing(c.allocator)
	defer c.allocator.Free(desiredMap)
	defer c.allocator.Free(liveMap)
	same := desiredMap.IterateUsing(c.allocator, func(name string, want value.Value) bool {
		element := fieldpath.PathElement{FieldName: &name}
		if ignored != nil && ignored.Members.Has(element) {
			return true
		}
		is, ok := liveMap.GetUsing(c.allocator, name)
		if !ok {
			return isEmptyString(want) && owned.Members.Has(element)
		}
		defer c.allocator.Free(is)
		children, ok := owned.Children.Get(element)
		ignoredChildren := childrenOf(ignored, element)
		switch {
		case ok:
			return c.same(children, ignoredChildren, want, is)
		case ignoredChildren != nil:
			return c.same(&fieldpath.Set{}, ignoredChildren, want, is)
		default:
			return owned.Members.Has(element) && c.sameLeaf(want, is)
		}
	})
	return same && ownedElements(owned, func(element fieldpath.PathElement) bool {
		return element.FieldName != nil && desiredMap.Has(*element.FieldName)
	})
}

func childrenOf(set *fieldpath.Set, element fieldpath.PathElement) *fieldpath.Set {
	if set == nil {
		return nil
	}
	children, _ := set.Children.Get(element)
	return children
}

// sameItems compares the items of a list that several may own items of: each desired
// item is an owned one, and the other way round, and they are in the desired order.
func (c comparison) sameItems(owned *fieldpath.Set, desired, live value.Value) bool {
	desiredList, liveList := desired.AsListUsing(c.allocator), live.AsListUsing(c.allocator)
	defer c.allocator.Free(desiredList)
	defer c.allocator.Free(liveList)
	places := make([]int, desiredList.Length())
	items := 0
	same := ownedElements(owned, func(element fieldpath.PathElement) bool {
		items++
		at, is := c.find(desiredList, element, true), c.find(liveList, element, false)
		if at < 0 || is < 0 {
			return false
		}
		places[at] = is
		if children, ok := owned.Children.Get(element); ok {
			return c.same(children, nil, desiredList.At(at), liveList.At(is))
		}
		return c.sameLeaf(desiredList.At(at), liveList.At(is))
	})
	return same && items == len(places) && slices.IsSorted(places)
}

// find returns the place of the item of a list that a path element means, or -1. A key
// that has a default may be left out of a desired item.
func (c comparison) find(list value.List, element fieldpath.PathElement, mayOmit bool) int {
	for i := range list.Length() {
		item := list.At(i)
		switch {
		case element.Value != nil && value.Equals(item, *element.Value):
			return i
		case element.Key != nil && item.IsMap() && hasKeys(item.AsMap(), *element.Key, mayOmit):
			return i
		}
	}
	return -1
}

func hasKeys(item value.Map, keys value.FieldList, mayOmit bool) bool {
	for _, key := range keys {
		is, ok := item.Get(key.Name)
		if (!ok && !mayOmit) || (ok && !value.Equals(is, key.Value)) {
			return false
		}
	}
	return true
}

// sameLeaf compares indivisible values. A desired empty map asks only that there be one:
// what it holds has other owners, or none.
func (c comparison) sameLeaf(desired, live value.Value) bool {
	switch {
	case desired.IsMap() && desired.AsMap().Empty():
		return live.IsMap()
	case desired.IsMap(), desired.IsList():
		// Not as the Go types that they are: a configuration's are never those of an object.
		return value.EqualsUsing(c.allocator, value.NewValueInterface(desired.Unstructured()), live)
	default:
		return value.EqualsUsing(c.allocator, desired, live)
	}
}

// isEmptyString tells a desired value that the API server keeps by leaving the field out,
// as it does with the value of an environment variable.
func isEmptyString(desired value.Value) bool {
	return desired.IsString() && desired.AsString() == ""
}

// ownedElements calls do with every element that is owned, whole or in part, until it
// returns false, and reports whether it never did.
func ownedElements(owned *fieldpath.Set, do func(fieldpath.PathElement) bool) bool {
	ok := true
	owned.Children.Iterate(func(element fieldpath.PathElement) {
		ok = ok && do(element)
	})
	owned.Members.Iterate(func(element fieldpath.PathElement) {
		if _, counted := owned.Children.Get(element); !counted {
			ok = ok && do(element)
		}
	})
	return ok
}
