package alarm

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/config"
)

// The way of an alarm: to the webhook, to an Event, to the metrics and to the API, and back when it ends.
func TestAnAlarmIsToldEverywhere(t *testing.T) {
	w := newWorld(t, badRule(1))
	w.webhook.fails = 1 // the first attempt is refused
	l := w.start()
	w.write(l, "a", "Good")
	w.write(l, "b", "Bad")
	w.reported(map[string]int{"+b": 1})
	eventually(t, func() error {
		list, err := l.events.EventsV1().Events("team").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d Events, %w", len(list.Items), err)
		}
		e := list.Items[0]
		if e.Regarding.Name != "b" || e.Regarding.Kind != "Widget" || e.Type != "Warning" || e.Reason != reasonRaised || !strings.HasPrefix(e.Note, "bad (Warning): ") {
			t.Fatalf("the Event is %+v", e)
		}
		return nil
	})
	standing, err := l.alarms.Alarms(t.Context())
	if err != nil || len(standing) != 1 || standing[0].Name != "b" || standing[0].Rule != "bad" || standing[0].Kind != widgets.GroupResource() {
		t.Errorf("the API says %+v (%v)", standing, err)
	}
	rules, err := l.alarms.Rules(t.Context())
	if err != nil || len(rules) != 1 || rules[0].Firing != 1 || rules[0].Summary == "" {
		t.Errorf("the API says %+v (%v)", rules, err)
	}
	for name, want := range map[string]float64{raisedMetric.Name: 1, firingMetric.Name: 1} {
		if got := l.figure(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	w.write(l, "b", "Good")
	w.reported(map[string]int{"+b": 1, "-b": 1})
	if got := w.webhook.got(); got[0].Data.Alarm != got[1].Data.Alarm || got[0].ID == got[1].ID {
		t.Errorf("the alarm and its end are %+v", got)
	}
}

// A series that begins with its first message shows no increase for it.
func TestDeliveriesAreCountedFromZero(t *testing.T) {
	l := newWorld(t).start()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == deliveriesMetric.Name {
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	want := map[string]float64{
		"event sent": 0, "event retried": 0, "event given_up": 0,
		"webhook/on-call sent": 0, "webhook/on-call retried": 0, "webhook/on-call given_up": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the series are %v, want %v", got, want)
	}
}

func TestATimerFiresAfterARestart(t *testing.T) {
	w := newWorld(t, badRule(1, func(s *slipwayv1alpha1.MonitorRuleSpec) { s.For = "2s" }))
	l := w.start()
	w.write(l, "a", "Bad")
	l.end()
	l = w.start()
	w.reported(map[string]int{"+a": 1})
	l.end()
	l = w.start()
	w.write(l, "a", "Good")
	w.reported(map[string]int{"+a": 1, "-a": 1})
}

// What was not delivered before a restart is delivered after it, and what was delivered is not.
func TestNoAlarmIsLostByARestart(t *testing.T) {
	w := newWorld(t, badRule(1))
	want := map[string]int{}
	for round := range 5 {
		w.webhook.mutex.Lock()
		w.webhook.fails = 1
		w.webhook.mutex.Unlock()
		l := w.start()
		for i := range 20 {
			name := fmt.Sprintf("w%d-%d", round, i)
			w.write(l, name, "Bad")
			want["+"+name] = 1
		}
		l.end()
	}
	w.start()
	eventually(t, func() error {
		got := map[string]int{}
		for _, e := range w.webhook.got() {
			got["+"+e.Data.Object.Name] = 1 // at least once
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("the webhook got %d alarms, want %d", len(got), len(want))
		}
		return nil
	})
	ids := map[string]string{}
	for _, e := range w.webhook.got() {
		if other, known := ids[e.Data.Object.Name]; known && other != e.ID {
			t.Errorf("the alarm about %s came with two ids", e.Data.Object.Name)
		}
		ids[e.Data.Object.Name] = e.ID
	}
}

// A rule that is new, or was changed, sees what is there; alarms of one that is gone end; what happened while nobody ran counts.
func TestRulesComeAndGo(t *testing.T) {
	w := newWorld(t)
	l := w.start()
	w.write(l, "a", "Bad")
	w.write(l, "b", "Worse")
	m := badRule(1)
	l.alarms.Put(&m)
	w.reported(map[string]int{"+a": 1})
	m = badRule(2, func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When = "object.status.phase == 'Worse'" })
	l.alarms.Put(&m)
	w.reported(map[string]int{"+a": 1, "-a": 1, "+b": 1})
	l.end()
	w.rules = []slipwayv1alpha1.MonitorRule{badRule(3)} // changed while nobody ran
	l = w.start()
	w.reported(map[string]int{"+a": 2, "-a": 1, "+b": 1, "-b": 1})
	l.end()
	w.rules = nil // deleted while nobody ran
	l = w.start()
	w.reported(map[string]int{"+a": 2, "-a": 2, "+b": 1, "-b": 1})
	if standing, _ := l.alarms.Alarms(t.Context()); len(standing) != 0 {
		t.Errorf("alarms stand: %+v", standing)
	}
	values, err := l.store.Values(t.Context(), "rule/")
	eventually(t, func() error {
		if values, err = l.store.Values(t.Context(), "rule/"); err == nil && len(values) > 0 {
			return fmt.Errorf("%d states are still stored", len(values))
		}
		return err
	})
}

// Before the rules are known none counts as gone.
func TestNothingEndsBeforeTheRulesAreKnown(t *testing.T) {
	w := newWorld(t, badRule(1))
	l := w.start()
	w.write(l, "a", "Bad")
	w.reported(map[string]int{"+a": 1})
	l.end()
	l = w.start()
	l.alarms.known.Store(false)
	l.alarms.Remove("bad")
	w.write(l, "b", "Good")
	l.alarms.Replace([]slipwayv1alpha1.MonitorRule{badRule(1)})
	w.write(l, "c", "Bad")
	w.reported(map[string]int{"+a": 1, "+c": 1})
}

func TestProblemsAreToldAndEndTheAlarms(t *testing.T) {
	w := newWorld(t, badRule(1))
	l := w.start()
	w.write(l, "a", "Bad")
	w.reported(map[string]int{"+a": 1})
	m := badRule(2, func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When = "objekt == 1" })
	if problems := l.alarms.Put(&m); len(problems) != 1 || problems[0].Field != "spec.when" {
		t.Errorf("the problems are %v", problems)
	}
	w.reported(map[string]int{"+a": 1, "-a": 1})
	if rules, _ := l.alarms.Rules(t.Context()); len(rules) != 1 || !strings.Contains(rules[0].Problem, "spec.when") {
		t.Errorf("the API says %+v", rules)
	}
}

// An object that changes all the time does not fill the namespace with Events.
func TestEventsOfOneObjectAreLimited(t *testing.T) {
	w := newWorld(t, badRule(1, func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When = "changes.exists(c, true)" }))
	l := w.start()
	const changes = 40
	for i := range changes {
		w.write(l, "a", fmt.Sprint(i))
	}
	want := map[string]int{"+a": changes - 1} // the first is seen for the first time: nothing is known to have changed
	w.reported(want)
	eventually(t, func() error {
		if n, err := l.store.Waiting(t.Context()); err != nil || n > 0 {
			return fmt.Errorf("%d messages wait (%w)", n, err)
		}
		return nil
	})
	list, err := l.events.EventsV1().Events("team").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != eventBurst {
		for _, e := range list.Items {
			t.Log(e.Name, e.Note)
		}
		t.Errorf("%d Events (%v), want %d", len(list.Items), err, eventBurst)
	}
}

// An Event that cannot be made is tried again, and keeps up no webhook.
func TestAnEventIsTriedAgain(t *testing.T) {
	w := newWorld(t, badRule(1))
	l := w.start()
	tries := 0
	l.events.PrependReactor("create", "events", func(kubetesting.Action) (bool, runtime.Object, error) {
		tries++
		return tries == 1, nil, errors.New("away")
	})
	w.write(l, "a", "Bad")
	w.reported(map[string]int{"+a": 1})
	eventually(t, func() error {
		list, err := l.events.EventsV1().Events("team").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d Events, %w", len(list.Items), err)
		}
		return nil
	})
}

func TestWebhooksReadTheirFiles(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, empty := file("key", "s3cret\n"), file("empty", "\n")
	for name, test := range map[string]struct {
		webhook config.Webhook
		problem string
	}{
		"without files":     {config.Webhook{Name: "a", URL: "https://a.example.com/x"}, ""},
		"a key":             {config.Webhook{Name: "a", URL: "https://a.example.com/x", SecretFile: good}, ""},
		"an empty key":      {config.Webhook{Name: "a", URL: "https://a.example.com/x", SecretFile: empty}, "it is empty"},
		"a key not there":   {config.Webhook{Name: "a", URL: "https://a.example.com/x", SecretFile: folder + "/none"}, "secretFile"},
		"no certificate":    {config.Webhook{Name: "a", URL: "https://a.example.com/x", CAFile: good}, "no certificate"},
		"no such severity":  {config.Webhook{Name: "a", URL: "https://a.example.com/x", MinimumSeverity: "Bad"}, "minSeverity"},
		"not of the secret": {config.Webhook{Name: "a", URL: "s3cret", SecretFile: good}, "url"},
	} {
		webhooks, err := Webhooks([]config.Webhook{test.webhook})
		if (err == nil) != (test.problem == "") || err != nil && (!strings.Contains(err.Error(), test.problem) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: %v, want %q", name, err, test.problem)
		}
		if err == nil && webhooks["a"] == nil {
			t.Errorf("%s: it is not there", name)
		}
	}
}
