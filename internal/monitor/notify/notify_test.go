package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// memory is an outbox. It outlives senders, as the store outlives the process.
type memory struct {
	mutex    sync.Mutex
	last     int64
	messages map[int64]store.Message
	// forgets makes Delivered fail: the process died between the delivery and its note.
	forgets bool
}

func newMemory() *memory { return &memory{messages: map[int64]store.Message{}} }

func (o *memory) add(key, output, body string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last++
	o.messages[o.last] = store.Message{ID: o.last, Key: key, Output: output, Body: []byte(body), Created: start, Next: start}
}

func (o *memory) NextMessages(_ context.Context, now time.Time, limit int, except ...string) (due []store.Message, next time.Time, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, m := range o.messages {
		switch {
		case slices.Contains(except, m.Output):
		case !m.Next.After(now):
			due = append(due, m)
		case next.IsZero() || m.Next.Before(next):
			next = m.Next
		}
	}
	slices.SortFunc(due, func(a, b store.Message) int { return int(a.ID - b.ID) })
	return due[:min(len(due), limit)], next, nil
}

func (o *memory) Delivered(_ context.Context, ids ...int64) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.forgets {
		return errors.New("killed")
	}
	for _, id := range ids {
		delete(o.messages, id)
	}
	return nil
}

func (o *memory) Failed(_ context.Context, id int64, next time.Time) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	m := o.messages[id]
	m.Attempts++
	m.Next = next
	o.messages[id] = m
	return nil
}

func (o *memory) all() []store.Message {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var list []store.Message
	for _, m := range o.messages {
		list = append(list, m)
	}
	return list
}

func webhook(t *testing.T, config Config) *Webhook {
	t.Helper()
	w, err := NewWebhook(config)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// drain runs rounds until nothing is due any more.
func drain(t *testing.T, s *Sender) {
	t.Helper()
	for range 100 {
		messages, _, _ := s.options.Outbox.NextMessages(t.Context(), s.options.Clock.Now(), 1)
		if len(messages) == 0 {
			return
		}
		var queues sync.WaitGroup
		s.round(t.Context(), &queues)
		queues.Wait()
	}
}

type fixture struct {
	outbox *memory
	clock  *clocktesting.FakeClock
	log    *strings.Builder
	sender *Sender
	mutex  sync.Mutex
	done   map[Result]int
}

func newFixture(t *testing.T, hooks map[string]*Webhook) *fixture {
	t.Helper()
	f := &fixture{outbox: newMemory(), clock: clocktesting.NewFakeClock(start), log: &strings.Builder{}, done: map[Result]int{}}
	f.sender = NewSender(Options{
		Outbox: f.outbox, Webhooks: hooks, Clock: f.clock, Log: slog.New(slog.NewTextHandler(&locked{w: f.log}, nil)), Random: func() float64 { return 0 },
		Done: func(_ string, r Result) {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			f.done[r]++
		},
	})
	return f
}

type locked struct {
	mutex sync.Mutex
	w     io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.w.Write(p)
}

func TestARequestIsASignedCloudEvent(t *testing.T) {
	secret := []byte("s3cret")
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	hooks := map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: server.URL, Secret: secret})}
	f := newFixture(t, hooks)
	alarm := &rule.Alarm{
		Key: "k", Raised: "k", Rule: "r", Severity: slipwayv1alpha1.SeverityWarning, Message: "a\x1b[31m", Webhooks: []string{"h", "missing"}, Event: true,
		Object: rule.Object{Group: "example.com", Kind: "Widget", Namespace: "n", Name: "a", UID: "u"}, Since: start, At: start,
	}
	messages := Messages(alarm, hooks, "cluster")
	if len(messages) != 2 || messages[0].Output != "event/n" || messages[0].Key != "k/event" || messages[1].Output != "webhook/h/n" || messages[1].Key != "k/webhook/h" {
		t.Fatalf("the messages are %+v", messages)
	}
	f.outbox.add(messages[1].Key, messages[1].Output, string(messages[1].Body))
	drain(t, f.sender)
	if got == nil {
		t.Fatal("nothing came")
	}
	if typ := got.Header.Get("Content-Type"); !strings.HasPrefix(typ, "application/cloudevents+json") {
		t.Errorf("the content type is %q", typ)
	}
	timestamp, signature := got.Header.Get(HeaderTimestamp), got.Header.Get(HeaderSignature)
	if !Verify(secret, timestamp, signature, body, start, time.Minute) {
		t.Error("the signature is wrong")
	}
	for what, ok := range map[string]bool{
		"another secret": Verify([]byte("x"), timestamp, signature, body, start, time.Minute),
		"another body":   Verify(secret, timestamp, signature, append(body, ' '), start, time.Minute),
		"another time":   Verify(secret, "1", signature, body, start, time.Minute),
		"an old one":     Verify(secret, timestamp, signature, body, start.Add(time.Hour), time.Minute),
	} {
		if ok {
			t.Errorf("%s is taken", what)
		}
	}
	var event Event
	if err := json.Unmarshal(body, &event); err != nil {
		t.Fatal(err)
	}
	if event.SpecVersion != "1.0" || event.ID != "k" || event.Type != TypeRaised || event.Source != "cluster" || event.Subject != "n/Widget/a" {
		t.Errorf("the event is %+v", event)
	}
	if want := `a\u001b[31m`; event.Data.Message != want {
		t.Errorf("the message is %q, want %q", event.Data.Message, want)
	}
}

func TestMinimumSeverity(t *testing.T) {
	hooks := map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: "https://x", MinSeverity: slipwayv1alpha1.SeverityWarning})}
	for severity, want := range map[slipwayv1alpha1.MonitorSeverity]int{"Info": 0, "Warning": 1, "Critical": 1} {
		if got := len(Messages(&rule.Alarm{Severity: severity, Webhooks: []string{"h"}}, hooks, "")); got != want {
			t.Errorf("%s: %d messages, want %d", severity, got, want)
		}
	}
}

// What a server does that is broken or hostile: the message is tried again, arrives in the end, and nothing secret is logged.
func TestWhatGoesWrongIsTriedAgain(t *testing.T) {
	elsewhere := atomic.Int32{}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, wrong := range map[string]func(http.ResponseWriter, *http.Request){
		"500": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "s3cret")
		},
		"404": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"dropped": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"huge headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) <= 3 {
					wrong(w, r)
				}
			}))
			defer server.Close()
			f := newFixture(t, map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: server.URL + "/s3cret"})})
			f.outbox.add("k", "webhook/h", "{}")
			for i := range 4 {
				drain(t, f.sender)
				f.clock.Step(time.Second << i)
			}
			if len(f.outbox.all()) != 0 || f.done[Sent] != 1 || f.done[Retried] != 3 {
				t.Errorf("left are %v, results %v", f.outbox.all(), f.done)
			}
			if strings.Contains(f.log.String(), "s3cret") {
				t.Errorf("the log has a secret:\n%s", f.log)
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

func TestAHugeAnswerIsNotRead(t *testing.T) {
	var wrote atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			n, err := w.Write(make([]byte, 1<<20))
			wrote.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	f := newFixture(t, map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: server.URL})})
	f.outbox.add("k", "webhook/h", "{}")
	drain(t, f.sender)
	server.Close()
	if f.done[Sent] != 1 || wrote.Load() > 100<<20 {
		t.Errorf("results %v, and %d bytes were taken", f.done, wrote.Load())
	}
}

// One that hangs keeps up nobody else, and its own messages in their order wait for it.
func TestOneThatHangsKeepsUpNobodyElse(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	arrived := make(chan struct{}, 100)
	works := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }))
	defer works.Close()
	defer hangs.Close()
	defer close(release)
	f := newFixture(t, map[string]*Webhook{"a": webhook(t, Config{Name: "a", URL: hangs.URL}), "b": webhook(t, Config{Name: "b", URL: works.URL})})
	for i := range 50 {
		f.outbox.add(fmt.Sprint("a", i), "webhook/a", "{}")
	}
	f.outbox.add("b", "webhook/b", "{}")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.sender.Run(ctx); close(ended) }()
	<-arrived
	cancel()
	<-ended
	if left := len(f.outbox.all()); left < 50 {
		t.Errorf("%d are left of 50 that did not arrive", left)
	}
}

func TestBackoffGrowsToItsBoundAndNoMessageIsGivenUpWithinADay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer server.Close()
	f := newFixture(t, map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: server.URL})})
	f.outbox.add("k", "webhook/h", "{}")
	last := start
	for range 1000 {
		drain(t, f.sender)
		left := f.outbox.all()
		if len(left) == 0 {
			break
		}
		wait := left[0].Next.Sub(f.clock.Now())
		if want := min(time.Second<<min(left[0].Attempts-1, 20), 10*time.Minute); wait != want {
			t.Fatalf("after %d attempts it waits %s, want %s", left[0].Attempts, wait, want)
		}
		f.clock.Step(wait)
		last = f.clock.Now()
	}
	if age := last.Sub(start); f.done[GivenUp] != 1 || age < 24*time.Hour || age > 25*time.Hour {
		t.Errorf("given up %d after %s", f.done[GivenUp], age)
	}
	if !strings.Contains(f.log.String(), "gave up a message") {
		t.Error("the log does not say so")
	}
}

func TestAMessageForNobodyIsGivenUp(t *testing.T) {
	f := newFixture(t, nil)
	f.outbox.add("k", "webhook/gone", "{}")
	f.outbox.add("k", "event", "{}")
	drain(t, f.sender)
	if f.done[GivenUp] != 2 || len(f.outbox.all()) > 0 {
		t.Errorf("results %v, left %v", f.done, f.outbox.all())
	}
}

// A process that dies after a delivery and before its note delivers again, with the same body, and so with the same ID.
func TestNothingIsLostWhenTheProcessDies(t *testing.T) {
	var mutex sync.Mutex
	got := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		got[string(body)]++
	}))
	defer server.Close()
	hooks := map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: server.URL})}
	f := newFixture(t, hooks)
	for i := range 20 {
		f.outbox.add(fmt.Sprint(i), "webhook/h", fmt.Sprint(i))
	}
	f.outbox.forgets = true
	var queues sync.WaitGroup
	f.sender.round(t.Context(), &queues)
	queues.Wait()
	f.outbox.forgets = false
	f.sender = NewSender(f.sender.options)
	drain(t, f.sender)
	if len(f.outbox.all()) > 0 || len(got) != 20 {
		t.Errorf("%d are left, and %d arrived", len(f.outbox.all()), len(got))
	}
	for body, times := range got {
		if times != 2 {
			t.Errorf("%s arrived %d times", body, times)
		}
	}
}

func TestConfigurationsThatAreRefusedShowNoSecret(t *testing.T) {
	for _, config := range []Config{{URL: "ftp://s3cret"}, {URL: "s3cret"}, {URL: "http://s3cret:%"}, {URL: "https://x", CA: []byte("s3cret")}, {URL: "https://x", MinSeverity: "s3cret"}} {
		_, err := NewWebhook(config)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

func TestACertificateIsVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	err := webhook(t, Config{Name: "h", URL: server.URL}).send(t.Context(), nil, start)
	if err == nil || err.Error() != "its certificate is not trusted" {
		t.Errorf("the error is %v", err)
	}
}

// slow is an outbox that is read slowly: what is sent meanwhile is gone when it has been read.
type slow struct {
	*memory
	meanwhile func()
}

func (o *slow) NextMessages(ctx context.Context, now time.Time, limit int, except ...string) ([]store.Message, time.Time, error) {
	due, next, err := o.memory.NextMessages(ctx, now, limit, except...)
	o.meanwhile()
	return due, next, err
}

func TestWhatIsSentWhileTheOutboxIsReadIsNotSentTwice(t *testing.T) {
	var requests atomic.Int32
	let := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		<-let
	}))
	defer server.Close()
	f := newFixture(t, map[string]*Webhook{"a": webhook(t, Config{Name: "a", URL: server.URL})})
	f.outbox.add("1", OutputWebhook+"a", "{}")
	var queues sync.WaitGroup
	f.sender.round(t.Context(), &queues)
	f.sender.options.Outbox = &slow{f.outbox, func() {
		close(let)
		queues.Wait()
	}}
	f.sender.round(t.Context(), &queues)
	queues.Wait()
	if n := requests.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// A webhook that hangs has more messages than are read at a time, and all of them are older than those of another one.
func TestAWebhookThatHangsKeepsUpNobodyElse(t *testing.T) {
	let, arrived := make(chan struct{}), make(chan struct{}, 1)
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-let }))
	defer hangs.Close()
	defer close(let)
	answers := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }))
	defer answers.Close()
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	f := newFixture(t, map[string]*Webhook{"a": webhook(t, Config{Name: "a", URL: hangs.URL}), "b": webhook(t, Config{Name: "b", URL: answers.URL})})
	f.sender.options.Outbox = s
	batch := store.Batch{}
	for i := range atOnce + 100 {
		batch.Outbox = append(batch.Outbox, store.Message{Key: fmt.Sprint(i), Output: OutputWebhook + "a", Body: []byte("{}"), Created: start, Next: start})
	}
	batch.Outbox = append(batch.Outbox, store.Message{Key: "b", Output: OutputWebhook + "b", Body: []byte("{}"), Created: start, Next: start.Add(time.Millisecond)})
	if err := s.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	var queues sync.WaitGroup
	defer queues.Wait()
	defer cancel()
	first := f.sender.round(ctx, &queues)
	second := f.sender.round(ctx, &queues)
	if first > time.Second || second != idle {
		t.Errorf("after the first round it waits %s, and after the second %s: want a moment, and until somebody is done", first, second)
	}
	select {
	case <-arrived:
	case <-time.After(20 * time.Second):
		t.Error("the other webhook got nothing")
	}
}

// The Events of one namespace hang, and there are more than are read at a time. The Event of another one is made.
func TestEventsOfOneNamespaceKeepUpNoOther(t *testing.T) {
	f := newFixture(t, nil)
	let, arrived := make(chan struct{}), make(chan struct{})
	f.sender.options.Event = func(_ context.Context, body []byte) error {
		if string(body) == "quiet" {
			close(arrived)
		} else {
			<-let
		}
		return nil
	}
	alarm := &rule.Alarm{Key: "k", Event: true, Object: rule.Object{Kind: "Widget", Namespace: "greedy", Name: "a"}, Since: start, At: start}
	for n := range atOnce + 100 {
		f.outbox.add(fmt.Sprint(n), Messages(alarm, nil, "cluster")[0].Output, "greedy")
	}
	alarm.Object.Namespace = "quiet"
	f.outbox.add("quiet", Messages(alarm, nil, "cluster")[0].Output, "quiet")
	var queues sync.WaitGroup
	f.sender.round(t.Context(), &queues)
	f.sender.round(t.Context(), &queues)
	select {
	case <-arrived:
	case <-time.After(20 * time.Second):
		t.Error("the other namespace got no Event")
	}
	close(let)
	queues.Wait()
}

// A receiver hangs on whatever is of one namespace, which has more alarms than are read at a time. The alarm of another one is sent to it
// at once.
func TestAlarmsOfOneNamespaceKeepUpNoOtherAtTheSameWebhook(t *testing.T) {
	let, arrived := make(chan struct{}), make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "quiet") {
			arrived <- struct{}{}
			return
		}
		<-let
	}))
	defer receiver.Close()
	defer close(let)
	hooks := map[string]*Webhook{"a": webhook(t, Config{Name: "a", URL: receiver.URL})}
	f := newFixture(t, hooks)
	add := func(key, namespace string) {
		alarm := &rule.Alarm{Key: key, Webhooks: []string{"a"}, Object: rule.Object{Kind: "Widget", Namespace: namespace, Name: "a"}, Since: start, At: start}
		for _, m := range Messages(alarm, hooks, "cluster") {
			f.outbox.add(m.Key, m.Output, string(m.Body))
		}
	}
	for n := range 1000 {
		add(fmt.Sprint(n), "greedy")
	}
	add("last", "quiet")
	ctx, cancel := context.WithCancel(t.Context())
	var queues sync.WaitGroup
	defer queues.Wait()
	defer cancel()
	f.sender.round(ctx, &queues)
	f.sender.round(ctx, &queues)
	select {
	case <-arrived:
	case <-time.After(2 * time.Second):
		t.Error("the alarm of the other namespace was not sent")
	}
}

// However many namespaces have alarms: so many requests are made to a webhook at a time, so many queues there are, and a queue holds few
// messages. All messages arrive.
func TestWhatIsSentAtATimeIsBounded(t *testing.T) {
	const namespaces, each = maxQueues + 50, 3
	var mutex sync.Mutex
	running, most, got := 0, 0, 0
	full := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mutex.Lock()
		running, got = running+1, got+1
		most = max(most, running)
		if got == requestsAtOnce {
			close(full)
		}
		mutex.Unlock()
		<-full // the first ones wait for each other
		mutex.Lock()
		running--
		mutex.Unlock()
	}))
	defer receiver.Close()
	f := newFixture(t, map[string]*Webhook{"a": webhook(t, Config{Name: "a", URL: receiver.URL})})
	for n := range namespaces {
		for i := range each {
			f.outbox.add(fmt.Sprint(n, "/", i), fmt.Sprintf("%sa/n%d", OutputWebhook, n), "{}")
		}
	}
	for range turn + 1 {
		f.outbox.add(fmt.Sprint("long", f.outbox.last), OutputWebhook+"a/n0", "{}")
	}
	for len(f.outbox.all()) > 0 {
		var queues sync.WaitGroup
		f.sender.round(t.Context(), &queues)
		if closed, room, _ := f.sender.closed(start); room < 0 || len(closed) > maxQueues {
			t.Fatalf("%d queues", len(closed))
		}
		queues.Wait()
	}
	if want := namespaces*each + turn + 1; got != want || most != requestsAtOnce {
		t.Errorf("%d requests of %d, at most %d at a time", got, want, most)
	}
}
