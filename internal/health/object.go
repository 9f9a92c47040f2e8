package health

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// stuckAfter is how long after its time a deletion counts as stuck.
const stuckAfter = 10 * time.Minute

// Options are what Of needs besides the object.
type Options struct {
	// Now is the time. With the zero time nothing is late or stuck.
	Now time.Time
	// Profiles are what is known about kinds. Nil: those of Shipped.
	Profiles *Profiles
	// HasNoStatus reports whether the definition of the kind gives its objects no status.
	HasNoStatus bool
	// User are the user's own expressions for this kind.
	User Expressions
}

// Expression is an expression of a user that is true or false of an object.
type Expression interface {
	// String returns the text of the expression.
	String() string
	// Holds evaluates it. The object must not be changed.
	Holds(object map[string]any) (bool, error)
}

// Expressions are a user's definition of health. Any of them may be nil. They are asked in the order of the fields. If Healthy
// is set and none is true, the object is Progressing. If it is not set, the next layer is asked.
type Expressions struct {
	Failed      Expression
	Progressing Expression
	Healthy     Expression
}

// Evaluate returns the verdict of an object of any kind: what apiVersion, kind, metadata, spec and status hold, as they are decoded from JSON. It
// asks layer by layer: the user's expressions, the profile of the kind, the conventions of all kinds. An object is never
// Healthy for lack of a signal: then it is Unknown. The object is not changed.
//
// Before all layers come deletion, and a status that is older than the spec.
func Evaluate(object map[string]any, options Options) Verdict {
	s := subjectOf(object, options)
	if verdict, ok := s.terminating(); ok {
		return verdict
	}
	suspended, isSuspended := s.suspended()
	if verdict, ok := s.stale(); ok && !isSuspended {
		return verdict
	}
	if verdict, ok := s.byUser(options.User); ok {
		return verdict
	}
	if isSuspended {
		return suspended
	}
	verdict, ok := s.byProfile()
	if !ok {
		verdict = s.byConventions()
	}
	return verdict
}

// subject is the object that is evaluated.
type subject struct {
	object map[string]any
	// meta and status are empty if they are missing or no maps.
	meta, status map[string]any
	group, kind  string
	generation   int64
	now          time.Time
	// hasNoStatus reports whether the definition of the kind has no status.
	hasNoStatus bool
	// profile is nil for a kind that has none, and layer follows from that.
	profile *Profile
	layer   Layer
}

func subjectOf(object map[string]any, options Options) *subject {
	s := &subject{object: object, now: options.Now, hasNoStatus: options.HasNoStatus, layer: LayerGeneric}
	s.meta, _ = object["metadata"].(map[string]any)
	s.status, _ = object["status"].(map[string]any)
	s.generation, _ = number(s.meta["generation"])
	apiVersion, _ := object["apiVersion"].(string)
	if group, _, found := strings.Cut(apiVersion, "/"); found {
		s.group = group
	}
	s.kind, _ = object["kind"].(string)
	profiles := options.Profiles
	if profiles == nil {
		profiles = Shipped()
	}
	if s.profile = profiles.find(schema.GroupKind{Group: s.group, Kind: s.kind}); s.profile != nil {
		s.layer = LayerProfile
	}
	return s
}

// terminating evaluates an object that is being deleted.
func (s *subject) terminating() (Verdict, bool) {
	text, _ := s.meta["deletionTimestamp"].(string)
	if text == "" {
		return Verdict{}, false
	}
	v := Verdict{
		State: Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: "is being deleted",
		Field: ".metadata.deletionTimestamp", Value: cutValue(text), Layer: LayerGeneric,
	}
	if finalizers := s.finalizers(); len(finalizers) > 0 {
		v.Field, v.Value = ".metadata.finalizers", finalizers[0]
		v.Message = fmt.Sprintf("is being deleted, and waits for the finalizer %q", finalizers[0])
		if more := len(finalizers) - 1; more > 0 {
			v.Message += fmt.Sprintf(" and %d more", more)
		}
	}
	at := timeOf(text)
	if at.IsZero() || s.now.IsZero() {
		return v, true
	}
	// The API server sets the time at which the object should be gone, after its grace period.
	if due := at.Add(stuckAfter); due.After(s.now) {
		v.Due = due
		return v, true
	}
	v.Reason = ReasonDeletionStuck
	v.Message += fmt.Sprintf("; it should have been gone more than %s ago", inWords(stuckAfter))
	return v, true
}

func (s *subject) finalizers() []string {
	list, _ := s.meta["finalizers"].([]any)
	var names []string
	for _, item := range list[:min(len(list), maxItems)] {
		if name, _ := item.(string); name != "" {
			names = append(names, cutValue(name))
		}
	}
	return names
}

// stale evaluates an object whose status is about an earlier generation. Then nothing in it counts. A negative number is a default: the
// controller writes no generation, or has reached none yet.
func (s *subject) stale() (Verdict, bool) {
	observed, ok := number(s.status["observedGeneration"])
	if !ok || observed < 0 || observed >= s.generation {
		return Verdict{}, false
	}
	return Verdict{
		State: Progressing, Reason: ReasonNotObserved, Message: notObserved(s.generation),
		Field: ".status.observedGeneration", Value: fmt.Sprint(observed), Layer: LayerGeneric,
	}, true
}

// suspended evaluates an object whose controller was told to leave it alone. Its status tells of the time before.
func (s *subject) suspended() (Verdict, bool) {
	tests := SuspendFields()
	if s.profile != nil {
		tests = s.profile.Suspended
	}
	for _, test := range tests {
		if at, ok := test.holds(s.object); ok {
			value, _ := scalar(at.value)
			return Verdict{
				State: Unknown, Reason: ReasonSuspended, Message: "its controller was told to leave it alone (" + at.path[1:] + ")",
				Field: at.path, Value: cutValue(value), Layer: s.layer,
			}, true
		}
	}
	return Verdict{}, false
}

// SuspendFields are tests of which one holds when the controller of an object was told to leave it alone, for kinds without a profile.
func SuspendFields() []Test {
	return []Test{
		is(".spec.suspend", "true"), is(".spec.suspended", "true"), is(".spec.paused", "true"), is(".spec.pause", "true"),
	}
}

// byUser asks the user's expressions.
func (s *subject) byUser(user Expressions) (Verdict, bool) {
	for _, asked := range []struct {
		expression Expression
		state      State
	}{{user.Failed, Failed}, {user.Progressing, Progressing}, {user.Healthy, Healthy}} {
		if asked.expression == nil {
			continue
		}
		text := cutValue(asked.expression.String())
		v := Verdict{State: asked.state, Reason: ReasonExpression, Field: text, Value: "true", Layer: LayerUser}
		holds, err := asked.expression.Holds(s.object)
		if err != nil {
			v.State, v.Reason, v.Value = Unknown, ReasonExpressionFailed, ""
			v.Message = "the expression cannot be evaluated: " + cutValue(err.Error())
			return v, true
		}
		if !holds {
			continue
		}
		v.Message = "as this expression says: " + text
		if asked.state == Healthy {
			v.Reason = ""
		}
		return v, true
	}
	if user.Healthy == nil {
		return Verdict{}, false
	}
	text := cutValue(user.Healthy.String())
	return Verdict{
		State: Progressing, Reason: ReasonExpression, Message: "this expression is not true yet: " + text,
		Field: text, Value: "false", Layer: LayerUser,
	}, true
}
