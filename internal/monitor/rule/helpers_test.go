package rule

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

var (
	start  = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	widget = change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
)

type spec = slipwayv1alpha1.MonitorRuleSpec

func monitorRule(s spec) *slipwayv1alpha1.MonitorRule {
	return &slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "rule-1", Generation: 1}, Spec: s}
}

func compiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t testing.TB, s spec) *Rule {
	t.Helper()
	return compileFull(t, monitorRule(s))
}

func compileFull(t testing.TB, m *slipwayv1alpha1.MonitorRule) *Rule {
	t.Helper()
	r, problems := compiler(t).Compile(m)
	if len(problems) > 0 {
		t.Fatal(Sentence(problems))
	}
	return r
}

// world plays a history of one object to an engine, and keeps what is stored.
type world struct {
	t      *testing.T
	engine *Engine
	rules  []*Rule
	stored map[string][]byte
	now    time.Time
	rv     int
	last   *change.State
	verd   health.Verdict
	alarms []Alarm
	// changed are the rules whose status changed.
	changed []types.UID
}

func newWorld(t *testing.T, rules ...*Rule) *world {
	w := &world{t: t, engine: NewEngine(), rules: rules, stored: map[string][]byte{}, now: start}
	w.engine.SetRules(rules)
	return w
}

func (w *world) take(e Effects) {
	for _, s := range e.Saved {
		if s.Data == nil {
			delete(w.stored, s.Key)
			continue
		}
		w.stored[s.Key] = s.Data
	}
	w.alarms = append(w.alarms, e.Alarms...)
	w.changed = append(w.changed, e.Changed...)
	for range e.Look {
		w.review()
	}
}

func (w *world) observe(o Observation) {
	w.t.Helper()
	o.Kind, o.Time, o.Health = widget, w.now, w.verd
	e, err := w.engine.Observe(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.take(e)
}

// write changes the object: body is the object without apiVersion, kind and the name.
func (w *world) write(body string, by string, paths ...string) {
	w.t.Helper()
	w.rv++
	w.replay(body, by, paths...)
}

// replay writes the same version again.
func (w *world) replay(body string, by string, paths ...string) {
	w.t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		w.t.Fatal(err)
	}
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"], meta["uid"] = "a", "team-a", "object-1"
	if meta["creationTimestamp"] == nil {
		meta["creationTimestamp"] = start.Format(time.RFC3339)
	}
	object["metadata"], object["apiVersion"], object["kind"] = meta, "example.com/v1", "Widget"
	raw, err := json.Marshal(object)
	if err != nil {
		w.t.Fatal(err)
	}
	after := &change.State{Namespace: "team-a", Name: "a", UID: "object-1", ResourceVersion: fmt.Sprint(w.rv), Generation: int64(w.rv), Body: raw}
	record := change.Record{
		Kind: widget, Namespace: "team-a", Name: "a", UID: "object-1", ResourceVersion: after.ResourceVersion, Type: change.Updated, Time: w.now,
		Actor: change.Actor{Name: by, Confidence: change.Likely},
	}
	if w.last == nil {
		record.Type = change.Created
	}
	for _, path := range paths {
		record.Fields = append(record.Fields, change.Field{Path: path, Op: change.Changed, Old: []byte("1"), New: []byte("2")})
	}
	w.observe(Observation{Records: []change.Record{record}, Before: w.last, After: after})
	w.last = after
}

// review lets the engine see the object without a change.
func (w *world) review() {
	w.t.Helper()
	w.observe(Observation{Before: w.last, After: w.last})
}

func (w *world) remove() {
	w.t.Helper()
	w.observe(Observation{Before: w.last, Records: []change.Record{{Kind: widget, Type: change.Deleted, UID: "object-1", Time: w.now}}})
}

// pass lets time pass, and ticks whenever something is due.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for range 10_000 {
		next := w.engine.Next(widget.GroupResource())
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		if next.After(w.now) {
			w.now = next
		}
		w.take(w.engine.Tick(widget.GroupResource(), w.now))
	}
	w.t.Fatal("it is due for ever")
}

// restart forgets everything but what is stored.
func (w *world) restart() {
	w.t.Helper()
	var saved []Saved
	for key, data := range w.stored {
		saved = append(saved, Saved{key, data})
	}
	w.engine = NewEngine()
	w.engine.SetRules(w.rules)
	if damaged := w.engine.Load(saved); len(damaged) > 0 {
		w.t.Fatalf("cannot be read: %q", damaged)
	}
}

// wants compares what was raised and ended since the last call: + and the minute since the start, - and the minute and why.
func (w *world) wants(want ...string) {
	w.t.Helper()
	var got []string
	for _, a := range w.alarms {
		sign, why := "+", ""
		if a.Ended {
			sign, why = "-", " "+string(a.Reason)
		}
		got = append(got, fmt.Sprintf("%s%s%s", sign, inWords(a.At.Sub(start)), why))
	}
	w.alarms = nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("alarms are %q, want %q", got, want)
	}
}

func rename(r *Rule, uid types.UID) *Rule {
	c := *r
	c.UID = uid
	return &c
}
