package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// full is an outbox on a disk that is full: it can be read.
type full struct {
	*memory
	full   atomic.Bool
	unread atomic.Bool
	asked  atomic.Int64
}

var errFull = errors.New("the disk is full")

func (o *full) NextMessages(ctx context.Context, now time.Time, limit int, except ...string) ([]store.Message, time.Time, error) {
	o.asked.Add(1)
	if o.unread.Load() {
		return nil, time.Time{}, errFull
	}
	return o.memory.NextMessages(ctx, now, limit, except...)
}

func (o *full) Delivered(ctx context.Context, ids ...int64) error {
	o.asked.Add(1)
	if o.full.Load() {
		return errFull
	}
	return o.memory.Delivered(ctx, ids...)
}

func (o *full) Failed(ctx context.Context, id int64, next time.Time) error {
	o.asked.Add(1)
	if o.full.Load() {
		return errFull
	}
	return o.memory.Failed(ctx, id, next)
}

// play lets a sender work for some time, and returns how many rounds it had.
func play(t *testing.T, f *fixture, during time.Duration) (rounds int) {
	t.Helper()
	for end := f.clock.Now().Add(during); f.clock.Now().Before(end); rounds++ {
		var queues sync.WaitGroup
		wait := min(f.sender.settle(t.Context(), false), f.sender.round(t.Context(), &queues))
		queues.Wait()
		select {
		case <-f.sender.wake: // at once, as Run does
		default:
			f.clock.Step(max(wait, time.Millisecond))
		}
		if rounds > 10_000 {
			t.Fatal("it does not rest")
		}
	}
	return rounds
}

// TestWhatCannotBeNotedIsNotSentAgain: while the store takes nothing, each alarm is sent once, it is rarely tried to note that, and two
// lines say it.
func TestWhatCannotBeNotedIsNotSentAgain(t *testing.T) {
	for name, answer := range map[string]int{"delivered": http.StatusOK, "refused": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				posts.Add(1)
				w.WriteHeader(answer)
			}))
			defer server.Close()
			f := newFixture(t, map[string]*Webhook{"h": webhook(t, Config{Name: "h", URL: server.URL})})
			outbox := &full{memory: f.outbox}
			outbox.full.Store(true)
			f.sender.options.Outbox = outbox
			const alarms = 50
			for i := range alarms {
				f.outbox.add(fmt.Sprint(i), OutputWebhook+"h", "{}")
			}
			play(t, f, time.Hour)
			// Of those that are refused the first one is tried, after 1, 2, 4, ... s.
			most := int64(alarms)
			if answer != http.StatusOK {
				most = 20
			}
			if n := posts.Load(); n > most || n < 5 {
				t.Errorf("%d posts in an hour, %d are as many as there may be", n, most)
			}
			if n := outbox.asked.Load(); n > 1000 {
				t.Errorf("the store was asked %d times in an hour", n)
			}
			if n := strings.Count(f.log.String(), "cannot note"); n != 1 {
				t.Errorf("%d lines say that it cannot be noted:\n%s", n, f.log)
			}
			before := posts.Load()
			outbox.full.Store(false)
			play(t, f, time.Minute)
			if answer == http.StatusOK && (len(f.outbox.all()) > 0 || posts.Load() != before) {
				t.Errorf("%d messages are left, and %d were sent again", len(f.outbox.all()), posts.Load()-before)
			}
			if f.sender.notes.size() > 0 || strings.Count(f.log.String(), "noted again") != 1 {
				t.Errorf("%d are still to be noted:\n%s", f.sender.notes.size(), f.log)
			}
		})
	}
}

// TestAnOutboxThatCannotBeReadIsAskedSeldom: the pauses grow, and a line says it once.
func TestAnOutboxThatCannotBeReadIsAskedSeldom(t *testing.T) {
	f := newFixture(t, nil)
	outbox := &full{memory: f.outbox}
	outbox.unread.Store(true)
	f.sender.options.Outbox = outbox
	play(t, f, time.Hour)
	if n := outbox.asked.Load(); n > 150 || n < 100 {
		t.Errorf("it was asked %d times in an hour", n)
	}
	if n := strings.Count(f.log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, f.log)
	}
}

// meanwhile is an outbox in which something happens while a failure is noted.
type meanwhile struct {
	*memory
	happens func()
}

func (o *meanwhile) Failed(ctx context.Context, id int64, next time.Time) error {
	o.happens()
	return o.memory.Failed(ctx, id, next)
}

// TestWhatComesWhileItIsNotedIsKept: while it is noted that an attempt failed, the next one may end. What came of that is noted, too.
func TestWhatComesWhileItIsNotedIsKept(t *testing.T) {
	for name, result := range map[string]*attempt{"delivered": nil, "failed again": {2, start.Add(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.outbox.add("k", OutputWebhook+"h", "{}")
			n := &f.sender.notes
			f.sender.options.Outbox = &meanwhile{memory: f.outbox, happens: func() { n.keep(1, result, start) }}
			n.keep(1, &attempt{1, start}, start)
			f.sender.settle(t.Context(), true)
			if n.size() != 1 {
				t.Fatalf("%d are to be noted, want what came meanwhile", n.size())
			}
			if due, _ := n.due(f.outbox.all(), start.Add(time.Minute)); len(due) != 0 {
				t.Errorf("it is sent again: %+v", due)
			}
			f.sender.options.Outbox = f.outbox
			f.sender.settle(t.Context(), true)
			if left := f.outbox.all(); n.size() != 0 || (result == nil) != (len(left) == 0) {
				t.Errorf("%d are to be noted, and %+v is left", n.size(), left)
			}
		})
	}
}
