package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Profile is what is known about some kinds. It is data: rules that are tried in order, and how the conditions are read where
// no rule holds.
type Profile struct {
	// Group is the API group, whatever the version. With *. at its start it stands for every group that ends like that.
	Group string
	// Kinds are the kinds. None: every kind of the group that has no profile of its own.
	Kinds []string
	// HasNoStatus reports whether nothing writes a status of such objects.
	HasNoStatus bool
	// MayHaveNoStatus reports whether a controller need not write a status of such objects. What it writes is evaluated.
	MayHaveNoStatus bool
	// Suspended are tests of which one holds when the controller was told to leave the object alone.
	Suspended []Test
	// Rules are tried in order. The first that holds decides.
	Rules []Rule
	// Conditions are classes of condition types that have another meaning here than elsewhere, or only here.
	Conditions map[string]Class
	// Whole are condition types that must all be True for the object to be Healthy.
	Whole []string
	// Items are the lists whose items have conditions. Nil: those that many kinds have.
	Items []Items

	// evaluate evaluates an object of a built-in kind by its Go type.
	evaluate func(object map[string]any, now time.Time) Verdict
}

// Name names the profile by what it is for.
func (p Profile) Name() string {
	group := p.Group
	if group == "" {
		group = "v1"
	}
	if len(p.Kinds) == 0 {
		return group
	}
	return group + ": " + strings.Join(p.Kinds, ", ")
}

// Rule leads from fields to a state.
type Rule struct {
	// When are the tests that must all hold. The field of the first one is what the verdict names.
	When []Test
	// State is the state.
	State State
	// Reason is the reason. Empty: the reason that stands beside the field, or the field's value.
	Reason string
	// Message says what is wrong. Empty: the message that stands beside the field, or beside Words.
	Message string
	// Words is the path of a map whose reason and message are quoted instead of those beside the field.
	Words string
	// Patience is how long the condition of the first test may be so before the object is Failed. Until then it is Progressing.
	Patience time.Duration
}

// Test is a test of one field. It fails if the field is missing, unless it says Unset.
type Test struct {
	// Field is the path.
	Field string
	// In are the values of which the field must have one, and NotIn those that it must not have.
	In, NotIn []string
	// Unset: the field is missing, or says nothing.
	Unset bool
	// Covers is the path of a number that the field must not be less than. If there is none, it is Default.
	Covers  string
	Default int64
	// Same is the path of a field with the same value.
	Same string
	// AllOfThem: the field is n/m, and n is m.
	AllOfThem bool
	// NotBefore is the path of a time that the field must not be before.
	NotBefore string
}

// holds evaluates the test. It returns the value that made it hold.
func (t Test) holds(object map[string]any) (found, bool) {
	all := lookup(object, t.Field)
	if t.Unset {
		set := slices.ContainsFunc(all, func(f found) bool { return !isEmpty(f.value) })
		return found{path: t.Field}, !set
	}
	for _, f := range all {
		if t.accepts(f, object) {
			return f, true
		}
	}
	return found{}, false
}

func (t Test) accepts(f found, object map[string]any) bool {
	value, isScalar := scalar(f.value)
	switch {
	case t.In != nil:
		_, isBool := f.value.(bool) // some write true for True
		return isScalar && slices.ContainsFunc(t.In, func(in string) bool { return in == value || isBool && strings.EqualFold(in, value) })
	case t.NotIn != nil:
		return isScalar && !slices.Contains(t.NotIn, value)
	case t.Covers != "":
		has, ok := number(f.value)
		return ok && has >= t.wanted(object)
	case t.Same != "":
		other, ok := textAt(object, t.Same)
		return ok && isScalar && value == other
	case t.AllOfThem:
		some, all, isShare := strings.Cut(value, "/")
		return isShare && some == all && all != "0"
	case t.NotBefore != "":
		other, ok := textAt(object, t.NotBefore)
		at, bound := timeOf(f.value), timeOf(other)
		return ok && !at.IsZero() && !bound.IsZero() && !at.Before(bound)
	default:
		return !isEmpty(f.value)
	}
}

func (t Test) wanted(object map[string]any) int64 {
	for _, f := range lookup(object, t.Covers) {
		if n, ok := number(f.value); ok {
			return n
		}
	}
	return t.Default
}

func textAt(object map[string]any, path string) (string, bool) {
	at := lookup(object, path)
	if len(at) != 1 {
		return "", false
	}
	return scalar(at[0].value)
}

// String writes the test as the documentation does.
func (t Test) String() string {
	switch {
	case t.Unset:
		return t.Field + " is missing"
	case t.In != nil:
		return t.Field + " is " + strings.Join(t.In, ", ")
	case t.NotIn != nil:
		return t.Field + " is not " + strings.Join(t.NotIn, ", ")
	case t.Covers != "":
		return t.Field + " is at least " + t.Covers
	case t.Same != "":
		return t.Field + " is the same as " + t.Same
	case t.AllOfThem:
		return t.Field + " is n/n"
	case t.NotBefore != "":
		return t.Field + " is not before " + t.NotBefore
	default:
		return t.Field + " is set"
	}
}

// byProfile asks the profile. ok is false if it does not decide.
func (s *subject) byProfile() (Verdict, bool) {
	p := s.profile
	switch {
	case p == nil:
		return Verdict{}, false
	case p.HasNoStatus:
		return s.unknown(ReasonHasNoStatus, ".status", "nothing writes a status of a "+s.kind), true
	case p.evaluate != nil:
		return p.evaluate(s.object, s.now), true
	}
	for _, rule := range p.Rules {
		if verdict, ok := s.byRule(rule); ok {
			return verdict, true
		}
	}
	return Verdict{}, false
}

func (s *subject) byRule(rule Rule) (Verdict, bool) {
	var first found
	var old *signal
	for i, test := range rule.When {
		at, ok := test.holds(s.object)
		if !ok {
			return Verdict{}, false
		}
		if i == 0 {
			first = at
		}
		if stale := s.staleBeside(at); old == nil && stale != nil {
			old = stale
		}
	}
	if old != nil {
		return old.verdict(s.layer), true
	}
	value, _ := scalar(first.value)
	said := signal{state: rule.State, field: first.path, value: value}
	said.reason, said.message = s.words(rule, first.beside)
	if said.reason == "" || rule.State == Unknown && rule.Reason == "" {
		said.reason = value // what is Unknown has a reason of ours, or a word that the rule names
	}
	if said.reason == "" {
		said.reason = string(rule.State)
	}
	if rule.Patience > 0 {
		since := timeOf(first.beside["lastTransitionTime"])
		said.state, said.due = late(since, s.now, rule.Patience)
	}
	return said.verdict(s.layer), true
}

// staleBeside returns a signal if the value is of a condition that is about an earlier generation.
func (s *subject) staleBeside(at found) *signal {
	observed, stated := number(at.beside["observedGeneration"])
	if _, isCondition := at.beside["type"]; !isCondition || !stated || observed >= s.generation {
		return nil
	}
	return &signal{
		state: Progressing, field: at.path, value: fmt.Sprint(observed), reason: ReasonNotObserved, message: notObserved(s.generation),
	}
}

// words finds reason and message of a rule.
func (s *subject) words(rule Rule, beside map[string]any) (reason, message string) {
	if rule.Words != "" {
		beside = nil
		for _, at := range lookup(s.object, rule.Words) {
			beside, _ = at.value.(map[string]any)
		}
	}
	reason, message = rule.Reason, rule.Message
	if reason == "" {
		reason, _ = beside["reason"].(string)
	}
	if message == "" {
		message, _ = beside["message"].(string)
	}
	return reason, message
}

// Profiles are profiles that are found by kind. They are not changed after they were made.
type Profiles struct {
	byKind  map[schema.GroupKind]*Profile
	byGroup map[string]*Profile
	// byEnd are those for all groups that end alike, without the *.
	byEnd []*Profile
	list  []Profile
}

// NewProfiles makes profiles. An error names two that are for the same kind.
func NewProfiles(list []Profile) (*Profiles, error) {
	p := &Profiles{byKind: map[schema.GroupKind]*Profile{}, byGroup: map[string]*Profile{}, list: list}
	for i := range list {
		entry := &list[i]
		if strings.HasPrefix(entry.Group, "*.") {
			p.byEnd = append(p.byEnd, entry)
			continue
		}
		if len(entry.Kinds) == 0 {
			if p.byGroup[entry.Group] != nil {
				return nil, fmt.Errorf("two profiles for the group %q", entry.Group)
			}
			p.byGroup[entry.Group] = entry
		}
		for _, kind := range entry.Kinds {
			key := schema.GroupKind{Group: entry.Group, Kind: kind}
			if p.byKind[key] != nil {
				return nil, fmt.Errorf("two profiles for %s", key)
			}
			p.byKind[key] = entry
		}
	}
	return p, nil
}

// List returns the profiles, in their order.
func (p *Profiles) List() []Profile { return slices.Clone(p.list) }

// find returns the profile of a kind, or nil.
func (p *Profiles) find(kind schema.GroupKind) *Profile {
	if found := p.byKind[kind]; found != nil {
		return found
	}
	if found := p.byGroup[kind.Group]; found != nil {
		return found
	}
	for _, entry := range p.byEnd {
		if strings.HasSuffix(kind.Group, entry.Group[1:]) {
			return entry
		}
	}
	return nil
}
