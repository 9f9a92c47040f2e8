package rule

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/health"
)

// look is one look at an object, or at the time. What it finds is applied at its end.
type look struct {
	engine    *Engine
	shard     *shard
	o         *Observation
	variables *variables
	effects   Effects
	pending   []func()
}

func (l *look) later(f func()) { l.pending = append(l.pending, f) }

// apply makes what was found count.
func (l *look) apply() {
	before := l.shard.next()
	for _, f := range l.pending {
		f()
	}
	if next := l.shard.next(); !next.IsZero() && (before.IsZero() || next.Before(before)) {
		l.engine.ring()
	}
}

// gone ends all alarms of an object that is gone.
func (l *look) gone(object types.UID) {
	set := l.engine.set.Load()
	for uid, states := range l.shard.states {
		if s := states[object]; s != nil {
			l.drop(uid, s, ObjectDeleted, set, l.o.Time)
		}
	}
	for uid := range l.shard.failing {
		l.fails(uid, Object{UID: object}, nil)
	}
	l.apply()
	l.pending = nil
}

// sweep forgets the state of a rule that is not about an object any more.
func (l *look) sweep(uid types.UID, s *state, set *Set, now time.Time) {
	why := RuleDeleted
	switch r := set.byUID[uid]; {
	case r != nil && r.Suspended:
		why = RuleSuspended
	case r != nil:
		why = NotSelected
	}
	l.drop(uid, s, why, set, now)
}

func (l *look) drop(uid types.UID, s *state, why EndReason, set *Set, now time.Time) {
	if s.Fired != 0 {
		r := set.byUID[uid]
		if r == nil {
			r = &Rule{UID: uid}
		}
		l.effects.Alarms = append(l.effects.Alarms, s.end(r, why, now))
		l.effects.Changed = append(l.effects.Changed, uid)
	}
	l.effects.Saved = append(l.effects.Saved, Saved{Key: keyOf(uid, s.Object.UID)})
	empty := &state{Object: s.Object}
	l.later(func() { l.shard.put(uid, empty) })
}

// at looks at the object for one rule.
func (l *look) at(ctx context.Context, r *Rule) error {
	o := l.o
	was := l.shard.states[r.UID][o.After.UID]
	selected := r.inNamespace(o.After.Namespace)
	if selected && r.labels != nil {
		if err := l.variables.read(); err != nil {
			return nil // its labels are not known, so that nothing is said about it
		}
		selected = matches(r.labels, l.variables.object)
	}
	if !selected {
		if was != nil {
			l.drop(r.UID, was, NotSelected, l.engine.set.Load(), o.Time)
		}
		object := l.object()
		l.later(func() { l.fails(r.UID, object, nil) })
		return nil
	}
	next := &state{Object: l.object(), Print: r.print}
	if was != nil {
		next = was.clone()
		next.renew(r.print)
	}
	if isOlder(o.After.ResourceVersion, next.Seen) {
		return nil
	}
	isNew := len(o.Records) > 0 && o.After.ResourceVersion != next.Seen
	t := &step{rule: r, state: next, now: o.Time, begun: o.Time}
	if isNew {
		t.version = o.After.ResourceVersion
		l.count(r, next)
	}
	if err := l.judge(ctx, t, isNew); err != nil {
		return err
	}
	alarms := t.run()
	for i := range alarms {
		alarms[i].ResourceVersion = o.After.ResourceVersion
	}
	l.keep(r, next, alarms, was)
	return nil
}

// count takes note of changes.
func (l *look) count(r *Rule, s *state) {
	s.Seen = l.o.After.ResourceVersion
	if r.changes != nil {
		s.countChanges(r.changes, l.o.Records)
	}
	if r.fight != nil {
		s.countTurns(r.fight, l.o.Records)
	}
}

// judge evaluates what the object itself says.
func (l *look) judge(ctx context.Context, t *step, isNew bool) error {
	r, s := t.rule, t.state
	if r.stuck != nil {
		if l.variables.read() == nil {
			s.holdBy(r.stuck, l.variables.object)
		}
	}
	var failed error
	if r.when != nil && (isNew || !r.aboutChange) {
		s.When, failed = l.when(ctx, r)
		if errors.Is(failed, errStopped) {
			return failed
		}
	}
	if r.looks {
		s.Look = nextLook(keyOf(r.UID, s.Object.UID), t.now)
	}
	t.again = isNew && r.aboutChange && r.wait == 0 && s.When
	if s.Since == 0 {
		t.begun = l.begun()
	}
	if r.when == nil || s.When {
		if err := l.describe(ctx, r, s, t.again); err != nil {
			if errors.Is(err, errStopped) {
				return err
			}
			failed = err
		}
	}
	object := s.Object
	l.later(func() { l.fails(r.UID, object, failed) })
	return nil
}

func (l *look) fails(rule types.UID, object Object, err error) {
	if l.shard.fails(rule, object, err) {
		l.effects.Changed = append(l.effects.Changed, rule)
	}
}

func (l *look) when(ctx context.Context, r *Rule) (bool, error) {
	if r.reads {
		if err := l.variables.complete(); err != nil {
			return false, err
		}
	}
	return r.when.holds(ctx, l.variables)
}

// describe makes the text of an alarm that may be raised. That of one that stands stays.
func (l *look) describe(ctx context.Context, r *Rule, s *state, again bool) error {
	if s.Fired != 0 && !again {
		return nil
	}
	s.Message, s.Health = "", ""
	if r.message == nil {
		if r.when.reads(varHealth) {
			s.Health = healthSentence(l.o.Health)
		}
		return nil
	}
	if err := l.variables.complete(); err != nil {
		return err
	}
	text, err := r.message.sentence(ctx, l.variables)
	s.Message = text
	return err
}

func healthSentence(v health.Verdict) string {
	text := "is " + string(v.State)
	if v.Reason != "" {
		text += " (" + v.Reason + ")"
	}
	if v.Message != "" {
		text += ": " + v.Message
	}
	return Text(text)
}

// begun is since when something holds that was never seen before: for an object that nobody has changed or written a status of,
// since its creation.
func (l *look) begun() time.Time {
	if l.o.After.Generation > 1 || l.o.After.MetadataOnly || l.variables.read() != nil {
		return l.o.Time
	}
	if status, _ := l.variables.object["status"].(map[string]any); len(status) > 0 {
		return l.o.Time
	}
	if created := timeIn(l.variables.object, "creationTimestamp"); !created.IsZero() && created.Before(l.o.Time) {
		return created
	}
	return l.o.Time
}

// keep remembers a state, and stores it if it is another one.
func (l *look) keep(r *Rule, next *state, alarms []Alarm, was *state) {
	if len(alarms) > 0 {
		l.effects.Alarms = append(l.effects.Alarms, alarms...)
		l.effects.Changed = append(l.effects.Changed, r.UID)
	}
	switch {
	case next.isEmpty() && was == nil:
		return
	case next.isEmpty():
		l.effects.Saved = append(l.effects.Saved, Saved{Key: keyOf(r.UID, next.Object.UID)})
	case was == nil || !sameState(was, next):
		l.effects.Saved = append(l.effects.Saved, next.save(r.UID))
	}
	l.later(func() {
		l.shard.put(r.UID, next)
		for i := range alarms {
			if !alarms[i].Ended {
				l.shard.lastFired[r.UID] = alarms[i].At
			}
		}
	})
}

// sameState reports whether two states are stored alike, but for what a restart may forget.
func sameState(a, b *state) bool {
	x, y := *a, *b
	x.due, y.due = time.Time{}, time.Time{}
	x.Look, y.Look = min(x.Look, 1), min(y.Look, 1)
	return reflect.DeepEqual(x, y)
}

func (l *look) object() Object {
	k, s := l.o.Kind, l.o.After
	object := Object{
		Group: k.Group, Version: k.Version, Kind: k.Kind, Resource: k.Resource, Namespace: s.Namespace, Name: s.Name, UID: s.UID,
	}
	if !s.Created.IsZero() {
		object.Created = s.Created.Unix()
	}
	return object
}

// holdBy notes whether an object is being deleted, and what holds it.
func (s *state) holdBy(rule *stuckRule, object map[string]any) {
	s.Deleting, s.Held = 0, nil
	since := timeIn(object, "deletionTimestamp")
	if since.IsZero() {
		return
	}
	meta, _ := object["metadata"].(map[string]any)
	finalizers, _ := meta["finalizers"].([]any)
	for _, f := range finalizers {
		if name, _ := f.(string); name != "" && rule.names(name) && len(s.Held) < 3 {
			s.Held = append(s.Held, cut(name, 253))
		}
	}
	if len(s.Held) > 0 {
		s.Deleting = since.UnixNano()
	}
}

// isOlder compares versions as the numbers that they are. Of other texts it says nothing.
func isOlder(a, b string) bool {
	first, err := strconv.ParseUint(a, 10, 64)
	second, err2 := strconv.ParseUint(b, 10, 64)
	return err == nil && err2 == nil && first < second
}
