package alarm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/notify"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

var widgets = change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: "d1"}

// receiver is a webhook that remembers what it got.
type receiver struct {
	*httptest.Server
	mutex sync.Mutex
	// fails is how many requests are refused first.
	fails  int
	events []notify.Event
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		event := notify.Event{}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.fails > 0 || json.Unmarshal(body, &event) != nil {
			r.fails--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.events = append(r.events, event)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []notify.Event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]notify.Event(nil), r.events...)
}

// life is the monitor between two restarts, without a cluster.
type life struct {
	t        *testing.T
	store    *store.Store
	alarms   *Alarms
	recorder *recorder.Recorder
	journal  supervisor.Journal
	registry *prometheus.Registry
	events   *fake.Clientset
	end      func()
}

// world is what outlives a restart.
type world struct {
	t       *testing.T
	folder  string
	webhook *receiver
	version int
	rules   []slipwayv1alpha1.MonitorRule
}

func newWorld(t *testing.T, rules ...slipwayv1alpha1.MonitorRule) *world {
	return &world{t: t, folder: t.TempDir(), webhook: newReceiver(t), rules: rules}
}

func (w *world) start() *life {
	t := w.t
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: w.folder})
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, store: s, registry: prometheus.NewRegistry(), events: fake.NewClientset()}
	hook, err := notify.NewWebhook(notify.Config{Name: "on-call", URL: w.webhook.URL})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	l.alarms, err = New(t.Context(), Options{
		Store: s, Webhooks: map[string]*notify.Webhook{"on-call": hook}, Events: l.events.EventsV1(), Clock: clock.RealClock{}, Log: log, Registry: l.registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	l.alarms.Replace(w.rules)
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	l.recorder, err = recorder.New(t.Context(), recorder.Options{Store: s, Policy: policy, Observer: l.alarms, Clock: clock.RealClock{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.recorder.Known(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.journal, err = l.recorder.Open(t.Context(), widgets, supervisor.Schema{}); err != nil {
		t.Fatal(err)
	}
	if l.journal.Resume() == "" {
		l.must(l.journal.BeginList(t.Context(), supervisor.Gap{}))
		l.must(l.journal.EndList(t.Context(), strconv.Itoa(w.version+1), true))
		w.version++
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { l.alarms.Run(ctx, l.recorder, func(schema.GroupResource) bool { return true }) })
	l.end = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		last, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := l.recorder.Close(last); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.end)
	return l
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// write writes the phase of an object.
func (w *world) write(l *life, name, phase string) {
	w.t.Helper()
	w.version++
	kind := supervisor.Modified
	uid := types.UID("uid-" + name)
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"name": name, "namespace": "team", "uid": uid, "resourceVersion": strconv.Itoa(w.version), "generation": 2,
			"creationTimestamp": time.Now().UTC().Format(time.RFC3339),
		},
		"status": map[string]any{"phase": phase},
	})
	l.must(l.journal.Event(w.t.Context(), supervisor.Event{Type: kind, Object: supervisor.Object{
		Namespace: "team", Name: name, UID: uid, ResourceVersion: strconv.Itoa(w.version), Raw: raw,
	}}))
}

// badRule raises an alarm for objects whose phase is Bad.
func badRule(generation int64, change ...func(*slipwayv1alpha1.MonitorRuleSpec)) slipwayv1alpha1.MonitorRule {
	m := slipwayv1alpha1.MonitorRule{
		ObjectMeta: metav1.ObjectMeta{Name: "bad", UID: "rule-1", Generation: generation},
		Spec: slipwayv1alpha1.MonitorRuleSpec{
			When: "object.status.phase == 'Bad'", Outputs: &slipwayv1alpha1.MonitorOutputs{Webhooks: []string{"on-call"}},
		},
	}
	for _, do := range change {
		do(&m.Spec)
	}
	return m
}

// eventually waits until check returns nil.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// reported wants the webhook to have got these, in any order: raised or ended, and the object. The same message twice counts once.
func (w *world) reported(want map[string]int) {
	w.t.Helper()
	eventually(w.t, func() error {
		got, seen := map[string]int{}, map[string]bool{}
		for _, e := range w.webhook.got() {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			got[map[string]string{notify.TypeRaised: "+", notify.TypeEnded: "-"}[e.Type]+e.Data.Object.Name]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the webhook got %v, want %v", got, want)
		}
		return nil
	})
}

// figure is the sum of all series of a metric.
func (l *life) figure(name string) (sum float64) {
	l.t.Helper()
	families, err := l.registry.Gather()
	l.must(err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
