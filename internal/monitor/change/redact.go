package change

import (
	"errors"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/redact"
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
	// coreSecret reports whether the object is a Secret of Kubernetes.
	coreSecret bool

	redacted int64
	noise    []noise
	// doubt reports whether two names became one when they were hidden.
	doubt bool
}

// traits are what an object is, by its members.
type traits struct {
	secret, variable, condition, whole bool
	// pointer reports whether a member with the name key says which, and is none.
	pointer bool
	// item names a key of a Secret or ConfigMap, and the file that it becomes.
	item bool
}

// isCount reports whether a text is a number of a few digits.
func isCount(text string) bool {
	return len(text) <= 4 && strings.Trim(text, "0123456789") == ""
}

// isSwitch reports whether a value turns something on or off.
func isSwitch(n *node) bool {
	return n.text == "0" || n.text == "1" || n.text == "true" || n.text == "false"
}

// isPointer reports whether a member called key says which, because of what is beside it or what the object is called.
func isPointer(n *node, at place) bool {
	return redact.PointsBelow(at.name) || slices.ContainsFunc(n.nodes, func(member node) bool { return redact.PointsBeside(member.key) })
}

func (w *walk) traits(n *node, at place) traits {
	kind := n.memberText("kind")
	apiVersion := n.memberText("apiVersion")
	name := n.memberText("name")
	if name == "" {
		name = n.memberText("key")
	}
	return traits{
		secret:    kind == "Secret" && apiVersion == "v1",
		variable:  name != "" && w.policy.names.Meaning(name).HidesText(),
		condition: at.condition || isCondition(n),
		whole:     kind != "" && apiVersion != "",
		pointer:   n.member("key") != nil && isPointer(n, at),
		item:      at.name == "items" && n.member("path") != nil,
	}
}

// value handles a value. What is above it may have said what it means.
func (w *walk) value(n *node, at place, meaning redact.Meaning) {
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
		if meaning.HidesText() {
			w.hide(n, at)
		}
	case stringNode:
		w.text(n, at, meaning)
	}
}

func (w *walk) text(n *node, at place, meaning redact.Meaning) {
	if at.identity || n.text == "" || redact.IsPath(n.text) {
		return
	}
	if meaning.HidesText() || meaning == redact.File && n.text[0] != '/' || meaning == redact.Doubt && redact.Opaque(n.text) ||
		w.hasSecret(n.text) {
		w.hide(n, at)
	}
}

// hasSecret reports whether a text has a secret in it, also within JSON.
func (w *walk) hasSecret(text string) bool {
	if IsRedacted(text) {
		return false
	}
	if w.policy.names.Holds(text) {
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
	nested.value(&root, place{}, redact.Plain)
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
func (w *walk) namedObject(n *node, at place, meaning redact.Meaning) {
	if meaning < redact.About {
		w.object(n, at, redact.Plain)
		return
	}
	reference, declared := true, at.schema != nil
	for i := range n.nodes {
		key := n.nodes[i].key
		reference = reference && (w.isInnocent(key) || referenceParts[key])
		declared = declared && at.schema.declares(key)
	}
	switch {
	case reference, declared && meaning == redact.Secret:
		w.object(n, at, redact.Secret)
	case declared:
		w.object(n, at, redact.Plain)
	default:
		w.hide(n, at)
	}
}

func (w *walk) isInnocent(name string) bool {
	return innocentNames[name] || w.policy.names.Meaning(name) == redact.Reference
}

// object handles the members of an object. They inherit a meaning, unless they have an innocent one.
func (w *walk) object(n *node, at place, inherited redact.Meaning) {
	traits := w.traits(n, at)
	kept, renamed := n.nodes[:0], false
	for i := range n.nodes {
		member := n.nodes[i]
		next := at.member(member.key)
		next.metadata = traits.whole && member.key == "metadata"
		next.inSchema = at.name == "properties"
		if w.drops(&member, at, next, traits) {
			if member.key == conditionSince && traits.condition {
				n.since = secondsOf(member.text)
			}
			continue
		}
		w.member(&member, next, traits, inherited)
		if w.policy.names.Holds(member.key) {
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

func (w *walk) member(member *node, at place, traits traits, inherited redact.Meaning) {
	switch {
	case traits.secret && (member.key == "data" || member.key == "stringData"),
		traits.variable && (member.key == "value" || member.key == "values") && !isSwitch(member) && !redact.IsPath(member.text):
		w.hide(member, at)
		return
	case member.typ == boolNode || member.typ == nullNode:
		w.value(member, at, redact.Plain)
		return
	}
	meaning := w.policy.names.Meaning(member.key)
	if at.inSchema && member.member("type") != nil {
		meaning = redact.Plain // the name of a field, and what follows says what it looks like
	}
	if member.key == "secrets" && member.typ == stringNode && isCount(member.text) {
		meaning = redact.Plain // of a quota
	}
	if inherited > meaning && !w.isInnocent(member.key) {
		meaning = inherited
	}
	if member.key == "key" && traits.item {
		meaning = redact.Plain // of a Secret or ConfigMap, and path says where to
	}
	if member.key == "key" && !traits.pointer && member.typ == stringNode && len(member.text) > 3 && !strings.Contains(member.text, "/") {
		meaning = redact.Secret
	}
	w.value(member, at, meaning)
}

// drops reports whether a member is left out, and notes it if it is noise.
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

// list handles the items of a list, and hides what is a secret on a command line: what follows a flag that has the name of a secret,
// or what the program before it takes for one.
func (w *walk) list(n *node, at place, meaning redact.Meaning) {
	secret := w.onCommandLine(n)
	found := slices.ContainsFunc(n.nodes, func(item node) bool { return w.isSecretFlag(&item) })
	set := found && kindOfList(at.name, at.schema).typ == byValue
	for i := range n.nodes {
		item := &n.nodes[i]
		next := at.item(i, item)
		if item.typ == stringNode && (set && !strings.HasPrefix(item.text, "--") || secret != nil && secret[i]) {
			w.hide(item, next)
			continue
		}
		w.value(item, next, meaning)
	}
	if digest := arrange(n, at.name, at.schema); digest != 0 {
		w.noise = append(w.noise, noise{path: fold(at.path), value: fold(digest)})
	}
}

// onCommandLine tells which items of a list are or have secrets if they are the words of a command. Nil: none, or there is no flag.
func (w *walk) onCommandLine(n *node) []bool {
	if !slices.ContainsFunc(n.nodes, func(item node) bool { return item.typ == stringNode && strings.HasPrefix(item.text, "-") }) {
		return nil
	}
	secret := make([]bool, len(n.nodes))
	starts := make([]int, 0, len(n.nodes)+1)
	var line strings.Builder
	for i := range n.nodes {
		starts = append(starts, line.Len())
		if item := &n.nodes[i]; item.typ == stringNode {
			line.WriteString(item.text)
		}
		line.WriteByte(' ')
		secret[i] = i > 0 && w.isSecretFlag(&n.nodes[i-1]) && !strings.HasPrefix(n.nodes[i].text, "--")
	}
	for _, span := range w.policy.names.Find(line.String()) {
		first, exact := slices.BinarySearch(starts, span.Start)
		if !exact {
			first--
		}
		for i := first; i < len(starts) && starts[i] < span.End; i++ {
			secret[i] = secret[i] || !IsRedacted(n.nodes[i].text)
		}
	}
	return secret
}

// isSecretFlag reports whether an item of a command line is a flag of which the next item is a secret.
func (w *walk) isSecretFlag(n *node) bool {
	return n.typ == stringNode && strings.HasPrefix(n.text, "-") && len(n.text) < 128 && !strings.ContainsAny(n.text, "= \t\n") &&
		w.policy.names.Meaning(n.text).HidesText()
}

// innocentNames are what references to secrets consist of. Under the name of a secret their values stay.
var innocentNames = map[string]bool{
	"name": true, "namespace": true, "optional": true, "kind": true, "group": true, "apiGroup": true, "apiVersion": true,
	"version": true, "path": true, "audience": true, "expirationSeconds": true, "defaultMode": true, "mode": true, "uid": true,
	"valueFrom": true, "source": true, "type": true,
}

// referenceParts may stand in a reference, too, but with what could be a secret as well as the name of a key.
var referenceParts = map[string]bool{"key": true, "items": true}
