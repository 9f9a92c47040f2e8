package health

import (
	"fmt"
	"slices"
	"time"
)

// Items is a list in a status whose items have conditions of their own. The worst item decides.
type Items struct {
	// Path is the path of the list, such as .status.parents.
	Path string
	// Whole are condition types that every item must have with the status True for the object to be Healthy.
	Whole []string
	// Optional: the list may be empty, and items without conditions do not count.
	Optional bool
}

// commonItems are the lists that kinds of many groups have, as the Gateway API defines them.
func commonItems() []Items {
	return []Items{
		{Path: ".status.parents", Whole: []string{"Accepted"}, Optional: true},
		{Path: ".status.ancestors", Whole: []string{"Accepted"}, Optional: true},
		{Path: ".status.listeners", Optional: true},
	}
}

// byConventions evaluates by conditions, and by words. Where no condition says anything, the words decide alone.
func (s *subject) byConventions() Verdict {
	if value, ok := s.object["status"]; ok && value != nil && s.status == nil {
		return s.unknown(ReasonMalformed, ".status", "its status is no map")
	}
	if !s.hasStatus() {
		return s.noStatus()
	}
	whole, required := s.reading()
	conditions, complete := readConditions(s.status["conditions"], ".status.conditions")
	signals := whole.signals(conditions)
	reported := len(signals) > 0
	more, completeItems := s.itemSignals()
	signals = append(signals, more...)
	complete = complete && completeItems
	if reported {
		signals = append(signals, missing(conditions, required)...)
	}
	words := s.wordSignals()
	if len(signals) == 0 && complete {
		return s.byWords(words)
	}
	// A word cannot tell that something is well of which a condition says otherwise.
	words = slices.DeleteFunc(words, func(w signal) bool { return w.state == Healthy || w.class == ClassPart })
	return s.decide(append(signals, words...), complete)
}

// hasStatus reports whether a controller has written something. A negative observedGeneration is a default of the definition.
func (s *subject) hasStatus() bool {
	observed, ok := number(s.status["observedGeneration"])
	return len(s.status) > 1 || len(s.status) == 1 && (!ok || observed >= 0)
}

// decide makes the verdict of all signals. What was not read to its end is not called Healthy.
func (s *subject) decide(signals []signal, complete bool) Verdict {
	malformed := s.unknown(ReasonMalformed, ".status.conditions", "its conditions are no list, or there are too many")
	if len(signals) == 0 {
		return malformed
	}
	decides := worst(signals)
	if decides.state == Healthy && !complete {
		return malformed
	}
	if decides.state == Progressing {
		decides.due = earliest(signals)
	}
	return decides.verdict(s.layer)
}

// earliest returns when the first of the signals counts as a failure.
func earliest(signals []signal) time.Time {
	var first time.Time
	for _, s := range signals {
		if !s.due.IsZero() && (first.IsZero() || s.due.Before(first)) {
			first = s.due
		}
	}
	return first
}

// reading is how the conditions of the object itself are read, and which of them it must have.
func (s *subject) reading() (r reading, required []string) {
	r = reading{generation: s.generation, now: s.now, finished: s.finished()}
	_, r.none = is(".spec.replicas", "0").holds(s.object)
	if s.profile != nil {
		r.classes, r.whole, required = s.profile.Conditions, s.profile.Whole, s.profile.Whole
	}
	return r, required
}

// missing returns a signal for each condition that must be there and is not.
func missing(conditions []condition, required []string) []signal {
	var signals []signal
	for _, name := range required {
		if slices.ContainsFunc(conditions, func(c condition) bool { return c.kind == name }) {
			continue
		}
		signals = append(signals, signal{
			state: Progressing, class: ClassReady, field: ".status.conditions" + step{key: "type", is: name}.text(),
			reason: ReasonNotObserved, message: fmt.Sprintf("it has no condition %s yet", name),
		})
	}
	return signals
}

// itemSignals reads the lists whose items have conditions.
func (s *subject) itemSignals() (signals []signal, complete bool) {
	lists := commonItems()
	if s.profile != nil && s.profile.Items != nil {
		lists = s.profile.Items
	}
	complete = true
	for _, items := range lists {
		at := lookup(s.object, items.Path)
		var list []any
		if len(at) > 0 {
			list, _ = at[0].value.([]any)
		}
		if len(list) == 0 && !items.Optional {
			signals = append(signals, signal{
				state: Unknown, class: ClassReady, field: items.Path, reason: ReasonNoStatus, message: "nothing has taken it up yet",
			})
		}
		if len(list) > maxItems {
			complete = false
		}
		for i, item := range list[:min(len(list), maxItems)] {
			more, ok := s.itemSignal(items, item, fmt.Sprintf("%s[%d]", items.Path, i))
			signals = append(signals, more...)
			complete = complete && ok
		}
	}
	return signals, complete
}

func (s *subject) itemSignal(items Items, item any, path string) (signals []signal, complete bool) {
	fields, _ := item.(map[string]any)
	if items.Optional && isEmpty(fields["conditions"]) {
		return nil, true
	}
	path += ".conditions"
	conditions, complete := readConditions(fields["conditions"], path)
	r := reading{generation: s.generation, now: s.now, whole: items.Whole}
	if s.profile != nil {
		r.classes = s.profile.Conditions
	}
	signals = r.signals(conditions)
	for _, m := range missing(conditions, items.Whole) {
		m.field = path
		signals = append(signals, m)
	}
	return signals, complete
}

// noStatus evaluates an object without a status: its controller may not run, or the kind has none.
func (s *subject) noStatus() Verdict {
	if s.hasNoStatus {
		return s.unknown(ReasonHasNoStatus, ".status", "the definition of a "+cutValue(s.kind)+" has no status")
	}
	if s.profile != nil && s.profile.MayHaveNoStatus {
		return s.unknown(ReasonHasNoStatus, ".status", "no controller need write a status of a "+cutValue(s.kind))
	}
	message := "no controller has written a status"
	created, _ := s.meta["creationTimestamp"].(string)
	if !timeOf(created).IsZero() {
		message += " since it was created at " + created
	}
	return s.unknown(ReasonNoStatus, ".status", message)
}

func (s *subject) unknown(reason, field, message string) Verdict {
	return Verdict{State: Unknown, Reason: reason, Message: message, Field: field, Layer: s.layer}
}
