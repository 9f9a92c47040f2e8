package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// What a comparison gives at most. What is more is left out, and the comparison is truncated.
const (
	// MaxFields is the number of fields.
	MaxFields = 500
	// MaxFieldValue is the size of one value in bytes.
	MaxFieldValue = 16 << 10
	// maxAllValues is the size of all values of a comparison in bytes.
	maxAllValues = 256 << 10
)

// Compare finds the fields in which two states of an object differ. They are in the order of their paths: names by the alphabet,
// items by their number or key. If one of the states has the metadata only, only the metadata is compared.
//
// It is truncated if fields are missing, or if the value of a field is: then it is nil, although the field was not added or
// removed. Of what is not truncated, Patch makes after of before.
func Compare(before, after *State, s *Schema) (fields []Field, truncated bool, err error) {
	old, err := decode(string(before.Body))
	if err != nil {
		return nil, false, fmt.Errorf("the state before the change cannot be read: %w", err)
	}
	now, err := decode(string(after.Body))
	if err != nil {
		return nil, false, fmt.Errorf("the state after the change cannot be read: %w", err)
	}
	if old.typ != objectNode || now.typ != objectNode {
		return nil, false, errors.New("a state is not an object")
	}
	if before.MetadataOnly || after.MetadataOnly {
		keepMetadata(&old)
		keepMetadata(&now)
	}
	c := comparer{}
	c.objects(&old, &now, s)
	return c.fields, c.truncated, nil
}

func keepMetadata(root *node) {
	root.nodes = slices.DeleteFunc(root.nodes, func(n node) bool { return n.key != "metadata" })
}

type comparer struct {
	path      []byte
	fields    []Field
	size      int
	truncated bool
}

// values compares two values of one field.
func (c *comparer) values(old, now *node, name string, s *Schema) {
	switch {
	case old.typ == objectNode && now.typ == objectNode:
		c.objects(old, now, s)
	case old.typ == listNode && now.typ == listNode:
		if !old.equal(now) {
			c.lists(old, now, name, s)
		}
	case !old.equal(now):
		c.add(Changed, old, now)
	}
}

func (c *comparer) objects(old, now *node, s *Schema) {
	i, j := 0, 0
	for i < len(old.nodes) || j < len(now.nodes) {
		length := len(c.path)
		switch {
		case j == len(now.nodes) || i < len(old.nodes) && old.nodes[i].key < now.nodes[j].key:
			c.path = appendName(c.path, old.nodes[i].key)
			c.add(Removed, &old.nodes[i], nil)
			i++
		case i == len(old.nodes) || old.nodes[i].key > now.nodes[j].key:
			c.path = appendName(c.path, now.nodes[j].key)
			c.add(Added, nil, &now.nodes[j])
			j++
		default:
			name := now.nodes[j].key
			c.path = appendName(c.path, name)
			c.values(&old.nodes[i], &now.nodes[j], name, s.field(name))
			i++
			j++
		}
		c.path = c.path[:length]
	}
}

// lists compares two lists that differ.
func (c *comparer) lists(old, now *node, name string, s *Schema) {
	how := shapeOf(name, s, old, now)
	switch how.typ {
	case asWhole:
		c.add(Changed, old, now)
	case byIndex:
		c.byIndex(old, now, name, s)
	default:
		c.byKeys(old, now, how, name, s)
	}
}

// byKeys compares the items that have the same keys, and then the order.
func (c *comparer) byKeys(old, now *node, how shape, name string, s *Schema) {
	oldKeys, _ := how.itemKeys(old)
	nowKeys, _ := how.itemKeys(now)
	oldAt, nowAt := positions(oldKeys), positions(nowKeys)
	all := slices.Concat(oldKeys, nowKeys)
	slices.Sort(all)
	for _, key := range slices.Compact(all) {
		length := len(c.path)
		c.path = append(append(append(c.path, '['), key...), ']')
		i, was := oldAt[key]
		j, is := nowAt[key]
		switch {
		case !is:
			c.add(Removed, &old.nodes[i], nil)
		case !was:
			c.add(Added, nil, &now.nodes[j])
		default:
			c.values(&old.nodes[i], &now.nodes[j], name, s.item())
		}
		c.path = c.path[:length]
	}
	if how.sorted || slices.Equal(expectedOrder(oldKeys, nowKeys, oldAt, nowAt), nowKeys) {
		return
	}
	c.path = append(c.path, '[', ']')
	c.add(Changed, keyList(oldKeys), keyList(nowKeys))
	c.path = c.path[:len(c.path)-2]
}

func positions(keys []string) map[string]int {
	result := make(map[string]int, len(keys))
	for i, key := range keys {
		result[key] = i
	}
	return result
}

// expectedOrder is the order of a list if nobody changed it: what was there remains where it was, and what is new comes last.
func expectedOrder(oldKeys, nowKeys []string, oldAt, nowAt map[string]int) []string {
	result := make([]string, 0, len(nowKeys))
	for _, key := range oldKeys {
		if _, is := nowAt[key]; is {
			result = append(result, key)
		}
	}
	kept := len(result)
	for _, key := range nowKeys {
		if _, was := oldAt[key]; !was {
			result = append(result, key)
		}
	}
	slices.Sort(result[kept:])
	return result
}

func keyList(keys []string) *node {
	result := &node{typ: listNode}
	for _, key := range keys {
		result.nodes = append(result.nodes, stringValue("", key))
	}
	return result
}

// byIndex compares the items of lists that nothing tells apart. Those that are the same stay what they are, wherever they went.
func (c *comparer) byIndex(old, now *node, name string, s *Schema) {
	i, j := 0, 0
	for _, p := range align(old.nodes, now.nodes) {
		for ; i < p.old && j < p.now; i, j = i+1, j+1 {
			c.indexed(j, &old.nodes[i], &now.nodes[j], name, s)
		}
		for ; i < p.old; i++ {
			c.indexed(i, &old.nodes[i], nil, name, s)
		}
		for ; j < p.now; j++ {
			c.indexed(j, nil, &now.nodes[j], name, s)
		}
		i, j = p.old+1, p.now+1
	}
}

func (c *comparer) indexed(index int, old, now *node, name string, s *Schema) {
	length := len(c.path)
	c.path = append(strconv.AppendInt(append(c.path, '['), int64(index), 10), ']')
	switch {
	case now == nil:
		c.add(Removed, old, nil)
	case old == nil:
		c.add(Added, nil, now)
	default:
		c.values(old, now, name, s.item())
	}
	c.path = c.path[:length]
}

// add notes a field that differs, unless there are too many.
func (c *comparer) add(op Op, old, now *node) {
	if len(c.fields) == MaxFields || len(c.path) > maxPath {
		c.truncated = true
		return
	}
	// A value that is hidden now and was not before comes from a time when the policy hid less.
	if text, ok := now.str(); ok && IsRedacted(text) && old != nil && !isHidden(old) {
		hidden := stringValue("", Redacted)
		old = &hidden
	}
	c.fields = append(c.fields, Field{Path: string(c.path), Op: op, Old: c.json(old), New: c.json(now)})
}

func isHidden(n *node) bool {
	text, ok := n.str()
	return ok && (text == "" || IsRedacted(text))
}

// json writes a value, nil if it is too large.
func (c *comparer) json(n *node) json.RawMessage {
	if n == nil {
		return nil
	}
	value := n.encode(nil)
	if len(value) > MaxFieldValue || c.size+len(value) > maxAllValues {
		c.truncated = true
		return nil
	}
	c.size += len(value)
	return value
}
