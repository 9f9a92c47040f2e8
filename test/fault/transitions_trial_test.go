//go:build faulttest

package fault_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/boundary"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// specTrial is one property in one base. Each valid value has an object of its own that is
// created with it: its state is what the value leads to. Then all objects move on, by one
// value, by two, and so on, until each value has been changed to each other. If the property
// is in no child, they move only one value further and one back. If only one object can have a
// value, one object goes through all changes.
type specTrial struct {
	kind     *specKind
	rig      *transitionRig
	property boundary.Property
	hint     specHint
	base     specBase
	// name is that of the objects, each in a namespace of its own: what is made of them
	// has to be the same to the last name.
	name string

	// at is the number of the value that each object has.
	at []int
	// references are the states that the values lead to.
	references []map[string]any
}

func (s *specTrial) title() string { return s.property.Path + " in " + s.base.Name }

// What the results are counted as.
const (
	columnTransitions = "F8 transitions"
	columnRefused     = "F8 refused"
	columnHeldBack    = "F8 held back"
	columnNull        = "F8 null"
)

// specTable counts the results by property; the table of all faults has their sum.
var specTable scenario.Table

func (s *specTrial) run(t *testing.T) {
	s.rig.trials <- struct{}{}
	defer func() { <-s.rig.trials }()
	defer s.rig.removeAll(s.name)
	s.refuseNew(t)
	s.nullIsUnset(t)
	s.makeNew(t)
	s.refuseEdits(t)
	if t.Failed() {
		return
	}
	for _, value := range s.hint.HeldBack {
		if len(value.Bases) > 0 && !slices.Contains(value.Bases, s.base.Name) {
			continue
		}
		s.holdBack(t, value)
		if t.Failed() {
			return
		}
	}
	if s.hint.Alone {
		s.moveAlone(t)
		return
	}
	for _, distance := range s.distances() {
		s.everyObject(func(i int) { s.move(t, i, s.next(i, distance)) })
		if t.Failed() {
			// What follows would fail for the same reason.
			return
		}
	}
}

// distances are by how many values the objects move on.
func (s *specTrial) distances() []int {
	var all []int
	for distance := 1; distance < len(s.property.Valid); distance++ {
		if distance == 1 || distance == len(s.property.Valid)-1 || !s.kind.goesRound(s.property.Path) {
			all = append(all, distance)
		}
	}
	return all
}

// next is the number of the value that comes so many after an object's.
func (s *specTrial) next(i, distance int) int { return (s.at[i] + distance) % len(s.property.Valid) }

// moveAlone has one object go from each value to each other.
func (s *specTrial) moveAlone(t *testing.T) {
	for from := range s.property.Valid {
		for to := range s.property.Valid {
			if s.at[0] != from {
				s.move(t, 0, from)
			}
			if from != to {
				s.move(t, 0, to)
			}
			if t.Failed() {
				return
			}
		}
	}
}

func (s *specTrial) everyObject(do func(i int)) {
	var all sync.WaitGroup
	for i := range s.at {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func (s *specTrial) result(t *testing.T, column, what string, err error) {
	t.Helper()
	table.Add(s.kind.name+"/spec", column, err == nil)
	specTable.Add(s.kind.name+"/"+s.title(), column, err == nil)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// spec is the base with a value of the property.
func (s *specTrial) spec(value boundary.Value) (any, error) {
	whole, err := boundary.With(map[string]any{"spec": s.base.Spec}, s.property.Path, value)
	return whole["spec"], err
}

// refuseNew tries to make objects with invalid values.
func (s *specTrial) refuseNew(t *testing.T) {
	for _, value := range s.property.Invalid {
		spec, err := s.spec(value)
		if err == nil {
			err = s.refused(value, s.rig.create(t, 0, s.name, spec))
		}
		s.result(t, columnRefused, fmt.Sprintf("a new object with the value %q", value.Name), err)
	}
}

// nullIsUnset tries a property without a value, as a line "name:" in YAML has it: the
// same as leaving the line out.
func (s *specTrial) nullIsUnset(t *testing.T) {
	i := slices.IndexFunc(s.property.Valid, func(v boundary.Value) bool { return v.Unset })
	if i < 0 {
		return
	}
	without, err := s.spec(s.property.Valid[i])
	if err != nil {
		t.Fatal(err)
	}
	null, err := s.spec(boundary.Value{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.rig.wouldBe(t, s.name, without)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.rig.wouldBe(t, s.name, null)
	if diff := cmp.Diff(want, got); err == nil && diff != "" {
		err = fmt.Errorf("it is not the same (-unset +null):\n%s", diff)
	}
	s.result(t, columnNull, "a new object with null", err)
}

// refused tells what is wrong with the answer to an invalid value: it has to be a
// refusal that says where.
func (s *specTrial) refused(value boundary.Value, answer error) error {
	says := boundary.Names(map[string]any{"spec": s.base.Spec}, s.property.Path)
	if value.Says != "" {
		says = []string{value.Says}
	}
	return refusedSaying(answer, says)
}

func refusedSaying(answer error, says []string) error {
	switch {
	case answer == nil:
		return errors.New("it was accepted")
	case !apierrors.IsInvalid(answer) && !apierrors.IsBadRequest(answer):
		return fmt.Errorf("it was not refused as invalid: %w", answer)
	case !slices.ContainsFunc(says, func(s string) bool { return strings.Contains(answer.Error(), s) }):
		return fmt.Errorf("the refusal says none of %q: %.500s", says, answer.Error())
	default:
		return nil
	}
}

// makeNew makes an object with each valid value.
func (s *specTrial) makeNew(t *testing.T) {
	s.references = make([]map[string]any, len(s.property.Valid))
	if s.hint.Alone {
		s.makeNewAlone(t)
		return
	}
	s.at = make([]int, len(s.property.Valid))
	s.everyObject(func(i int) {
		s.at[i] = i
		if err := s.makeReference(t, i); err != nil {
			t.Errorf("a new object with the value %q: %v", s.property.Valid[i].Name, err)
		}
	})
}

// makeNewAlone makes an object with each valid value, one after the other. The last one
// stays.
func (s *specTrial) makeNewAlone(t *testing.T) {
	s.at = []int{len(s.property.Valid) - 1}
	for value := range s.property.Valid {
		err := s.makeReferenceIn(t, 0, value)
		if err == nil && value != s.at[0] {
			err = s.rig.remove(t, 0, s.name)
		}
		if err != nil {
			t.Errorf("a new object with the value %q: %v", s.property.Valid[value].Name, err)
			return
		}
	}
}

func (s *specTrial) makeReference(t *testing.T, i int) error { return s.makeReferenceIn(t, i, i) }

// makeReferenceIn makes an object with a value in the i-th namespace, and notes what
// becomes of it.
func (s *specTrial) makeReferenceIn(t *testing.T, i, value int) error {
	place := bench.Places.Take()
	defer place.Leave()
	spec, err := s.spec(s.property.Valid[value])
	if err != nil {
		return err
	}
	if err := s.rig.create(t, i, s.name, spec); err != nil {
		return err
	}
	end, err := s.rig.await(t, place, i, s.name, longRest, func(now family) error {
		if err := truthful(now); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(now.conditions(), slipwayv1alpha1.ConditionReady) {
			return errors.New("it is not ready")
		}
		return now.without(s.kind.Gone)
	})
	s.references[value] = end.state
	return err
}

// refuseEdits tries to give every object every invalid value.
func (s *specTrial) refuseEdits(t *testing.T) {
	s.everyObject(func(i int) {
		err := s.rig.unchanged(t, i, s.name, func() error {
			for _, value := range s.property.Invalid {
				spec, err := s.spec(value)
				if err == nil {
					_, answer := s.rig.edit(t, i, s.name, spec)
					err = s.refused(value, answer)
				}
				s.result(t, columnRefused, fmt.Sprintf("from %q to %q", s.valueName(i), value.Name), err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("after refusals: %v", err)
		}
	})
}

func (s *specTrial) valueName(i int) string { return s.property.Valid[s.at[i]].Name }

// move changes the property of an object to another valid value.
func (s *specTrial) move(t *testing.T, i, to int) {
	from, next := s.valueName(i), s.property.Valid[to].Name
	column, err := columnTransitions, error(nil)
	if s.refusesChange(from, next) {
		column, err = columnRefused, s.moveRefused(t, i, to)
	} else {
		err = s.moveAccepted(t, i, to)
	}
	s.at[i] = to
	s.result(t, column, fmt.Sprintf("from %q to %q", from, next), err)
}

func (s *specTrial) moveAccepted(t *testing.T, i, to int) error {
	spec, err := s.spec(s.property.Valid[to])
	if err != nil {
		return err
	}
	place := bench.Places.Take()
	defer place.Leave()
	generation, err := s.rig.edit(t, i, s.name, spec)
	if err != nil {
		return err
	}
	return s.awaitReference(t, place, i, to, generation)
}

// awaitReference waits until an object is as one that had the value from the start.
func (s *specTrial) awaitReference(t *testing.T, place *scenario.Place, i, to int, generation int64) error {
	_, err := s.rig.await(t, place, i, s.name, shortRest, func(now family) error {
		if err := now.upToDate(generation); err != nil {
			return err
		}
		return errors.Join(s.differs(s.references[to], now.state, "another end (-new object +changed object)"), truthful(now))
	})
	return err
}

// differs tells how a state is not what it should be.
func (s *specTrial) differs(want, got map[string]any, what string) error {
	got = s.withoutKept(got, want)
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return difference{what: what, want: want, got: got}
}

// difference is only written down when somebody wants to read it: most are gone a
// moment later.
type difference struct {
	what      string
	want, got map[string]any
}

// Error shows the difference.
func (d difference) Error() string { return d.what + ":\n" + cmp.Diff(d.want, d.got) }

// withoutKept leaves out what the reference does not have and need not have.
func (s *specTrial) withoutKept(state, reference map[string]any) map[string]any {
	left := map[string]any{}
	for id, object := range state {
		kind, _, _ := strings.Cut(id, "/")
		if _, ok := reference[id]; ok || !slices.Contains(s.kind.Kept, kind) {
			left[id] = object
		}
	}
	return left
}

// refusesChange reports whether a rule refuses the change from one valid value to another.
func (s *specTrial) refusesChange(from, to string) bool {
	return s.kind.Immutable != "" || s.hint.refusesChange(from, to)
}

// says is what the refusal of such a change says, any of it.
func (s *specTrial) says() []string {
	if s.kind.Immutable != "" {
		return []string{s.kind.Immutable}
	}
	return boundary.Names(map[string]any{"spec": s.base.Spec}, s.property.Path)
}

// moveRefused tries a change that a rule refuses. The object is then recreated with the
// value, to go on from there.
func (s *specTrial) moveRefused(t *testing.T, i, to int) error {
	spec, err := s.spec(s.property.Valid[to])
	if err != nil {
		return err
	}
	err = s.rig.unchanged(t, i, s.name, func() error {
		_, answer := s.rig.edit(t, i, s.name, spec)
		return refusedSaying(answer, s.says())
	})
	if err != nil {
		return err
	}
	if err := s.rig.remove(t, i, s.name); err != nil {
		return err
	}
	place := bench.Places.Take()
	defer place.Leave()
	if err := s.rig.create(t, i, s.name, spec); err != nil {
		return err
	}
	return s.awaitReference(t, place, i, to, 1)
}

func truthful(now family) error {
	if err := truth.Check(scenario.Declared(now.declared)); err != nil {
		return fmt.Errorf("the status is not true: %w", err)
	}
	return nil
}
