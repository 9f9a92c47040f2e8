//go:build faulttest

package fault_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/slipway-dev/slipway/internal/testing/boundary"
)

// holdBack gives every object a value that cannot be carried out, and takes it back, or
// replaces it by another. Meanwhile the children of the object stay, and status says why. Then
// the good value is carried out. The same holds for an object that is created with such a
// value. Where no spec can be changed, that is all.
func (s *specTrial) holdBack(t *testing.T, value heldBack) {
	if s.kind.Immutable == "" {
		s.holdBackEvery(t, value)
	}
	s.result(t, columnHeldBack, fmt.Sprintf("from nothing to %v to %q", value.Value, s.property.Valid[0].Name), s.bornHeldBack(t, value))
}

func (s *specTrial) holdBackEvery(t *testing.T, value heldBack) {
	s.everyObject(func(i int) {
		for _, to := range []int{s.at[i], s.next(i, 1)} {
			if s.refusesChange(s.valueName(i), s.property.Valid[to].Name) {
				continue
			}
			from := s.valueName(i)
			err := s.hold(t, i, value)
			if err == nil {
				err = s.moveAccepted(t, i, to)
			}
			s.at[i] = to
			s.result(t, columnHeldBack, fmt.Sprintf("from %q to %v to %q", from, value.Value, s.property.Valid[to].Name), err)
		}
	})
}

// hold gives an object a value that cannot be carried out.
func (s *specTrial) hold(t *testing.T, i int, value heldBack) error {
	spec, err := s.spec(boundary.Value{Value: value.Value})
	if err != nil {
		return err
	}
	place := bench.Places.Take()
	defer place.Leave()
	generation, err := s.rig.edit(t, i, s.name, spec)
	if err != nil {
		return err
	}
	declared := s.kind.gvk.Kind + "/" + s.name
	rest := func(state map[string]any) map[string]any { return without(state, declared, value.Changes) }
	before := rest(s.references[s.at[i]])
	_, err = s.rig.await(t, place, i, s.name, shortRest, func(now family) error {
		if err := now.upToDate(generation); err != nil {
			return err
		}
		if err := value.reported(now); err != nil {
			return err
		}
		return errors.Join(s.differs(before, rest(now.state), "what was made of it changed (-before +after)"), truthful(now))
	})
	return err
}

func (s *specTrial) bornHeldBack(t *testing.T, value heldBack) error {
	last := len(s.at)
	spec, err := s.spec(boundary.Value{Value: value.Value})
	if err != nil {
		return err
	}
	place := bench.Places.Take()
	defer place.Leave()
	if err := s.rig.create(t, last, s.name, spec); err != nil {
		return err
	}
	if _, err := s.rig.await(t, place, last, s.name, shortRest, func(now family) error {
		return errors.Join(now.upToDate(1), value.reported(now), truthful(now))
	}); err != nil {
		return err
	}
	if s.kind.Immutable == "" {
		if err := s.moveAccepted(t, last, 0); err != nil {
			return err
		}
	}
	return s.rig.remove(t, last, s.name)
}

// reported tells whether the conditions say that the value cannot be carried out.
func (h heldBack) reported(now family) error {
	conditionType, status, _ := strings.Cut(h.Condition, "=")
	c := meta.FindStatusCondition(now.conditions(), conditionType)
	if c == nil || string(c.Status) != status || !strings.Contains(c.Message, h.Says) {
		return fmt.Errorf("the condition is %+v, want %s saying %q", c, h.Condition, h.Says)
	}
	return nil
}

// without leaves out an object, and all objects of some kinds.
func without(state map[string]any, key string, kinds []string) map[string]any {
	left := map[string]any{}
	for id, object := range state {
		if kind, _, _ := strings.Cut(id, "/"); id != key && !slices.Contains(kinds, kind) {
			left[id] = object
		}
	}
	return left
}
