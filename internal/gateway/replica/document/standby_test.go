package document

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// standsBy checks whether the gateway of the board stands by, and until when. Zero means:
// while the operator waits.
func standsBy(t *testing.T, b *Board, want bool, until time.Time) {
	t.Helper()
	if standby, ends, _ := b.Standby(); standby != want || !ends.Equal(until) {
		t.Errorf("stands by: %v until %v, want %v until %v", standby, ends, want, until)
	}
}

// staleBoard returns the board of a gateway that is cut off from the API server, and the
// board's revision.
func staleBoard(clock *testingclock.FakeClock) (*Board, int64) {
	b := NewBoard(clock, "dev")
	b.Publish(Document{Generation: 1, View: &View{Since: started, Of: []string{"Services"}}})
	return b, b.Current().Revision
}

func TestAStaleGatewayStandsByForAsLongAsItIsToldTo(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b, revision := staleBoard(clock)
	standsBy(t, b, false, time.Time{})
	_, _, changed := b.Standby()
	ctx, cancel := context.WithCancel(t.Context())
	first := tell(ctx, b, wait(revision)+"&standby=true")
	held(t, clock)
	<-changed
	standsBy(t, b, true, time.Time{})
	cancel() // the operator is gone
	receive(t, first)
	standsBy(t, b, true, started.Add(WordHolds))
	clock.Step(WordHolds - time.Millisecond)
	standsBy(t, b, true, started.Add(WordHolds))
	clock.Step(time.Millisecond)
	standsBy(t, b, false, time.Time{})
}

func TestTheWordThatWasGivenLastCounts(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b, revision := staleBoard(clock)
	ctx, cancel := context.WithCancel(t.Context())
	first := tell(ctx, b, wait(revision)+"&standby=true")
	held(t, clock)
	receive(t, tell(t.Context(), b, Path+"?standby=false"))
	standsBy(t, b, false, time.Time{})
	cancel()
	receive(t, first)
	standsBy(t, b, false, time.Time{})
	receive(t, tell(t.Context(), b, Path+"?standby=true"))
	receive(t, ask(t.Context(), b, Path)) // a reader without an instruction changes nothing
	standsBy(t, b, true, clock.Now().Add(WordHolds))
}

// A program that is made to fetch an address sends GET.
func TestNoGETIsAnInstruction(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b, revision := staleBoard(clock)
	for _, path := range []string{Path + "?standby=true", wait(revision-1) + "&standby=true", Path + "?standby=perhaps"} {
		decode(t, receive(t, ask(t.Context(), b, path))) // an older operator gets the document
		standsBy(t, b, false, time.Time{})
	}
	receive(t, tell(t.Context(), b, Path+"?standby=true"))
	receive(t, ask(t.Context(), b, Path+"?standby=false"))
	standsBy(t, b, true, started.Add(WordHolds))
	if w := receive(t, tell(t.Context(), b, Path)); w.Code != http.StatusBadRequest {
		t.Errorf("an instruction without a word is answered %d %s", w.Code, w.Body)
	}
}

// A program that is made to send a form to an address, as a gateway is by the token_endpoint of a provider, sends no header of
// ours. An older operator does not either, and gets the document.
func TestNoFormIsAnInstruction(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b, _ := staleBoard(clock)
	post := func(contentType string) *http.Request {
		form := url.Values{"grant_type": {"authorization_code"}, "code": {"x"}, StandbyParameter: {"true"}}
		r := httptest.NewRequest(http.MethodPost, Path+"?standby=true", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", contentType)
		return r
	}
	for _, contentType := range []string{"application/x-www-form-urlencoded", "application/json", "application/grpc", ""} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, post(contentType))
		decode(t, w)
		standsBy(t, b, false, time.Time{})
	}
	told := post("")
	Instruct(told)
	b.ServeHTTP(httptest.NewRecorder(), told)
	standsBy(t, b, true, started.Add(WordHolds))
}

// Any client in the cluster can reach the admin port.
func TestAGatewayThatHearsTheAPIServerCannotBeToldToStandBy(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	stale := &View{Since: started, Of: []string{"Services"}}
	for name, view := range map[string]*View{"current": {Current: true}, "from a file": nil} {
		t.Run(name, func(t *testing.T) {
			b := NewBoard(clock, "dev")
			b.Publish(Document{Generation: 1, View: view})
			receive(t, tell(t.Context(), b, Path+"?standby=true"))
			standsBy(t, b, false, time.Time{})
			// An instruction from before the gateway was stale does not count, nor does one
			// from an earlier time.
			b.Publish(Document{Generation: 1, View: stale})
			standsBy(t, b, false, time.Time{})
			receive(t, tell(t.Context(), b, Path+"?standby=true"))
			standsBy(t, b, true, clock.Now().Add(WordHolds))
			b.Publish(Document{Generation: 1, View: view})
			standsBy(t, b, false, time.Time{})
			b.Publish(Document{Generation: 1, View: stale})
			standsBy(t, b, false, time.Time{})
		})
	}
	if w := receive(t, tell(t.Context(), NewBoard(clock, "dev"), Path+"?standby=perhaps")); w.Code != http.StatusBadRequest {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A poll from an earlier stale time may end when the gateway is stale again. Its
// instruction does not count for this time.
func TestAWordDoesNotOutliveWhatItWasAbout(t *testing.T) {
	clock := testingclock.NewFakeClock(started)
	b, revision := staleBoard(clock)
	ctx, cancel := context.WithCancel(t.Context())
	first := tell(ctx, b, wait(revision)+"&standby=true")
	held(t, clock)
	b.Publish(Document{Generation: 1, View: &View{Current: true}})
	b.Publish(Document{Generation: 1, View: &View{Since: started.Add(time.Minute), Of: []string{"Secrets"}}})
	cancel()
	receive(t, first)
	standsBy(t, b, false, time.Time{})
}
