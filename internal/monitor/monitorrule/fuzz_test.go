package monitorrule

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// Whatever the engine says, a rule is Ready only if it is evaluated as it is written, and what the status says fits the schema.
func FuzzStatus(f *testing.F) {
	generate.Seed(f, 60)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := generate.From(data)
		m := &slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: "bad", UID: "rule", Generation: int64(g.Below(9))}}
		m.Spec.Suspend = g.Below(4) == 0
		if g.Maybe() {
			m.Status.LastFired = &metav1.Time{Time: now}
		}
		s := &scope{rule: m}
		if g.Below(3) == 0 {
			s.problems = []rule.Problem{{Field: "spec.when", Line: g.Below(3), Message: g.Text()}}
		}
		if g.Below(3) == 0 {
			s.unknown = []string{"on-call"}
		}
		s.seen = rule.Status{Firing: g.Below(100), Failing: g.Below(2), Reviewed: g.Below(4) > 0, Failure: g.Text(), LastFired: now.Add(time.Duration(g.Below(5)-2) * time.Minute)}
		for range min(s.seen.Firing, rule.MaxObjects) {
			s.seen.Objects = append(s.seen.Objects, rule.Standing{
				Object: rule.Object{Kind: g.Text(), Name: strings.Repeat(g.Text(), 9), Namespace: g.Text()}, Message: strings.Repeat(g.Text(), 99), Since: now,
			})
		}
		status := s.status(now)
		ready := meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionReady)
		if g.Below(3) == 0 {
			s.unknownKinds = []string{"Nothing.example.com"}
			status = s.status(now)
			ready = meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionReady)
		}
		evaluated := s.seen.Reviewed && s.seen.Failing == 0 && len(s.unknownKinds) == 0
		if want := len(s.problems) == 0 && len(s.unknown) == 0 && !m.Spec.Suspend && evaluated; ready != want {
			t.Errorf("Ready is %v, want %v: %+v", ready, want, s)
		}
		if meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionStalled) != (len(s.problems)+len(s.unknown) > 0) {
			t.Errorf("Stalled is wrong: %+v", status.Conditions)
		}
		if int(status.Firing) != s.seen.Firing || status.ObservedGeneration != m.Generation || len(status.Objects) > 20 {
			t.Errorf("the status is %+v", status)
		}
		if before := m.Status.LastFired; before != nil && (status.LastFired == nil || status.LastFired.Before(before)) {
			t.Errorf("it fired last at %v, which was %v before", status.LastFired, before)
		}
		for _, o := range status.Objects {
			if len(o.Message) > 1024 || len(o.Name) > 253 || len(o.Kind) > 63 || len(o.Namespace) > 63 {
				t.Errorf("too long: %+v", o)
			}
		}
		again := m.DeepCopy()
		again.Status = status
		s.rule = again
		if next := s.status(now.Add(time.Hour)); !equal(next, status) {
			t.Errorf("the same again is %+v, and was %+v", next, status)
		}
	})
}

func equal(a, b slipwayv1alpha1.MonitorRuleStatus) bool {
	if len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		if a.Conditions[i] != b.Conditions[i] {
			return false
		}
	}
	return a.Firing == b.Firing && a.LastFired.Equal(b.LastFired)
}
