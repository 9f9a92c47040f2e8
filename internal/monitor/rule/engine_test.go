package rule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

const (
	bad  = `{"status":{"phase":"Bad"}}`
	good = `{"status":{"phase":"Good"}}`
)

func badFor(wait slipwayv1alpha1.Duration) spec {
	return spec{When: "has(object.status) && object.status.phase == 'Bad'", For: wait}
}

func TestHistories(t *testing.T) {
	for name, test := range map[string]struct {
		spec spec
		play func(w *world)
	}{
		"a state raises one alarm, and its end ends it": {badFor(""), func(w *world) {
			w.write(good, "x")
			w.wants()
			w.write(bad, "x")
			w.write(bad, "x")
			w.wants("+0s")
			w.pass(time.Minute)
			w.write(good, "x")
			w.wants("-1m Resolved")
		}},
		"it has to hold without a break": {badFor("5m"), func(w *world) {
			w.write(bad, "x")
			w.pass(4 * time.Minute)
			w.write(good, "x")
			w.write(bad, "x")
			w.pass(4 * time.Minute)
			w.wants()
			w.pass(time.Hour)
			w.wants("+9m")
		}},
		"a restart loses no time": {badFor("5m"), func(w *world) {
			w.write(bad, "x")
			w.pass(4 * time.Minute)
			w.restart()
			w.pass(30 * time.Second)
			w.wants()
			w.pass(time.Hour)
			w.wants("+5m")
			w.restart()
			w.pass(time.Hour)
			w.review()
			w.wants()
			w.write(good, "x")
			w.wants("-2h4m30s Resolved")
		}},
		"a replay changes nothing": {badFor("1m"), func(w *world) {
			w.write(bad, "x")
			w.replay(bad, "x")
			w.pass(time.Hour)
			w.replay(bad, "x")
			w.wants("+1m")
		}},
		"an object that is gone has no alarm": {badFor(""), func(w *world) {
			w.write(bad, "x")
			w.remove()
			w.wants("+0s", "-0s ObjectDeleted")
			if len(w.stored) > 0 {
				w.t.Errorf("still stored: %v", w.stored)
			}
		}},
		"absence counts from the creation": {spec{When: "!has(object.status)", For: "5m"}, func(w *world) {
			w.now = start.Add(3 * time.Minute)
			w.write(`{}`, "x")
			w.pass(time.Hour)
			w.wants("+5m")
		}},
		"a spec that was changed says nothing about the creation": {spec{When: "object.spec.n == 1", For: "5m"}, func(w *world) {
			w.rv, w.now = 7, start.Add(time.Hour)
			w.write(`{"spec":{"n":1}}`, "x")
			w.pass(4 * time.Minute)
			w.wants()
		}},
		"a clock that is set back fires late, not early": {badFor("5m"), func(w *world) {
			w.write(bad, "x")
			w.pass(4 * time.Minute)
			w.take(w.engine.Tick(widget.GroupResource(), w.now))
			w.now = start.Add(-time.Hour)
			w.take(w.engine.Tick(widget.GroupResource(), w.now))
			w.pass(4 * time.Minute)
			w.wants()
			w.pass(2 * time.Minute)
			w.wants("+-55m")
		}},
		"a clock that is set forward fires once": {badFor("5m"), func(w *world) {
			w.write(bad, "x")
			w.now = start.Add(1000 * time.Hour)
			w.pass(time.Hour)
			w.wants("+1000h")
		}},
		"the health that time changes": {spec{When: "health.state == 'Failed'", For: "5m"}, func(w *world) {
			w.write(bad, "x")
			w.pass(time.Minute)
			w.verd = health.Verdict{State: health.Failed, Reason: "Late", Message: "too late"}
			w.review()
			w.pass(time.Hour)
			if got, want := w.alarms[0].Message, "is Failed (Late): too late, for at least 5m"; got != want {
				w.t.Errorf("the message is %q, want %q", got, want)
			}
			w.wants("+6m")
		}},
		"an expression that reads the time is evaluated again": {spec{When: "now > timestamp('2026-11-01T13:00:00Z')"}, func(w *world) {
			w.write(good, "x")
			w.pass(50 * time.Minute)
			w.wants()
			w.pass(20 * time.Minute)
			if len(w.alarms) != 1 || w.alarms[0].At.Sub(start) > 66*time.Minute {
				w.t.Errorf("alarms: %v", w.alarms)
			}
		}},
		"an object that is not selected any more": {spec{When: "true", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, func(w *world) {
			w.write(`{"metadata":{"labels":{"a":"b"}}}`, "x")
			w.write(good, "x")
			w.wants("+0s", "-0s NotSelected")
		}},
		"an expression that fails counts as false": {spec{When: "object.status.missing == 1"}, func(w *world) {
			w.write(good, "x")
			w.wants()
			if len(w.changed) != 1 {
				w.t.Errorf("changed is %v", w.changed)
			}
			s := w.engine.Status("rule-1")
			if s.Failing != 1 || s.FailedFor.Name != "a" || !strings.Contains(s.Failure, "missing") {
				w.t.Errorf("the status is %+v", s)
			}
			w.write(`{"status":{"missing":1}}`, "x")
			w.wants("+0s")
			if s := w.engine.Status("rule-1"); s.Failing != 0 || s.Firing != 1 || s.Objects[0].Object.Name != "a" || !s.LastFired.Equal(start) {
				w.t.Errorf("the status is %+v", s)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) { test.play(newWorld(t, compile(t, test.spec))) })
	}
}

func TestHistoriesOfChanges(t *testing.T) {
	stuck := `{"metadata":{"deletionTimestamp":"2026-11-01T12:00:00Z","finalizers":["a.example.com/x","b.example.org/y"]}}`
	for name, test := range map[string]struct {
		spec spec
		play func(w *world)
	}{
		"each change of that kind raises an alarm": {spec{When: "changes.exists(c, c.path == '.spec.image' && c.new == 2)"}, func(w *world) {
			w.write(good, "x")
			w.write(good, "x", ".spec.image")
			w.write(good, "x", ".spec.image")
			w.replay(good, "x", ".spec.image")
			w.review()
			w.wants("+0s", "+0s")
			w.write(good, "x", ".spec.other")
			w.wants("-0s Resolved")
		}},
		"too many changes, until there are fewer": {spec{Changes: &slipwayv1alpha1.MonitorChanges{Count: 3, Within: "1m", Paths: []string{"spec"}}}, func(w *world) {
			w.write(good, "x")
			w.write(good, "x", ".spec.a")
			w.replay(good, "x", ".spec.a")
			w.write(good, "x", ".specialty", ".status.b")
			w.restart()
			w.pass(10 * time.Second)
			w.write(good, "x", ".spec")
			w.wants()
			w.pass(10 * time.Second)
			w.write(good, "x", ".spec.a.b")
			w.wants("+20s")
			w.pass(time.Hour)
			w.wants("-1m Resolved")
			if len(w.stored) > 0 {
				w.t.Errorf("still stored: %v", w.stored)
			}
		}},
		"slow changes are not too many": {spec{Changes: &slipwayv1alpha1.MonitorChanges{Count: 3, Within: "1m"}}, func(w *world) {
			for range 20 {
				w.write(good, "x", ".spec.a")
				w.pass(31 * time.Second)
			}
			w.wants()
		}},
		"two managers fight": {spec{Fight: &slipwayv1alpha1.MonitorFight{Turns: 3, Within: "10m"}}, func(w *world) {
			w.write(good, "x")
			for _, by := range []string{"hpa", "argo", "argo", "hpa"} {
				w.write(good, by, ".spec.replicas")
				w.restart()
			}
			w.write(good, "other", ".spec.image")
			w.wants()
			w.write(good, "argo", ".spec.replicas")
			if !strings.Contains(w.alarms[0].Message, `.spec.replicas is rewritten in turn by "argo" and "hpa"`) {
				w.t.Errorf("the message is %q", w.alarms[0].Message)
			}
			w.wants("+0s")
			w.pass(time.Hour)
			w.wants("-10m Resolved")
		}},
		"two managers of two fields do not fight": {spec{Fight: &slipwayv1alpha1.MonitorFight{Turns: 3, Within: "10m"}}, func(w *world) {
			for range 10 {
				w.write(good, "hpa", ".spec.replicas")
				w.write(good, "argo", ".spec.image")
			}
			w.wants()
		}},
		"a deletion is stuck": {spec{StuckDeletion: &slipwayv1alpha1.MonitorStuckDeletion{After: "15m", Finalizers: []string{"*.org/y"}}}, func(w *world) {
			w.write(stuck, "x")
			w.pass(14 * time.Minute)
			w.restart()
			w.wants()
			w.pass(time.Hour)
			if !strings.Contains(w.alarms[0].Message, `held by the finalizer "b.example.org/y"`) {
				w.t.Errorf("the message is %q", w.alarms[0].Message)
			}
			w.wants("+15m")
			w.write(strings.Replace(stuck, `,"b.example.org/y"`, "", 1), "x")
			w.wants("-1h14m Resolved")
		}},
		"a stuck deletion has the text of its rule": {spec{
			StuckDeletion: &slipwayv1alpha1.MonitorStuckDeletion{After: "15m"}, When: "health.state != 'Healthy'", Message: "object.metadata.name + ' hangs'",
		}, func(w *world) {
			w.write(stuck, "x")
			w.restart()
			w.pass(time.Hour)
			if len(w.alarms) != 1 || w.alarms[0].Message != "a hangs" {
				w.t.Errorf("the alarms are %+v", w.alarms)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) { test.play(newWorld(t, compile(t, test.spec))) })
	}
}

// Only the metadata is known of an object whose secrets could not be found: it is not an object without a status.
func TestWhatIsNotKnownIsNotAbsent(t *testing.T) {
	w := newWorld(t, compile(t, spec{When: "!has(object.status)"}))
	w.observe(Observation{After: &change.State{UID: "object-1", Name: "a", Namespace: "n", ResourceVersion: "1", MetadataOnly: true, Body: []byte(`{"metadata":{}}`)}})
	w.wants()
}

func TestRulesThatGoOrChange(t *testing.T) {
	m := monitorRule(badFor(""))
	edit := func(change func(*slipwayv1alpha1.MonitorRule)) *Rule {
		next := m.DeepCopy()
		next.Generation = 2
		change(next)
		return compileFull(t, next)
	}
	for name, test := range map[string]struct {
		next []*Rule
		want []string
	}{
		"deleted":            {nil, []string{"-0s RuleDeleted"}},
		"suspended":          {[]*Rule{edit(func(m *slipwayv1alpha1.MonitorRule) { m.Spec.Suspend = true })}, []string{"-0s RuleSuspended"}},
		"another kind":       {[]*Rule{edit(func(m *slipwayv1alpha1.MonitorRule) { m.Spec.Kinds = []slipwayv1alpha1.MonitoredKind{{Kind: "Pod"}} })}, []string{"-0s NotSelected"}},
		"does not hold now":  {[]*Rule{edit(func(m *slipwayv1alpha1.MonitorRule) { m.Spec.When = "false" })}, []string{"-0s Resolved"}},
		"holds all the same": {[]*Rule{edit(func(m *slipwayv1alpha1.MonitorRule) { m.Spec.When = "true" })}, nil},
		"another severity":   {[]*Rule{edit(func(m *slipwayv1alpha1.MonitorRule) { m.Spec.Severity = "Critical" })}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, compileFull(t, m))
			w.write(bad, "x")
			w.wants("+0s")
			w.rules = test.next
			w.engine.SetRules(test.next)
			w.restart()
			w.take(w.engine.Sweep(widget.GroupResource(), w.now))
			w.pass(0)
			w.review()
			w.wants(test.want...)
		})
	}
}

func TestTheKeyOfAnAlarmIsThatOfItsChange(t *testing.T) {
	r := compile(t, badFor(""))
	keys := func(rv int, r *Rule) string {
		w := newWorld(t, r)
		w.rv = rv
		w.write(bad, "x")
		w.now = w.now.Add(time.Hour)
		w.write(good, "x")
		if got := w.alarms[0].ResourceVersion; got != fmt.Sprint(w.rv-1) {
			t.Errorf("the alarm is of version %q, and the change of %d", got, w.rv-1)
		}
		if w.alarms[1].Raised != w.alarms[0].Key || w.alarms[1].Key == w.alarms[0].Key {
			t.Errorf("the keys are %+v", w.alarms)
		}
		return w.alarms[0].Key
	}
	if first, again := keys(3, r), keys(3, r); first != again {
		t.Error("the same change has two keys")
	}
	if keys(3, r) == keys(4, r) || keys(3, r) == keys(3, rename(r, "rule-2")) {
		t.Error("two alarms have one key")
	}
}

// Definitions may come and go for years, each with a name of its own.
func TestNothingIsLeftOfAKindWithoutObjects(t *testing.T) {
	w := newWorld(t, compile(t, badFor("5m")))
	w.write(bad, "x")
	if kinds := w.engine.Kinds(); len(kinds) != 1 {
		t.Fatalf("it remembers %v, want the kind with a state", kinds)
	}
	w.remove()
	if kinds := w.engine.Kinds(); len(kinds) != 0 {
		t.Errorf("it remembers %v", kinds)
	}
	found := 0
	w.engine.set.Load().byKind.Range(func(any, any) bool { found++; return true })
	if found != 0 {
		t.Errorf("it remembers the rules for %d kinds", found)
	}
	w.write(bad, "x")
	w.pass(time.Hour)
	w.wants("+5m")
}
