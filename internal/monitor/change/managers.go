package change

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/redact"
)

// managers reads managedFields, and keeps of them what tells who owns which field. Names of fields stay; what stands for a value,
// in the keys of lists and in the items of sets, is hidden as it is in the object. What is below a secret is left out.
func (w *walk) managers(list *node) []byte {
	if list == nil || list.typ != listNode {
		return nil
	}
	result := node{typ: listNode}
	for i := range list.nodes {
		entry := &list.nodes[i]
		if entry.typ != objectNode {
			continue
		}
		kept := node{typ: objectNode}
		for _, key := range []string{"apiVersion", "fieldsType", "manager", "operation", "subresource", "time"} {
			text := entry.memberText(key)
			if text == "" {
				continue
			}
			if w.hasSecret(text) {
				text = w.marker.text(text)
			}
			kept.set(stringValue(key, text))
		}
		if fields := entry.member("fieldsV1"); fields != nil && fields.typ == objectNode {
			w.fieldSet(fields, w.root())
			kept.set(*fields)
		}
		result.nodes = append(result.nodes, kept)
	}
	if len(result.nodes) == 0 {
		return nil
	}
	return result.encode(nil)
}

// fieldSet handles the fields below one.
func (w *walk) fieldSet(n *node, at place) {
	if at.schema != nil && at.schema.secret || ends(at.secret) {
		n.nodes = nil
		return
	}
	if w.hasSecretFlag(n) {
		n.nodes = nil
		return
	}
	kept := n.nodes[:0]
	for _, field := range n.nodes {
		if w.ownedField(&field, at) {
			kept = append(kept, field)
		}
	}
	clear(n.nodes[len(kept):])
	n.nodes = kept
	if sortMembers(n.nodes) != nil {
		n.nodes = nil
	}
}

// hasSecretFlag reports whether the items of a set are a command line with a secret in it.
func (w *walk) hasSecretFlag(n *node) bool {
	for i := range n.nodes {
		text, found := strings.CutPrefix(n.nodes[i].key, "v:")
		if !found {
			continue
		}
		if value, err := decode(text); err == nil && w.isSecretFlag(&value) {
			return true
		}
	}
	return false
}

// ownedField handles a field with those below, false if it is left out.
func (w *walk) ownedField(field *node, at place) bool {
	if field.typ != objectNode {
		return false
	}
	prefix, text, found := strings.Cut(field.key, ":")
	switch {
	case field.key == ".":
		field.nodes = nil
	case found && prefix == "f":
		w.ownedName(field, text, at)
	case found && prefix == "k":
		return w.keyedField(field, text, at)
	case found && prefix == "v":
		return w.ownedValue(field, text, at)
	case found && prefix == "i":
		w.fieldSet(field, at.item(0, &node{}))
	default:
		return false
	}
	return true
}

func (w *walk) ownedName(field *node, name string, at place) {
	next := at.member(name)
	secretData := w.coreSecret && at.path == hashStart && (name == "data" || name == "stringData")
	// The value of a variable with the name of a secret is one, and its name may not be known here.
	variable := name == "value" || name == "values"
	if name == lastApplied || secretData || variable || w.policy.names.Meaning(name) >= redact.About {
		field.nodes = nil
	} else {
		w.fieldSet(field, next)
	}
	if w.policy.names.Holds(name) {
		field.key = "f:" + w.marker.text(name)
	}
}

// keyedField handles an item of a list that is named by its keys.
func (w *walk) keyedField(field *node, text string, at place) bool {
	keys, err := decode(text)
	if err != nil || keys.typ != objectNode {
		return false
	}
	next := at.item(0, &node{})
	// The keys are a part of the item: what hides them there hides them here.
	w.value(&keys, next, redact.Plain)
	if keys.typ != objectNode {
		return false
	}
	field.key = "k:" + keys.canonical()
	w.fieldSet(field, next)
	return true
}

// ownedValue handles an item of a set.
func (w *walk) ownedValue(field *node, text string, at place) bool {
	value, err := decode(text)
	if err != nil {
		return false
	}
	w.value(&value, at.item(0, &node{}), w.policy.names.Meaning(at.name))
	field.key, field.nodes = "v:"+value.canonical(), nil
	return true
}
