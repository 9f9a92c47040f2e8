//go:build monitortest

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// quickTiming is for tests: what takes minutes takes parts of a second.
var quickTiming = timing{
	watch: 2 * time.Second, silence: 400 * time.Millisecond, late: 150 * time.Millisecond, answer: 600 * time.Millisecond,
	quiet: 50 * time.Millisecond, grace: 300 * time.Millisecond, settle: time.Second, calm: 100 * time.Millisecond,
}

// running is a supervisor at work on a fake server.
type running struct {
	*Supervisor

	t    *testing.T
	log  *lockedbuffer.Buffer
	stop context.CancelFunc
	done chan struct{}
}

// run starts a supervisor. It ends with the test, or with halt.
func run(t *testing.T, access *rest.Config, sink Sink, change ...func(*Options)) *running {
	t.Helper()
	log := &lockedbuffer.Buffer{}
	options := Options{
		Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(log, nil)), timing: quickTiming, PageSize: 30,
		StartsPerSecond: 1000,
	}
	for _, c := range change {
		c(&options)
	}
	s, err := New(access, sink, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Supervisor: s, t: t, log: log, stop: cancel, done: make(chan struct{})}
	go func() { defer close(r.done); s.Run(ctx) }()
	t.Cleanup(r.halt)
	return r
}

// halt stops the supervisor and waits for it.
func (r *running) halt() {
	r.stop()
	select {
	case <-r.done:
	case <-time.After(10 * time.Second):
		buffer := make([]byte, 1<<20)
		r.t.Errorf("it does not stop:\n%s", buffer[:runtime.Stack(buffer, true)])
	}
}

// patienceOfTests is longer than a pause of a follower: on a busy machine an answer may come too late once more, and then it waits.
const patienceOfTests = 2 * maxUsual

// eventually waits until check returns nil.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.After(patienceOfTests)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("still: %v", err)
		case <-tick.C:
		}
	}
}

// coverage returns how a kind is covered.
func (r *running) coverage(kind change.Kind) KindCoverage {
	one, _ := r.CoverageOf(kind.GroupResource())
	return one
}

// until waits until a kind is in a state.
func (r *running) until(kind change.Kind, state State) KindCoverage {
	r.t.Helper()
	var got KindCoverage
	eventually(r.t, func() error {
		if got = r.coverage(kind); got.State != state {
			return fmt.Errorf("%s is %s (%s), want %s", kind.Resource, got.State, got.Reason, state)
		}
		return nil
	})
	return got
}

// agrees tells whether the sink knows of a kind what the server keeps.
func agrees(server *fakeServer, sink *memorySink, kind change.Kind) error {
	got := sink.kindOf(kind)
	server.mutex.Lock()
	defer server.mutex.Unlock()
	keeps := server.kinds[kind.GroupResource().String()]
	if keeps == nil {
		keeps = newFakeKind()
	}
	if len(got.objects) != len(keeps.objects) {
		return fmt.Errorf("%s: %d objects are known, there are %d", kind.Resource, len(got.objects), len(keeps.objects))
	}
	for key, object := range keeps.objects {
		version := versionOf(object.raw)
		if got := got.objects[object.uid]; got.ResourceVersion != version {
			return fmt.Errorf("%s: %s is known at %q, it is at %q", kind.Resource, key, got.ResourceVersion, version)
		}
	}
	return nil
}

func versionOf(raw []byte) string {
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &object)
	return object.Metadata.ResourceVersion
}

// followed lets a supervisor follow a kind with objects of these UIDs, and waits until it has told all of them.
func followed(t *testing.T, uids ...string) (*fakeServer, *memorySink, change.Kind, *running) {
	t.Helper()
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	server.define(kind, "")
	for _, uid := range uids {
		server.put(kind, "n/"+uid, uid, "")
	}
	r := run(t, server.access(), sink)
	settled(t, server, sink, kind)
	r.until(kind, Live)
	return server, sink, kind, r
}

// settled waits until the sink knows what the server keeps, and everything that happened was seen or is within a gap.
func settled(t *testing.T, server *fakeServer, sink *memorySink, kind change.Kind) {
	t.Helper()
	eventually(t, func() error {
		if err := agrees(server, sink, kind); err != nil {
			return err
		}
		server.mutex.Lock()
		var events []fakeEvent
		if k := server.kinds[kind.GroupResource().String()]; k != nil {
			events = slices.Clone(k.events)
		}
		server.mutex.Unlock()
		return sink.unseen(kind, events)
	})
}

func TestAKindIsFollowedFromItsDefinitionToItsEnd(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	r := run(t, server.access(), sink)
	eventually(t, func() error {
		if !r.Coverage().Complete {
			return errors.New("the definitions are not known")
		}
		return nil
	})
	server.define(kind, "first")
	for n := range 100 {
		server.put(kind, fmt.Sprintf("n/w%d", n), fmt.Sprintf("u%d", n), `,"spec":{}`)
	}
	r.until(kind, Live)
	for n := range 50 {
		server.put(kind, fmt.Sprintf("n/w%d", n), "", `,"spec":{"a":1}`)
		server.remove(kind, fmt.Sprintf("n/w%d", 99-n/2))
	}
	settled(t, server, sink, kind)
	if got := sink.kindOf(kind); got.schemas[0] != `{"description":"first","type":"object"}` {
		t.Errorf("the schema is %q", got.schemas)
	}

	begin := time.Now()
	server.undefine(kind)
	eventually(t, func() error {
		if !sink.wasGone(kind) || r.coverage(kind).State != "" {
			return errors.New("it is not closed")
		}
		return nil
	})
	if took := time.Since(begin); took > time.Second {
		t.Errorf("stopped after %v", took)
	}
	if got := sink.kindOf(kind); len(got.objects) != 0 || len(got.removed) != 100 {
		t.Errorf("%d objects are known, %d are gone", len(got.objects), len(got.removed))
	}
	if lines := strings.Count(r.log.String(), "\n"); lines > 1 {
		t.Errorf("%d lines:\n%s", lines, r.log.String())
	}
}

func TestAStartGoesOnWhereTheLastOneEnded(t *testing.T) {
	server, sink, kind, first := followed(t, "a", "b")
	first.halt()
	server.put(kind, "n/a", "", `,"spec":{}`)
	server.put(kind, "n/a", "", `,"spec":{"a":1}`)
	server.remove(kind, "n/b")

	sink.known = []change.Kind{kind}
	second := run(t, server.access(), sink)
	settled(t, server, sink, kind)
	second.until(kind, Live)
	if lists := server.count("list widgets.example.com"); lists != 1 {
		t.Errorf("%d lists", lists)
	}
	if got := sink.kindOf(kind); len(got.gaps) != 1 || got.events != 3 {
		t.Errorf("%d gaps, %d events", len(got.gaps), got.events)
	}
}

// TestDisorderIsToldAsAGap: two changes come in the wrong order, and then the watch ends. The second one is missing in what was told, also
// when the monitor is restarted before it has listed the objects, or the sink refuses the list at first.
func TestDisorderIsToldAsAGap(t *testing.T) {
	for name, test := range map[string]struct{ restart, refuse bool }{
		"at once": {}, "after a restart": {restart: true}, "after trouble with the sink": {refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			server, sink, kind, first := followed(t, "a", "b")
			first.halt()
			eventually(t, server.idle)
			server.put(kind, "n/a", "", `,"spec":{"a":1}`)
			server.put(kind, "n/b", "", `,"spec":{"a":1}`)
			faults := []fault{swap, stopWatch}
			server.setFault(func(call fakeCall) fault {
				switch {
				case call.resource != "widgets.example.com":
				case call.verb == "list" && test.restart:
					return refuse
				case call.verb == "frame" && call.what != bookmark && len(faults) > 0:
					next := faults[0]
					faults = faults[1:]
					return next
				}
				return none
			})
			refusals := 3
			sink.refuse = func(_ change.Kind, what string) error {
				if !test.refuse || what != "begin" || refusals == 0 {
					return nil
				}
				refusals--
				return errRefused
			}
			sink.known = []change.Kind{kind}
			r := run(t, server.access(), sink)
			if test.restart {
				eventually(t, func() error {
					if got := r.coverage(kind); got.State != Failing && got.State != Refused {
						return fmt.Errorf("it is %s", got.State)
					}
					return nil
				})
				r.halt()
				server.setFault(nil)
				run(t, server.access(), sink)
			}
			settled(t, server, sink, kind)
			eventually(t, func() error {
				if gaps := sink.kindOf(kind).gaps; len(gaps) != 2 || gaps[1].reason != errDisorder.Error() {
					return fmt.Errorf("gaps %+v", gaps)
				}
				return nil
			})
		})
	}
}

func TestWhatIsForgottenIsFoundByAListAndToldAsAGap(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	server.define(kind, "")
	for n := range 100 {
		server.put(kind, fmt.Sprintf("n/w%d", n), fmt.Sprintf("u%d", n), "")
	}
	first := run(t, server.access(), sink)
	settled(t, server, sink, kind)
	first.until(kind, Live)
	first.halt()
	for n := range 10 {
		server.remove(kind, fmt.Sprintf("n/w%d", n))
	}
	server.put(kind, "n/w50", "", `,"spec":{}`)
	server.put(kind, "n/w50", "", `,"spec":{"a":1}`)
	server.forget(kind)

	// A list that is cut off and one that takes too long are begun again, and lose nothing.
	faults := []fault{none, cut, none, gone, busy}
	server.setFault(func(call fakeCall) fault {
		if call.verb != "list" || call.resource != "widgets.example.com" || len(faults) == 0 {
			return none
		}
		next := faults[0]
		faults = faults[1:]
		return next
	})
	second := run(t, server.access(), sink)
	settled(t, server, sink, kind)
	second.until(kind, Live)
	got := sink.kindOf(kind)
	if len(got.gaps) != 2 || got.gaps[1].reason != expired || len(got.removed) != 10 {
		t.Errorf("gaps %+v, %d removed", got.gaps, len(got.removed))
	}
	if counts := second.coverage(kind).Counts; counts.Lists < 4 || counts.Gaps < 1 {
		t.Errorf("%+v", counts)
	}
}

// TestAKindWithoutObjectsBeginsWithoutAGap: the API server answers the first list, makes itself ready after that, and has forgotten what
// was before. Where nothing was known, nothing is missing. Once a watch has said something, or there are objects, a gap is reported.
func TestAKindWithoutObjectsBeginsWithoutAGap(t *testing.T) {
	for name, test := range map[string]struct {
		objects, gaps int
		after         bool
	}{
		"no object":                       {0, 0, false},
		"an object":                       {1, 1, false},
		"no object, and a watch has said": {0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			server, sink := newFakeServer(t), newMemorySink(t)
			kind := widget("v1", "a")
			watches := 2
			if test.after {
				watches = 0
			}
			server.setFault(func(call fakeCall) fault {
				if call.verb != "watch" || call.resource != "widgets.example.com" || watches == 0 {
					return none
				}
				watches--
				return gone
			})
			server.define(kind, "")
			for n := range test.objects {
				server.put(kind, fmt.Sprintf("n/w%d", n), fmt.Sprintf("u%d", n), "")
			}
			r := run(t, server.access(), sink)
			r.until(kind, Live)
			settled(t, server, sink, kind)
			if test.after {
				eventually(t, func() error {
					if r.coverage(kind).Counts.Bookmarks == 0 {
						return errors.New("the watch has said nothing")
					}
					return nil
				})
				server.forget(kind)
			}
			server.put(kind, "n/next", "next", "")
			settled(t, server, sink, kind)
			got := 0
			for _, gap := range sink.kindOf(kind).gaps {
				if gap.reason != "" {
					got++
				}
			}
			if got < test.gaps || test.gaps == 0 && got > 0 {
				t.Errorf("%d gaps: %+v", got, sink.kindOf(kind).gaps)
			}
		})
	}
}
