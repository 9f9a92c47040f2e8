package change

import (
	"errors"
	"strings"
)

// maxLevels is how deeply JSON documents in texts of JSON documents are looked into. What is deeper is hidden.
const maxLevels = 3

// walk goes over an object once: it hides secrets, leaves out noise and puts lists into canonical order, from the inside out.
type walk struct {
	policy *Policy
	schema *Schema
	marker marker
	// seed keeps hashes of noise from being guessed.
	seed uint64
	// level counts the texts that are being looked into.
	level int
	// coreSecret tells that the object is a Secret of Kubernetes.
	coreSecret bool

	redacted int64
	noise    []noise
	// doubt tells that two names became one when they were hidden.
	doubt bool
}

// traits are what an object is, by its members.
type traits struct{ secret, variable, condition, whole bool }

func (w *walk) traits(n *node, at place) traits {
	kind := n.memberText("kind")
	apiVersion := n.memberText("apiVersion")
	name := n.memberText("name")
	if name == "" {
		name = n.memberText("key")
	}
	return traits{
		secret:    kind == "Secret" && apiVersion == "v1",
		variable:  name != "" && w.policy.words.meaning(name).hidesText(),
		condition: at.condition || isCondition(n),
		whole:     kind != "" && apiVersion != "",
	}
}

// value handles a value. What is above it may have said what it means.
func (w *walk) value(n *node, at place, meaning nameMeaning) {
	if at.schema != nil && at.schema.secret || ends(at.secret) {
		w.hide(n, at)
		return
	}
	switch n.typ {
	case objectNode:
		w.namedObject(n, at, meaning)
	case listNode:
		w.list(n, at, meaning)
	case numberNode:
		if meaning.hidesText() {
			w.hide(n, at)
		}
	case stringNode:
		w.text(n, at, meaning)
	}
}

func (w *walk) text(n *node, at place, meaning nameMeaning) {
	if at.identity || n.text == "" {
		return
	}
	if meaning.hidesText() || meaning == fileName && n.text[0] != '/' || w.hasSecret(n.text) {
		w.hide(n, at)
	}
}

// hasSecret tells whether a text has a secret in it, also within JSON.
func (w *walk) hasSecret(text string) bool {
	if IsRedacted(text) {
		return false
	}
	if w.policy.words.looksSecret(text) {
		return true
	}
	inner := strings.TrimLeft(text, " \t\r\n")
	if inner == "" || inner[0] != '{' && inner[0] != '[' {
		return false
	}
	root, err := decode(text)
	if err != nil {
		return !errors.Is(err, errSyntax)
	}
	if w.level == maxLevels {
		return true
	}
	nested := walk{policy: w.policy, marker: w.marker, level: w.level + 1}
	nested.value(&root, place{}, plainName)
	return nested.redacted > 0 || nested.doubt
}

// hide puts a hash in the place of a value. Where nothing is, there is nothing to hide.
func (w *walk) hide(n *node, at place) {
	if n.typ == nullNode || n.text == "" && len(n.nodes) == 0 || n.typ == stringNode && IsRedacted(n.text) {
		return
	}
	secret := n.text
	if !n.isScalar() {
		arrangeAll(n, at.name, at.schema)
		secret = n.canonical()
	}
	*n = stringValue(n.key, w.marker.text(secret))
	w.redacted++
}

// namedObject handles an object under a name of that meaning. Under the name of a secret it is a reference to one, an object of
// which the schema names all members, or anything: then even its members' names may be secrets.
func (w *walk) namedObject(n *node, at place, meaning nameMeaning) {
	if meaning < aboutName {
		w.object(n, at, plainName)
		return
	}
	reference, declared := true, at.schema != nil
	for i := range n.nodes {
		key := n.nodes[i].key
		reference = reference && (w.isInnocent(key) || referenceParts[key])
		declared = declared && at.schema.declares(key)
	}
	switch {
	case reference, declared && meaning == secretName:
		w.object(n, at, secretName)
	case declared:
		w.object(n, at, plainName)
	default:
		w.hide(n, at)
	}
}

func (w *walk) isInnocent(name string) bool {
	return innocentNames[name] || w.policy.words.meaning(name) == referenceName
}

// object handles the members of an object. They inherit a meaning, unless they have an innocent one.
func (w *walk) object(n *node, at place, inherited nameMeaning) {
	traits := w.traits(n, at)
	kept, renamed := n.nodes[:0], false
	for i := range n.nodes {
		member := n.nodes[i]
		next := at.member(member.key)
		next.metadata = traits.whole && member.key == "metadata"
		if w.drops(&member, at, next, traits) {
			continue
		}
		w.member(&member, next, traits, inherited)
		if w.policy.words.looksSecret(member.key) {
			member.key = w.marker.text(member.key)
			w.redacted++
			renamed = true
		}
		kept = append(kept, member)
	}
	clear(n.nodes[len(kept):])
	n.nodes = kept
	if renamed && sortMembers(n.nodes) != nil {
		w.doubt = true
	}
}

func (w *walk) member(member *node, at place, traits traits, inherited nameMeaning) {
	switch {
	case traits.secret && (member.key == "data" || member.key == "stringData"),
		traits.variable && (member.key == "value" || member.key == "values"):
		w.hide(member, at)
		return
	case member.typ == boolNode || member.typ == nullNode:
		w.value(member, at, plainName)
		return
	}
	meaning := w.policy.words.meaning(member.key)
	if inherited > meaning && !w.isInnocent(member.key) {
		meaning = inherited
	}
	w.value(member, at, meaning)
}

// drops tells that a member is left out, and notes it if it is noise.
func (w *walk) drops(member *node, at, next place, traits traits) bool {
	switch {
	case member.key == lastApplied:
		w.redacted++
		return true
	case at.metadata && bookkeeping[member.key]:
		if member.key == "managedFields" {
			return true
		}
	case traits.condition && conditionTimes[member.key], noisyKeys[member.key], ends(next.noise):
	default:
		return false
	}
	w.noise = append(w.noise, noise{path: fold(next.path), value: fold(hashText(w.seed, member.canonical()))})
	return true
}

// list handles the items of a list, and hides what follows a flag that has the name of a secret.
func (w *walk) list(n *node, at place, meaning nameMeaning) {
	flags := make([]bool, 0, 16)
	found := false
	for i := range n.nodes {
		flag := w.isSecretFlag(&n.nodes[i])
		found = found || flag
		flags = append(flags, flag)
	}
	set := found && kindOfList(at.name, at.schema).typ == byValue
	for i := range n.nodes {
		item := &n.nodes[i]
		next := at.item(i, item)
		if item.typ == stringNode && !strings.HasPrefix(item.text, "--") && (set || i > 0 && flags[i-1]) {
			w.hide(item, next)
			continue
		}
		w.value(item, next, meaning)
	}
	if digest := arrange(n, at.name, at.schema); digest != 0 {
		w.noise = append(w.noise, noise{path: fold(at.path), value: fold(digest)})
	}
}

// isSecretFlag tells that an item of a command line is a flag of which the next item is a secret.
func (w *walk) isSecretFlag(n *node) bool {
	return n.typ == stringNode && strings.HasPrefix(n.text, "-") && len(n.text) < 128 && !strings.ContainsAny(n.text, "= \t\n") &&
		w.policy.words.meaning(n.text).hidesText()
}
