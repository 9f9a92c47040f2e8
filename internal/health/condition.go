package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/text"
)

// maxConditions bounds how many conditions of one list are looked at.
const maxConditions = 200

// defaultPatience is how long something may be not ready, without a reason, before it counts as failed.
const defaultPatience = 10 * time.Minute

// endPatience is how long after its end something may cease to be ready because of that.
const endPatience = time.Minute

// condition is one item of a list of conditions.
type condition struct {
	kind     string // its type
	status   string
	reason   string
	message  string
	severity string
	since    time.Time
	observed int64
	// stated reports whether the condition says which generation it is about.
	stated bool
	path   string
}

// readConditions reads a list of conditions, and sorts it by type. whole is false when the list is too long, or no list.
func readConditions(value any, path string) (list []condition, whole bool) {
	if value == nil {
		return nil, true
	}
	items, isList := value.([]any)
	for _, item := range items[:min(len(items), maxConditions)] {
		fields, _ := item.(map[string]any)
		kind, _ := fields["type"].(string)
		if kind == "" || len(kind) > maxValue {
			continue
		}
		c := condition{kind: kind, path: path + step{key: "type", is: kind}.text()}
		c.status, _ = scalar(fields["status"])
		for _, known := range []string{"True", "False"} {
			if strings.EqualFold(c.status, known) {
				c.status = known // some write true
			}
		}
		c.reason, _ = fields["reason"].(string)
		c.message, _ = fields["message"].(string)
		c.severity, _ = fields["severity"].(string)
		c.since = timeOf(fields["lastTransitionTime"])
		c.observed, c.stated = number(fields["observedGeneration"])
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b condition) int { return cmp.Compare(a.kind, b.kind) })
	return unite(list), isList && len(items) <= maxConditions
}

// contradiction is the status of a type that has several conditions which differ.
const contradiction = "Contradiction"

// unite makes one condition of those with the same type.
func unite(list []condition) []condition {
	var united []condition
	for _, c := range list {
		last := len(united) - 1
		if last < 0 || united[last].kind != c.kind {
			united = append(united, c)
			continue
		}
		if united[last] != c {
			united[last] = condition{kind: c.kind, status: contradiction, reason: contradiction, message: "there are several conditions of this type", path: c.path}
		}
	}
	return united
}

func timeOf(value any) time.Time {
	text, _ := value.(string)
	if len(text) > 64 {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// signal is what one condition, or one word, says.
type signal struct {
	state   State
	class   Class
	field   string
	value   string
	reason  string
	message string
	due     time.Time
	// stays: being suspended is no cause of this failure.
	stays bool
}

// reading is how conditions are read: with the generation that they must have observed, and what the profile knows.
type reading struct {
	generation int64
	now        time.Time
	// classes are the classes of the profile.
	classes map[string]Class
	// finished reports whether a word says that the work has ended well.
	finished bool
	// ends are the conditions that say so.
	ends []condition
	// none reports whether nothing is to run.
	none bool
	// alone is the type of the one condition that says how the object does, and is of a class of parts.
	alone string
	// whole are condition types which here tell of the whole, although they are gates or parts elsewhere.
	whole []string
}

func (r reading) classOf(conditionType string) Class {
	if class, ok := r.classes[conditionType]; ok {
		return class
	}
	return classOf(conditionType)
}

func (r reading) isWhole(c condition, class Class) bool {
	return class.isWhole() || slices.Contains(r.whole, c.kind) || r.alone != "" && c.kind == r.alone
}

// aloneIn returns the type of a gate or part that is all that a controller says, beside what can only be bad. Then it tells of the
// whole.
func (r reading) aloneIn(list []condition) string {
	name := ""
	for _, c := range list {
		class := r.classOf(c.kind)
		_, listed := classOfType[c.kind]
		switch {
		case class == ClassBad, class == ClassIgnored, class == "":
		case listed && (class == ClassPart || class == ClassGate) && name == "":
			name = c.kind
		default:
			return ""
		}
	}
	return name
}

// signals reads each condition that has a class. Where the controller sums up in Ready, its parts decide only if Ready says
// nothing.
func (r reading) signals(list []condition) []signal {
	summed := slices.ContainsFunc(list, func(c condition) bool { return c.kind == "Ready" && c.status == "True" })
	r.alone = r.aloneIn(list)
	for _, c := range list {
		if r.isEnd(c) {
			r.ends = append(r.ends, c)
		}
	}
	var signals []signal
	for _, c := range list {
		class := r.classOf(c.kind)
		_, listed := classOfType[c.kind]
		if class == ClassPart && summed && !listed && r.classes[c.kind] == "" {
			continue
		}
		if s, ok := r.signal(c, class); ok {
			signals = append(signals, s)
		}
	}
	return signals
}

// isEnd reports whether a condition says that the work has ended well.
func (r reading) isEnd(c condition) bool {
	class := r.classOf(c.kind)
	return (class == ClassOutcome || class == ClassCompletion) && c.status == "True" && toneOf(c.reason) != toneError
}

// isOver reports whether a condition says no more than that nothing is done any more, because all is done. What is not ready since later
// than the end has another cause.
func (r reading) isOver(c condition, class Class) bool {
	if class != ClassReady && class != ClassPart || c.status == "True" || toneOf(c.reason) == toneError {
		return false
	}
	return r.finished || toneOf(c.reason) == toneDone ||
		slices.ContainsFunc(r.ends, func(end condition) bool { return !c.since.After(end.since.Add(endPatience)) })
}

// rests reports whether something does not run because somebody wanted that.
func (r reading) rests(c condition, class Class) bool {
	if class != ClassReady && class != ClassPart || c.status != "False" || c.severity != "" {
		return false
	}
	tone := toneOf(c.reason)
	return tone != toneError && isRest(c.reason) || tone == toneNeutral && r.none
}

// signal reads one condition. ok is false if it says nothing.
func (r reading) signal(c condition, class Class) (result signal, ok bool) {
	s, ok := r.meaning(c, class)
	if !ok {
		return signal{}, false
	}
	if c.stated && c.observed < r.generation {
		return signal{
			state: Progressing, class: class, field: c.path + ".observedGeneration", value: fmt.Sprint(c.observed),
			reason: ReasonNotObserved, message: notObserved(r.generation),
		}, true
	}
	s.stays = class == ClassBad && !isAbsence(c.kind) || class == ClassOutcome || class == ClassCompletion
	if s.state != Healthy && s.reason == "" {
		s.reason = c.kind
		if class.isGood() {
			s.reason = ReasonNotReady
		}
	}
	return s, true
}

// meaning is what a condition says, whatever generation it was said of.
func (r reading) meaning(c condition, class Class) (s signal, ok bool) {
	s = signal{class: class, field: c.path + ".status", value: c.status, reason: c.reason, message: c.message}
	switch {
	case r.isOver(c, class):
		return signal{}, false
	case r.rests(c, class):
		// Of a part that rests nothing follows for the whole.
		if _, listed := classOfType[c.kind]; !listed && !r.isWhole(c, class) {
			return signal{}, false
		}
		s.state, s.class, s.reason = Unknown, ClassSuspended, ReasonSuspended
	case class == ClassCompletion && c.status == "True" && toneOf(c.reason) == toneError:
		s.state = Failed // it has ended, and not well
	case class == ClassSuspended && c.status == "True":
		s.state, s.reason = Unknown, ReasonSuspended
	case class == ClassBusy && toneOf(c.reason) == toneError:
		s.state = Failed // it has stopped trying
	case class.isGood() && c.status == "True":
		if s.state = Healthy; !r.isWhole(c, class) {
			return signal{}, false
		}
	case class.isGood() && c.status == "False":
		s = r.against(c, class, s)
	case class.isGood(), class != "" && class != ClassIgnored && class != ClassSuspended && c.status == contradiction:
		s.state = Progressing
	case class == ClassBad && c.status == "True":
		s.state = Failed
	case class == ClassBusy && c.status == "True":
		// A Deployment, and what copies it, says so after a rollout has ended.
		if s.state = Progressing; c.reason == "NewReplicaSetAvailable" || c.reason == "NewReplicationControllerAvailable" {
			return signal{}, false
		}
	default:
		return signal{}, false
	}
	return s, true
}

// against reads a good condition that is False.
func (r reading) against(c condition, class Class, s signal) signal {
	s.state = Progressing
	tone := toneOf(c.reason)
	switch {
	case c.severity == "Error", tone == toneError && c.severity == "":
		s.state = Failed
	case tone == toneBusy, c.severity != "", class == ClassCompletion:
		// It is being worked on, however long that takes.
	case class == ClassOutcome, class == ClassGate:
		s.state = Failed
	default:
		s.state, s.due = late(c.since, r.now, defaultPatience)
		if s.state == Failed {
			s.message = join(s.message, fmt.Sprintf("it has been so for more than %s", inWords(defaultPatience)))
		}
	}
	return s
}

// late returns Failed for what has been so for longer than it may, and otherwise when that will be.
func late(since, now time.Time, patience time.Duration) (State, time.Time) {
	if since.IsZero() || now.IsZero() {
		return Progressing, time.Time{}
	}
	due := since.Add(patience)
	if due.After(now) {
		return Progressing, due
	}
	return Failed, time.Time{}
}

// inWords writes a time of whole minutes.
func inWords(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }

func join(message, more string) string {
	if message == "" {
		return more
	}
	return cutValue(message) + ": " + more
}

func notObserved(generation int64) string {
	return fmt.Sprintf("its controller has not looked at generation %d yet", generation)
}

// worst returns the signal that decides: what is suspended is not evaluated, unless it has failed; otherwise the worst one, and of several the first in the order of classes and types.
func worst(signals []signal) signal {
	fails := func(s signal) bool { return s.state == Failed && s.stays }
	if i := slices.IndexFunc(signals, func(s signal) bool { return s.class == ClassSuspended }); i >= 0 && !slices.ContainsFunc(signals, fails) {
		return signals[i]
	}
	return slices.MinFunc(signals, func(a, b signal) int {
		return cmp.Or(
			cmp.Compare(badness(a.state), badness(b.state)), cmp.Compare(a.class.rank(), b.class.rank()), cmp.Compare(a.field, b.field),
		)
	})
}

func badness(state State) int {
	return slices.Index([]State{Failed, Progressing, Unknown, Healthy}, state)
}

// verdict returns the verdict that a signal leads to.
func (s signal) verdict(layer Layer) Verdict {
	v := Verdict{
		State: s.state, Reason: cutValue(s.reason), Message: cutValue(s.message), Field: s.field, Value: cutValue(s.value), Layer: layer, Due: s.due,
	}
	if s.state == Healthy {
		v.Reason = ""
	}
	return v
}

// cutValue bounds what is quoted from an object.
func cutValue(value string) string { return text.Cut(value, maxValue) }
