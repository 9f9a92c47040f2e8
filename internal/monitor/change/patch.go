package change

import (
	"errors"
	"fmt"
	"slices"
)

// Patch makes the body after a change of the body before it and the fields that Compare found, by the same schema. It refuses
// fields that do not fit, and those of which a value was left out. The fields of a record that has the metadata only fit nothing
// but the metadata.
func Patch(before []byte, fields []Field, s *Schema) ([]byte, error) {
	root, err := decode(string(before))
	if err != nil {
		return nil, fmt.Errorf("the body before the change cannot be read: %w", err)
	}
	edits := &edit{}
	for i := range fields {
		if err := edits.add(&fields[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", fields[i].Path, err)
		}
	}
	if err := edits.apply(&root, "", s); err != nil {
		return nil, err
	}
	arrangeAll(&root, "", s)
	return root.encode(make([]byte, 0, len(before)+256)), nil
}

var errNoFit = errors.New("a change does not fit the state before it")

// edit is what is done to a value: it gets another, or its members or items are edited.
type edit struct {
	step  step
	op    Op
	value *node
	below []*edit
}

// add puts a field into the tree of edits.
func (e *edit) add(f *Field) error {
	steps, err := parsePath(f.Path)
	if err != nil {
		return err
	}
	if len(steps) == 0 || len(steps) > MaxDepth {
		return errPath
	}
	var value *node
	if f.Op != Removed {
		decoded, err := decode(string(f.New))
		if err != nil {
			return fmt.Errorf("its new value cannot be read: %w", err)
		}
		value = &decoded
	}
	at := e
	for _, s := range steps[:len(steps)-1] {
		at = at.child(s)
	}
	at.below = append(at.below, &edit{step: steps[len(steps)-1], op: f.Op, value: value})
	return nil
}

// child finds the edit of what a step leads to. Fields are in the order of their paths, so it is the last one, if there is one.
func (e *edit) child(s step) *edit {
	if len(e.below) > 0 {
		last := e.below[len(e.below)-1]
		if last.op == "" && last.step.typ == s.typ && last.step.name == s.name && last.step.index == s.index {
			return last
		}
	}
	next := &edit{step: s}
	e.below = append(e.below, next)
	return next
}

// apply edits what is below a value.
func (e *edit) apply(n *node, name string, s *Schema) error {
	if len(e.below) == 0 {
		return nil
	}
	switch {
	case n.typ == objectNode:
		return e.applyMembers(n, s)
	case n.typ != listNode:
		return errNoFit
	case e.below[0].step.typ == indexStep:
		return e.applyIndexed(n, name, s)
	}
	return e.applyKeyed(n, name, s)
}

func (e *edit) applyMembers(n *node, s *Schema) error {
	for _, b := range e.below {
		if b.step.typ != nameStep {
			return errNoFit
		}
		name := b.step.name
		member := n.member(name)
		if (member == nil) != (b.op == Added) {
			return errNoFit
		}
		switch b.op {
		case Removed:
			n.remove(name)
		case "":
			if err := b.apply(member, name, s.field(name)); err != nil {
				return err
			}
		default:
			b.value.key = name
			n.set(*b.value)
		}
	}
	return nil
}

// applyIndexed first removes, by the numbers before the change. What is added and edited has its number after it.
func (e *edit) applyIndexed(n *node, name string, s *Schema) error {
	removed, after := map[int]bool{}, map[int]*edit{}
	added := 0
	for _, b := range e.below {
		index := b.step.index
		switch {
		case b.step.typ != indexStep || index < 0:
			return errNoFit
		case b.op == Removed:
			if removed[index] || index >= len(n.nodes) {
				return errNoFit
			}
			removed[index] = true
			continue
		case after[index] != nil:
			return errNoFit
		case b.op == Added:
			added++
		}
		after[index] = b
	}
	kept := make([]node, 0, len(n.nodes))
	for i := range n.nodes {
		if !removed[i] {
			kept = append(kept, n.nodes[i])
		}
	}
	items, err := mergeIndexed(kept, after, added, name, s)
	n.nodes = items
	return err
}

func mergeIndexed(kept []node, after map[int]*edit, added int, name string, s *Schema) ([]node, error) {
	total := len(kept) + added
	items := make([]node, 0, total)
	done := 0
	for i := range total {
		b := after[i]
		if b != nil && b.op == Added {
			items, done = append(items, *b.value), done+1
			continue
		}
		if len(kept) == 0 {
			return nil, errNoFit
		}
		item := kept[0]
		kept = kept[1:]
		if b != nil {
			done++
			if b.op == Changed {
				item = *b.value
			} else if err := b.apply(&item, name, s.item()); err != nil {
				return nil, err
			}
		}
		items = append(items, item)
	}
	if done != len(after) {
		return nil, errNoFit
	}
	return items, nil
}

// applyKeyed edits the items of a list that are told apart by keys or values. What is added comes last, and then the order is
// edited.
func (e *edit) applyKeyed(n *node, name string, s *Schema) error {
	how := kindOfList(name, s)
	if how.typ != byKeys && how.typ != byValue {
		return errNoFit
	}
	keys, ok := how.itemKeys(n)
	if !ok {
		return errNoFit
	}
	for _, b := range e.below {
		if b.step.typ == orderStep {
			if err := reorder(n, keys, b.value); err != nil {
				return err
			}
			continue
		}
		i := slices.Index(keys, b.step.name)
		if (i < 0) != (b.op == Added) {
			return errNoFit
		}
		switch b.op {
		case Removed:
			n.nodes, keys = slices.Delete(n.nodes, i, i+1), slices.Delete(keys, i, i+1)
		case Added:
			n.nodes, keys = append(n.nodes, *b.value), append(keys, b.step.name)
		case Changed:
			n.nodes[i] = *b.value
		default:
			if err := b.apply(&n.nodes[i], name, s.item()); err != nil {
				return err
			}
		}
	}
	return nil
}

// reorder puts items into the order of a list of their keys.
func reorder(n *node, keys []string, order *node) error {
	if order == nil || order.typ != listNode || len(order.nodes) != len(keys) {
		return errNoFit
	}
	at := positions(keys)
	items := make([]node, 0, len(keys))
	for i := range order.nodes {
		position, found := at[order.nodes[i].text]
		if !found {
			return errNoFit
		}
		delete(at, order.nodes[i].text)
		items = append(items, n.nodes[position])
	}
	n.nodes = items
	return nil
}
