package change

import (
	"errors"
	"slices"
	"unicode/utf8"
)

// What is read at most. An object of the API server is far from each: it refuses requests over 3 MiB, and etcd keeps 1.5 MiB.
const (
	// MaxBytes is the size of an object's JSON.
	MaxBytes = 4 << 20
	// MaxDepth is how deeply lists and objects are nested.
	MaxDepth = 128
	// MaxValues is how many values there are, objects and lists included. Each takes 64 bytes while it is read.
	MaxValues = 250_000
)

// Why an object is not read. The texts hold nothing of the object.
var (
	errSyntax    = errors.New("it is not valid JSON")
	errUnicode   = errors.New("a text in it is not valid Unicode")
	errDuplicate = errors.New("it has a key twice")
	errDeep      = errors.New("it is nested too deeply")
	errMany      = errors.New("it has too many values")
	errLarge     = errors.New("it is too large")
)

// decode reads a JSON document. It is strict, because two readers that understand a document in two ways are how a secret gets
// past a redaction: keys that stand twice, half surrogates and bytes that are not UTF-8 are refused.
func decode(text string) (node, error) {
	if len(text) > MaxBytes {
		return node{}, errLarge
	}
	d := decoder{text: text}
	var root node
	if err := d.value(&root, 0); err != nil {
		return node{}, err
	}
	d.space()
	if d.at != len(text) {
		return node{}, errSyntax
	}
	return root, nil
}

type decoder struct {
	text string
	at   int
	// open holds the children of the lists and objects that are being read. They move to the arena when one ends, so that
	// their number is known.
	open  []node
	arena []node
	count int
}

func (d *decoder) space() {
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// next skips white space and returns the byte after it, 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.at < len(d.text) {
		return d.text[d.at]
	}
	return 0
}

func (d *decoder) value(into *node, depth int) error {
	if d.count++; d.count > MaxValues {
		return errMany
	}
	switch c := d.next(); { //nolint:staticcheck // cases of one byte and of several stand together
	case c == '"':
		into.typ = stringNode
		var err error
		into.text, err = d.string()
		return err
	case c == '{' || c == '[':
		if depth == MaxDepth {
			return errDeep
		}
		return d.container(into, c, depth+1)
	case c == 't':
		return d.word(into, "true", boolNode)
	case c == 'f':
		return d.word(into, "false", boolNode)
	case c == 'n':
		err := d.word(into, "null", nullNode)
		into.text = ""
		return err
	default:
		return d.number(into)
	}
}

func (d *decoder) word(into *node, word string, typ nodeType) error {
	if len(d.text)-d.at < len(word) || d.text[d.at:d.at+len(word)] != word {
		return errSyntax
	}
	d.at += len(word)
	into.typ, into.text = typ, word
	return nil
}

// container reads an object or a list, from its opening bracket.
func (d *decoder) container(into *node, bracket byte, depth int) error {
	into.typ = listNode
	end := byte(']')
	if bracket == '{' {
		into.typ, end = objectNode, '}'
	}
	d.at++
	start := len(d.open)
	for d.next() != end {
		if len(d.open) > start {
			if d.next() != ',' {
				return errSyntax
			}
			d.at++
		}
		var child node
		if into.typ == objectNode {
			if err := d.key(&child); err != nil {
				return err
			}
		}
		if err := d.value(&child, depth); err != nil {
			return err
		}
		d.open = append(d.open, child)
	}
	d.at++
	into.nodes = d.keep(d.open[start:])
	d.open = d.open[:start]
	if into.typ == objectNode {
		return sortMembers(into.nodes)
	}
	return nil
}

func (d *decoder) key(child *node) error {
	if d.next() != '"' {
		return errSyntax
	}
	var err error
	if child.key, err = d.string(); err != nil {
		return err
	}
	if d.next() != ':' {
		return errSyntax
	}
	d.at++
	return nil
}

// keep copies nodes to where they stay.
func (d *decoder) keep(nodes []node) []node {
	if len(nodes) == 0 {
		return nil
	}
	if len(nodes) > cap(d.arena)-len(d.arena) {
		d.arena = make([]node, 0, max(128, len(nodes)))
	}
	start := len(d.arena)
	d.arena = append(d.arena, nodes...)
	return d.arena[start:len(d.arena):len(d.arena)]
}

// sortMembers puts members into the order of their keys, and refuses a key that stands twice.
func sortMembers(members []node) error {
	if !slices.IsSortedFunc(members, compareKeys) {
		slices.SortStableFunc(members, compareKeys)
	}
	for i := 1; i < len(members); i++ {
		if members[i].key == members[i-1].key {
			return errDuplicate
		}
	}
	return nil
}

// number reads a number as RFC 8259 writes it.
func (d *decoder) number(into *node) error {
	start := d.at
	if d.at < len(d.text) && d.text[d.at] == '-' {
		d.at++
	}
	leading := d.at
	digits := d.digits()
	if digits == 0 || digits > 1 && d.text[leading] == '0' {
		return errSyntax
	}
	if d.at < len(d.text) && d.text[d.at] == '.' {
		d.at++
		if d.digits() == 0 {
			return errSyntax
		}
	}
	if d.at < len(d.text) && (d.text[d.at] == 'e' || d.text[d.at] == 'E') {
		d.at++
		if d.at < len(d.text) && (d.text[d.at] == '+' || d.text[d.at] == '-') {
			d.at++
		}
		if d.digits() == 0 {
			return errSyntax
		}
	}
	into.typ, into.text = numberNode, d.text[start:d.at]
	return nil
}

func (d *decoder) digits() int {
	start := d.at
	for d.at < len(d.text) && d.text[d.at] >= '0' && d.text[d.at] <= '9' {
		d.at++
	}
	return d.at - start
}

// string reads a string from its opening quote. One without escapes is a part of the document and not a copy.
func (d *decoder) string() (string, error) {
	d.at++
	start := d.at
	ascii := byte(0)
	for ; d.at < len(d.text); d.at++ {
		c := d.text[d.at]
		if c == '"' {
			text := d.text[start:d.at]
			d.at++
			if ascii >= utf8.RuneSelf && !utf8.ValidString(text) {
				return "", errUnicode
			}
			return text, nil
		}
		if c == '\\' {
			return d.escaped(start)
		}
		if c < ' ' {
			return "", errSyntax
		}
		ascii |= c
	}
	return "", errSyntax
}
