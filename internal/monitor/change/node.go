package change

import (
	"slices"
	"sort"
	"strings"
)

// nodeType is what a node of a JSON document is.
type nodeType uint8

const (
	nullNode nodeType = iota
	boolNode
	numberNode
	stringNode
	objectNode
	listNode
)

// node is a value of a JSON document. A tree of nodes takes a fifth of the memory and time of map[string]any, and keeps numbers
// as they were written.
type node struct {
	// key is the name of a member of an object, empty elsewhere.
	key string
	// text is the value of a string without its escapes, a number as it was written, or the word of a boolean.
	text string
	// nodes are the members of an object in the order of their keys, or the items of a list.
	nodes []node
	typ   nodeType
	// since is what times.go keeps of a condition: it is no part of the value.
	since uint32
}

// member finds a member of an object, nil where there is none.
func (n *node) member(key string) *node {
	if n == nil || n.typ != objectNode {
		return nil
	}
	if i, found := n.search(key); found {
		return &n.nodes[i]
	}
	return nil
}

func (n *node) search(key string) (int, bool) {
	i := sort.Search(len(n.nodes), func(i int) bool { return n.nodes[i].key >= key })
	return i, i < len(n.nodes) && n.nodes[i].key == key
}

// set gives a member of an object a value, in place of the one it had.
func (n *node) set(value node) {
	i, found := n.search(value.key)
	if found {
		n.nodes[i] = value
		return
	}
	n.nodes = slices.Insert(n.nodes, i, value)
}

// remove takes a member out of an object and returns it, nil where there is none.
func (n *node) remove(key string) *node {
	if n == nil || n.typ != objectNode {
		return nil
	}
	i, found := n.search(key)
	if !found {
		return nil
	}
	removed := n.nodes[i]
	n.nodes = slices.Delete(n.nodes, i, i+1)
	return &removed
}

// str is the text of a string, and whether the node is one.
func (n *node) str() (string, bool) {
	if n == nil || n.typ != stringNode {
		return "", false
	}
	return n.text, true
}

// memberText is the text of a member that is a string, empty otherwise.
func (n *node) memberText(key string) string {
	text, _ := n.member(key).str()
	return text
}

func (n *node) isScalar() bool { return n.typ != objectNode && n.typ != listNode }

// equal compares two values; their keys do not matter.
func (n *node) equal(other *node) bool {
	if n.typ != other.typ || n.text != other.text || len(n.nodes) != len(other.nodes) {
		return false
	}
	for i := range n.nodes {
		if n.nodes[i].key != other.nodes[i].key || !n.nodes[i].equal(&other.nodes[i]) {
			return false
		}
	}
	return true
}

// clone copies a value, so that changes of one do not show in the other.
func (n *node) clone() node {
	result := *n
	result.nodes = make([]node, len(n.nodes))
	for i := range n.nodes {
		result.nodes[i] = n.nodes[i].clone()
	}
	return result
}

func compareKeys(a, b node) int { return strings.Compare(a.key, b.key) }

// stringValue is a string under a key.
func stringValue(key, text string) node { return node{key: key, text: text, typ: stringNode} }
