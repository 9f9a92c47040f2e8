package change

import (
	"slices"
	"strings"
)

// shape is how items of a list are told apart.
type shape struct {
	typ shapeType
	// keys are the members that tell items apart, in their order.
	keys []string
	// sorted reports whether the order of the items means nothing. They are then in the order of their keys.
	sorted bool
}

type shapeType uint8

const (
	// byIndex: an item is where it is.
	byIndex shapeType = iota
	// asWhole: the list is one value.
	asWhole
	// byValue: an item is its value.
	byValue
	// byKeys: an item is what its keys say.
	byKeys
)

// knownKeys are the keys of lists of which the order means nothing, by name, for when the schema does not say.
var knownKeys = map[string][]string{
	"conditions":                 {"type"},
	"ownerReferences":            {"uid"},
	"imagePullSecrets":           {"name"},
	"volumes":                    {"name"},
	"volumeMounts":               {"mountPath"},
	"containerStatuses":          {"name"},
	"initContainerStatuses":      {"name"},
	"ephemeralContainerStatuses": {"name"},
}

// ordered are lists of which the order means something, although schemas call them maps: one after the other is run, or may use
// the one before.
var ordered = map[string]bool{"initContainers": true, "env": true, "steps": true, "tasks": true}

var (
	nameKey       = []string{"name"}
	referenceKeys = []string{"apiVersion", "group", "kind", "name", "namespace"}
)

// kindOfList says what the schema and the name of a list tell, without a look at its items.
func kindOfList(name string, s *Schema) shape {
	list := listUnknown
	if s != nil {
		list = s.list
	}
	switch {
	case list == listMap:
		return shape{typ: byKeys, keys: s.keys, sorted: !ordered[name]}
	case list == listSet, list == listUnknown && name == "finalizers":
		return shape{typ: byValue, sorted: true}
	case strings.HasSuffix(name, "Refs"), strings.HasSuffix(name, "References") && name != "ownerReferences":
		return shape{typ: byKeys, keys: referenceKeys, sorted: true}
	case list == listAtomic:
		return shape{typ: asWhole}
	case knownKeys[name] != nil:
		return shape{typ: byKeys, keys: knownKeys[name], sorted: true}
	}
	return shape{typ: byKeys, keys: nameKey}
}

// shapeOf says how the items of lists, which are one field at several times, are told apart. What its name or schema promises must
// be true of all of them: no two items are then the same.
func shapeOf(name string, s *Schema, lists ...*node) shape {
	result := kindOfList(name, s)
	if result.typ != byKeys && result.typ != byValue {
		return result
	}
	for _, list := range lists {
		if _, ok := result.itemKeys(list); !ok {
			return result.otherwise(s)
		}
	}
	return result
}

// otherwise is the shape of a list that is not what it promises.
func (s shape) otherwise(schema *Schema) shape {
	if schema != nil && schema.list == listAtomic {
		return shape{typ: asWhole}
	}
	return shape{typ: byIndex}
}

// itemKeys returns what stands between the brackets of each item's path, false unless that tells all items apart.
func (s shape) itemKeys(list *node) ([]string, bool) {
	keys := make([]string, len(list.nodes))
	for i := range list.nodes {
		key, ok := s.itemKey(&list.nodes[i])
		if !ok {
			return nil, false
		}
		keys[i] = key
	}
	if slices.IsSortedFunc(keys, strings.Compare) {
		for i := 1; i < len(keys); i++ {
			if keys[i] == keys[i-1] {
				return nil, false
			}
		}
		return keys, true
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			return nil, false
		}
		seen[key] = true
	}
	return keys, true
}

func (s shape) itemKey(item *node) (string, bool) {
	if s.typ == byValue {
		return string(item.encode([]byte{'='})), true
	}
	if item.typ != objectNode {
		return "", false
	}
	var key []byte
	for _, name := range s.keys {
		value := item.member(name)
		if value == nil {
			continue
		}
		if !value.isScalar() || value.typ == nullNode {
			return "", false
		}
		if len(key) > 0 {
			key = append(key, ',')
		}
		key = value.encode(append(appendKeyName(key, name), '='))
	}
	return string(key), len(key) > 0
}

// arrange puts the items of a list into the order of their keys if theirs means nothing. It returns a digest of the order they
// had, 0 if it was the same.
func arrange(list *node, name string, s *Schema) uint64 {
	kind := kindOfList(name, s)
	if !kind.sorted || len(list.nodes) < 2 {
		return 0
	}
	keys, ok := kind.itemKeys(list)
	if !ok || slices.IsSortedFunc(keys, strings.Compare) {
		return 0
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	items := make([]node, len(order))
	digest := uint64(hashStart)
	for to, from := range order {
		items[to] = list.nodes[from]
		digest = hashNumber(digest, from)
	}
	list.nodes = items
	return digest
}

// arrangeAll puts all lists of a value into canonical order.
func arrangeAll(n *node, name string, s *Schema) {
	switch n.typ {
	case objectNode:
		for i := range n.nodes {
			arrangeAll(&n.nodes[i], n.nodes[i].key, s.field(n.nodes[i].key))
		}
	case listNode:
		for i := range n.nodes {
			arrangeAll(&n.nodes[i], name, s.item())
		}
		arrange(n, name, s)
	}
}
