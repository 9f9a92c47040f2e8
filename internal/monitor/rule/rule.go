package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Rule is a compiled MonitorRule. It is never changed, and safe for concurrent use.
type Rule struct {
	// Name, UID and Generation are those of the MonitorRule.
	Name       string
	UID        types.UID
	Generation int64
	// Severity, Event and Webhooks are for the alarms that it raises.
	Severity slipwayv1alpha1.MonitorSeverity
	Event    bool
	Webhooks []string
	// Suspended reports whether it raises none.
	Suspended bool

	kinds                     []slipwayv1alpha1.MonitoredKind
	namespaces, notNamespaces []string
	// labels is nil if it selects all.
	labels labels.Selector

	// when and message are nil if there are none.
	when, message *expression
	// wait is how long it has to hold.
	wait time.Duration
	// At most one of these is set.
	changes *changesRule
	fight   *fightRule
	stuck   *stuckRule

	// print identifies what it looks for. With another, what was found before does not count.
	print string
	// aboutChange reports whether an expression reads what changed: then it is about a change, and not about a state.
	aboutChange bool
	// looks reports whether time alone may change what an expression says.
	looks bool
	// reads reports whether an expression reads the object, so that it cannot be evaluated without its content.
	reads bool
}

type changesRule struct {
	count  int
	window time.Duration
	paths  []string
}

type fightRule struct {
	turns  int
	window time.Duration
}

type stuckRule struct {
	after      time.Duration
	finalizers []string
}

// finish fills in what follows from the rest.
func (r *Rule) finish(spec *slipwayv1alpha1.MonitorRuleSpec) {
	text, _ := json.Marshal([]any{spec.When, spec.Changes, spec.Fight, spec.StuckDeletion}) // of texts and numbers: never fails
	sum := sha256.Sum256(text)
	r.print = hex.EncodeToString(sum[:6])
	r.aboutChange = r.when.reads(varChanges) || r.when.reads(varOld)
	r.looks = r.when.reads(varNow)
	r.reads = r.when.reads(varObject) || r.when.reads(varOld) || r.when.reads(varHealth)
}

// reads reports whether an expression reads a variable. None reads nothing.
func (e *expression) reads(variable string) bool { return e != nil && e.uses[variable] }

// IsAbout reports whether a rule is about a kind.
func (r *Rule) IsAbout(group, kind string) bool {
	if len(r.kinds) == 0 {
		return true
	}
	for _, k := range r.kinds {
		if glob(k.Group, group) && glob(k.Kind, kind) {
			return true
		}
	}
	return false
}

// inNamespace reports whether a rule is about a namespace, which is empty for an object that has none.
func (r *Rule) inNamespace(namespace string) bool {
	if len(r.namespaces) > 0 && (namespace == "" || !anyGlob(r.namespaces, namespace)) {
		return false
	}
	return namespace == "" || !anyGlob(r.notNamespaces, namespace)
}

// counts reports whether a field is one whose changes count.
func (c *changesRule) counts(path string) bool {
	if len(c.paths) == 0 {
		return true
	}
	for _, p := range c.paths {
		if covers(p, path) {
			return true
		}
	}
	return false
}

// names reports whether a finalizer is one that the rule is about.
func (s *stuckRule) names(finalizer string) bool {
	return len(s.finalizers) == 0 || anyGlob(s.finalizers, finalizer)
}

// sentence is the text of an alarm for which the rule has none.
func (r *Rule) sentence(s *state, health string) string {
	var parts []string
	switch {
	case r.when != nil && r.when.reads(varHealth) && health != "":
		parts = append(parts, health)
	case r.when != nil:
		parts = append(parts, "this holds: "+cut(r.when.text, 300))
	}
	switch {
	case r.changes != nil:
		parts = append(parts, fmt.Sprintf("changed at least %d times within %s", r.changes.count, inWords(r.changes.window)))
	case r.fight != nil:
		path, managers := s.fighters(r.fight)
		parts = append(parts, fmt.Sprintf("%s is rewritten in turn by %s", path, managers))
	case r.stuck != nil:
		parts = append(parts, fmt.Sprintf("is being deleted, and held by the finalizer %s", quoteAll(s.Held)))
	}
	text := strings.Join(parts, "; ")
	switch {
	case r.stuck != nil:
		text += fmt.Sprintf(", for more than %s", inWords(r.stuck.after+r.wait))
	case r.wait > 0:
		text += fmt.Sprintf(", for at least %s", inWords(r.wait))
	}
	return Text(text)
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, " and ")
}

// inWords writes 10m, where time.Duration writes 10m0s.
func inWords(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
