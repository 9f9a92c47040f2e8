package health

import (
	"slices"
	"strconv"
	"strings"
)

// WholeWords are the fields of a status whose word tells of the whole object. The word of any other field that ends like one of
// them tells of a part.
func WholeWords() []string {
	return []string{"phase", "state", "status", "health", "currentState", "currentStatus", "overallStatus", "overallState"}
}

// EndsOfWords are how the names of fields with words end.
func EndsOfWords() []string { return []string{"phase", "state", "status", "health"} }

// OtherTimes are beginnings of the names of fields whose words tell of another time, or of what is wanted.
func OtherTimes() []string {
	return []string{"last", "previous", "old", "desired", "target", "expected", "requested", "initial", "next"}
}

// wordSignals reads the words of the status: those that tell of the whole, and those that tell of a part. Of a part nothing is well
// enough to tell that the whole is.
func (s *subject) wordSignals() (signals []signal) {
	for _, name := range WholeWords() {
		value := s.status[name]
		if fields, isMap := value.(map[string]any); isMap && name == "health" {
			value = fields["status"]
		}
		if word, ok := value.(string); ok {
			signals = s.word(signals, name, word, wordState(word), ClassReady)
		}
	}
	if ready, ok := s.status["ready"].(bool); ok {
		signals = s.word(signals, "ready", strconv.FormatBool(ready), map[bool]State{true: Healthy, false: Progressing}[ready], ClassReady)
	}
	if healthy, ok := s.status["healthy"].(bool); ok {
		signals = s.word(signals, "healthy", strconv.FormatBool(healthy), map[bool]State{true: Healthy, false: Failed}[healthy], ClassReady)
	}
	for _, name := range s.partWords() {
		word, _ := s.status[name].(string)
		if state := wordState(word); state != Healthy && state != stateSuspended {
			signals = s.word(signals, name, word, state, ClassPart)
		}
	}
	return signals
}

// partWords are the fields whose word tells of a part, in order.
func (s *subject) partWords() []string {
	var names []string
	for name := range s.status {
		lower := strings.ToLower(name)
		ends := func(end string) bool { return strings.HasSuffix(lower, end) }
		begins := func(begin string) bool { return strings.HasPrefix(lower, begin) }
		if slices.ContainsFunc(EndsOfWords(), ends) && !slices.ContainsFunc(OtherTimes(), begins) && !slices.Contains(WholeWords(), name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxConditions)]
}

// word adds what a word says, if it is known.
func (s *subject) word(signals []signal, name, word string, state State, class Class) []signal {
	entry := signal{state: state, class: class, field: ".status" + step{field: name}.text(), value: word, stays: class == ClassReady && !isAbsence(word) && name != "ready" && name != "healthy"}
	switch state {
	case Unknown:
		return signals
	case stateSuspended:
		entry.state, entry.class, entry.reason, entry.message = Unknown, ClassSuspended, ReasonSuspended, "its controller leaves it alone"
		return append(signals, entry)
	}
	entry.message, _ = s.status["message"].(string)
	if entry.reason, _ = s.status["reason"].(string); entry.reason == "" {
		entry.reason = word
		if name == "ready" || name == "healthy" {
			entry.reason = ReasonNotReady
		}
	}
	return append(signals, entry)
}

// finished reports whether a word says that the work has ended well. What runs no more is then not ready, and well.
func (s *subject) finished() bool {
	return slices.ContainsFunc(WholeWords(), func(name string) bool {
		word, _ := s.status[name].(string)
		return slices.Contains(doneStates, plainWord(word))
	})
}

// byWords evaluates by words alone. The worst one decides. Where a word tells of the whole, those of parts do not count.
func (s *subject) byWords(signals []signal) Verdict {
	isPart := func(s signal) bool { return s.class == ClassPart }
	if slices.ContainsFunc(signals, func(s signal) bool { return !isPart(s) }) {
		signals = slices.DeleteFunc(signals, isPart)
	}
	if len(signals) > 0 {
		return worst(signals).verdict(s.layer)
	}
	return s.unknown(ReasonNoSignal, ".status", "nothing in its status is known to tell how it does")
}
