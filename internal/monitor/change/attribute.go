package change

import (
	"cmp"
	"slices"
	"strings"
)

// managedFields is where an actor is from that was concluded.
const managedFields = "managedFields"

// Attribute concludes who made a change from what managedFields say before and after it. Before is nil if the object was created.
//
// Who changes the value of a field owns it afterwards. So those are likely who own a field that was added or changed, and of whom
// the entry is new or changed; if there are none, because the entry only says the second of the last write, those who own it. A
// field that was removed has no owner. There those are likely who owned it, and wrote at the same time.
//
// The first of several is who owns most fields most exactly. A manager is the name of a program, so nobody is ever Exact. Fields that
// nobody owns (by default values, for example) are nobody's.
func Attribute(before, after *State, fields []Field) Actor {
	owners := readOwners(after)
	if len(owners) == 0 {
		return Actor{Confidence: Unknown}
	}
	if before == nil {
		return attributeCreation(owners)
	}
	old := readOwners(before)
	for i := range owners {
		owners[i].compare(old)
	}
	for _, f := range fields {
		steps, err := parsePath(f.Path)
		if err != nil {
			continue
		}
		for i := range owners {
			owners[i].claim(f.Op, steps)
		}
	}
	writers := slices.DeleteFunc(slices.Clone(owners), func(o owner) bool { return o.claims == 0 || !o.wrote })
	if len(writers) == 0 {
		writers = slices.DeleteFunc(owners, func(o owner) bool { return o.current == 0 })
	}
	slices.SortStableFunc(writers, byClaims)
	return actor(writers)
}

// attributeCreation takes who wrote first, and the object itself rather than its status.
func attributeCreation(owners []owner) Actor {
	slices.SortStableFunc(owners, func(a, b owner) int {
		return cmp.Or(strings.Compare(a.subresource, b.subresource), strings.Compare(a.time, b.time), strings.Compare(a.manager, b.manager))
	})
	first := owners[0].time
	return actor(slices.DeleteFunc(owners, func(o owner) bool { return o.time != first }))
}

// byClaims puts who owns most of a change, and most exactly, first.
func byClaims(a, b owner) int {
	return cmp.Or(cmp.Compare(b.claims, a.claims), cmp.Compare(b.depth, a.depth), strings.Compare(b.time, a.time),
		strings.Compare(a.manager, b.manager))
}

// actor names the first of those who may have written, and the others.
func actor(writers []owner) Actor {
	if len(writers) == 0 {
		return Actor{Confidence: Unknown}
	}
	first := writers[0]
	result := Actor{
		Name: first.manager, Operation: first.operation, Subresource: first.subresource, Confidence: Likely, Source: managedFields,
	}
	for _, o := range writers[1:] {
		if o.manager != first.manager && !slices.Contains(result.Others, o.manager) {
			result.Others = append(result.Others, o.manager)
		}
	}
	return result
}

// owner is an entry of managedFields.
type owner struct {
	manager, operation, subresource, apiVersion, time string
	fields                                            *node
	// before is the entry as it was, nil if it is new.
	before *owner
	// wrote reports whether the entry is new or changed.
	wrote bool
	// claims counts the fields that changed and may be by this owner; current counts those that it owns now. Depth is how
	// exactly it owns them.
	claims, current, depth int
}

// maxOwners is how many entries are looked at. The API server keeps ten of managers that update.
const maxOwners = 100

func readOwners(s *State) []owner {
	root, err := decode(string(s.Managers))
	if err != nil || root.typ != listNode {
		return nil
	}
	var owners []owner
	for i := range root.nodes[:min(len(root.nodes), maxOwners)] {
		entry := &root.nodes[i]
		fields := entry.member("fieldsV1")
		if fields == nil || entry.memberText("manager") == "" {
			continue
		}
		owners = append(owners, owner{
			manager: entry.memberText("manager"), operation: entry.memberText("operation"),
			subresource: entry.memberText("subresource"), apiVersion: entry.memberText("apiVersion"),
			time: entry.memberText("time"), fields: fields,
		})
	}
	return owners
}

// compare finds the entry as it was before. Fewer fields at the same time are no sign of a write: somebody else took them over.
func (o *owner) compare(old []owner) {
	for i := range old {
		was := &old[i]
		if was.manager == o.manager && was.operation == o.operation && was.subresource == o.subresource &&
			was.apiVersion == o.apiVersion {
			o.before = was
			o.wrote = was.time != o.time || hasMore(o.fields, was.fields)
			return
		}
	}
	o.wrote = true
}

// hasMore reports whether a set of fields has one that another has not.
func hasMore(fields, than *node) bool {
	for i := range fields.nodes {
		other := than.member(fields.nodes[i].key)
		if other == nil || hasMore(&fields.nodes[i], other) {
			return true
		}
	}
	return false
}

// claim counts a field that changed if it may be by this owner.
func (o *owner) claim(op Op, steps []step) {
	if op != Removed {
		if depth := owns(o.fields, steps); depth > 0 {
			o.claims++
			o.current++
			o.depth += depth
		}
		return
	}
	if o.before == nil {
		return
	}
	if depth := owns(o.before.fields, steps); depth > 0 {
		o.claims++
		o.depth += depth
	}
}

// owns tells how exactly a set of fields covers a path, 0 if not at all: how many steps of it stand in the set. Who owns a value as a
// whole owns what is below, and who owns a part of a value that was added owns that.
func owns(fields *node, steps []step) int {
	depth := 0
	for _, s := range steps {
		if s.typ == orderStep {
			return depth
		}
		next := ownedBy(fields, s)
		if next == nil {
			if depth > 0 && isLeaf(fields) {
				return depth
			}
			return 0
		}
		fields = next
		depth++
	}
	return depth
}

// isLeaf reports whether a value is owned as a whole: nothing is said about what is below.
func isLeaf(fields *node) bool { return len(fields.nodes) == 0 }

func ownedBy(fields *node, s step) *node {
	switch s.typ {
	case nameStep:
		return fields.member("f:" + s.name)
	case valueStep:
		return fields.member("v:" + s.value.canonical())
	case keysStep:
		return ownedItem(fields, s.keys)
	}
	return nil
}

// maxSearch is how many items are looked at to find one whose keys are not quite the same.
const maxSearch = 64

// ownedItem finds an item by its keys. The API server may know it by others, if the schema was not at hand: then those count that
// both have.
func ownedItem(fields *node, keys []node) *node {
	exact := node{typ: objectNode, nodes: keys}
	if item := fields.member("k:" + exact.canonical()); item != nil {
		return item
	}
	for i := range fields.nodes[:min(len(fields.nodes), maxSearch)] {
		text, found := strings.CutPrefix(fields.nodes[i].key, "k:")
		if !found {
			continue
		}
		item, err := decode(text)
		if err == nil && sameItem(&item, keys) {
			return &fields.nodes[i]
		}
	}
	return nil
}

func sameItem(item *node, keys []node) bool {
	common := 0
	for i := range keys {
		value := item.member(keys[i].key)
		if value == nil {
			continue
		}
		if !value.equal(&keys[i]) {
			return false
		}
		common++
	}
	return common > 0
}
