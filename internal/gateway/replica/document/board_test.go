package document

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

// started is the time at which the tests create their boards.
var started = time.UnixMicro(1_700_000_000_000_000)

// ask sends a request and returns the channel for its answer.
func ask(ctx context.Context, b *Board, path string) <-chan *httptest.ResponseRecorder {
	return send(ctx, b, http.MethodGet, path)
}

// tell sends a request with an instruction.
func tell(ctx context.Context, b *Board, path string) <-chan *httptest.ResponseRecorder {
	return send(ctx, b, http.MethodPost, path)
}

func send(ctx context.Context, b *Board, method, path string) <-chan *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, method, path, nil)
	if method == http.MethodPost {
		Instruct(request)
	}
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, request)
		answer <- w
	}()
	return answer
}

func receive(t *testing.T, answer <-chan *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	select {
	case w := <-answer:
		return w
	case <-time.After(10 * time.Second):
		t.Fatal("no answer in 10 s")
		return nil
	}
}

func decode(t *testing.T, w *httptest.ResponseRecorder) Document {
	t.Helper()
	var document Document
	if err := json.Unmarshal(w.Body.Bytes(), &document); w.Code != http.StatusOK || err != nil {
		t.Fatalf("got %d %s: %v", w.Code, w.Body, err)
	}
	return document
}

// held waits until a request waits for the clock.
func held(t *testing.T, clock *testingclock.FakeClock) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !clock.HasWaiters() {
		select {
		case <-deadline:
			t.Fatal("no answer is held")
		case <-tick.C:
		}
	}
}

func wait(revision int64) string { return "/revision?wait=" + strconv.FormatInt(revision, 10) }

func TestWhoDoesNotWaitIsAnsweredAtOnce(t *testing.T) {
	b := NewBoard(testingclock.NewFakeClock(started), "1.2.3")
	want := Document{Protocol: 1, Version: "1.2.3", Revision: started.UnixMicro()}
	for _, path := range []string{"/revision", wait(0), wait(want.Revision - 1)} {
		if diff := cmp.Diff(want, decode(t, receive(t, ask(t.Context(), b, path)))); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if w := receive(t, ask(t.Context(), b, "/revision?wait=soon")); w.Code != http.StatusBadRequest {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestThereIsANewRevisionForEveryChangeAndNoOther(t *testing.T) {
	b := NewBoard(testingclock.NewFakeClock(started), "1.2.3")
	problem := Problem{Route: 1, Name: "b", Reason: "NoEndpoints", Message: "none"}
	other := problem
	other.Message = "other"
	last := b.Current().Revision
	for i, step := range []struct {
		document Document
		changes  bool
	}{
		{Document{}, false},
		{Document{UID: "u", Generation: 1}, true},
		{Document{UID: "u", Generation: 1, Protocol: 7, Version: "x", Revision: 9}, false},
		{Document{UID: "u", Generation: 2}, true},
		{Document{UID: "v", Generation: 2}, true},
		{Document{UID: "v", Generation: 2, Problems: []Problem{problem}}, true},
		{Document{UID: "v", Generation: 2, Problems: []Problem{problem}}, false},
		{Document{UID: "v", Generation: 2, Problems: []Problem{other}}, true},
		{Document{UID: "v", Generation: 2, Rejected: &Rejected{Generation: 3, Reason: "Invalid"}}, true},
		{Document{UID: "v", Generation: 2, Rejected: &Rejected{Generation: 3, Reason: "Invalid"}}, false},
		{Document{UID: "v", Generation: 2, Rejected: &Rejected{Generation: 4, Reason: "Invalid"}}, true},
		{Document{UID: "v", Generation: 5}, true},
	} {
		b.Publish(step.document)
		now := b.Current()
		if (now.Revision != last) != step.changes || now.Revision < last {
			t.Errorf("step %d: revision %d after %d, want a change: %t", i, now.Revision, last, step.changes)
		}
		if now.Protocol != Protocol || now.Version != "1.2.3" {
			t.Errorf("step %d: got %+v", i, now)
		}
		last = now.Revision
	}
}

func TestAnAnswerIsHeldUntilSomethingChanges(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b := NewBoard(clock, "dev")
	first, second := ask(t.Context(), b, wait(started.UnixMicro())), ask(t.Context(), b, wait(started.UnixMicro()))
	held(t, clock)
	b.Publish(Document{}) // nothing new
	select {
	case w := <-first:
		t.Fatalf("answered without a change: %s", w.Body)
	default:
	}
	b.Publish(Document{UID: "u", Generation: 4})
	for _, answer := range []<-chan *httptest.ResponseRecorder{first, second} {
		if got := decode(t, receive(t, answer)); got.Generation != 4 || got.Revision != started.UnixMicro()+1 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestAnAnswerIsHeldFor30Seconds(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b := NewBoard(clock, "dev")
	answer := ask(t.Context(), b, wait(started.UnixMicro()))
	held(t, clock)
	clock.Step(30*time.Second - time.Millisecond)
	if !clock.HasWaiters() {
		t.Fatal("answered before 30 s were over")
	}
	clock.Step(time.Millisecond)
	if got := decode(t, receive(t, answer)); got.Revision != started.UnixMicro() {
		t.Errorf("got %+v", got)
	}
}

func TestAClientThatGoesAwayFreesItsAnswer(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b := NewBoard(clock, "dev")
	ctx, cancel := context.WithCancel(t.Context())
	answer := ask(ctx, b, wait(started.UnixMicro()))
	held(t, clock)
	cancel()
	if w := receive(t, answer); w.Body.Len() != 0 {
		t.Errorf("got %s", w.Body)
	}
	if clock.HasWaiters() {
		t.Error("its timer is left")
	}
}
