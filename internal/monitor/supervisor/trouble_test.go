//go:build monitortest

package supervisor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

func gadget(definition types.UID) change.Kind { return numbered("gadgets", definition) }

// numbered is a kind of that name.
func numbered(resource string, definition types.UID) change.Kind {
	k := widget("v1", definition)
	k.Resource = resource
	return k
}

// onlyFor is a fault for one verb and resource.
func onlyFor(verb, resource string, what fault) func(fakeCall) fault {
	return func(call fakeCall) fault {
		if (verb == "" || call.verb == verb) && call.resource == resource && call.verb != "frame" {
			return what
		}
		return none
	}
}

func TestAKindInTroubleIsShownAndHarmsNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		verb   string
		what   fault
		state  State
		reason string
	}{
		"refused":             {"", refuse, Refused, "monitor cannot list it (the verb list is not allowed: no role)"},
		"only its watch":      {"watch", refuse, Refused, "no role"},
		"conversion fails":    {"", broken, Failing, "conversion webhook for example.com/v1 failed: no endpoints"},
		"conversion hangs":    {"", hang, Failing, "does not answer"},
		"its watch hangs":     {"watch", hang, Failing, "does not answer"},
		"not served":          {"", missing, Pending, "not served yet"},
		"makes itself ready":  {"", busy, Failing, "storage is (re)initializing"},
		"what makes no sense": {"", noise, Failing, "the answer makes no sense"},
		"lists are cut off":   {"", cut, Failing, "stream error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, sink := newFakeServer(t), newMemorySink(t)
			bad, good := gadget("g"), widget("v1", "a")
			server.setFault(onlyFor(test.verb, "gadgets.example.com", test.what))
			server.define(bad, "")
			server.put(bad, "n/a", "a", "")
			// One list at a time: a kind that hangs must not keep the only place.
			r := run(t, server.access(), sink, func(o *Options) { o.Lists = 1 })
			got := r.until(bad, test.state)
			eventually(t, func() error {
				if got = r.coverage(bad); got.State != test.state || !strings.Contains(got.Reason, test.reason) {
					return fmt.Errorf("%s: %s", got.State, got.Reason)
				}
				return nil
			})
			begin := time.Now()
			server.define(good, "")
			server.put(good, "n/b", "b", "")
			r.until(good, Live)
			settled(t, server, sink, good)
			if took := time.Since(begin); took > time.Second {
				t.Errorf("the other kind took %v", took)
			}
			server.setFault(nil)
			server.define(bad, "") // somebody mends the definition: it is tried again at once
			r.until(bad, Live)
			settled(t, server, sink, bad)
			if lines := strings.Count(r.log.String(), "\n"); lines > 2 {
				t.Errorf("%d lines:\n%s", lines, r.log.String())
			}
		})
	}
}

func TestWhyAKindIsRefusedIsAskedOnce(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	one, two := gadget("g"), widget("v1", "a")
	server.setFault(func(call fakeCall) fault {
		if call.resource != definitionKind.GroupResource().String() {
			return refuse
		}
		return none
	})
	server.define(one, "")
	server.define(two, "")
	r := run(t, server.access(), sink)
	eventually(t, func() error {
		if n := server.count("list gadgets.example.com"); n < 4 {
			return fmt.Errorf("%d lists", n)
		}
		return nil
	})
	server.mutex.Lock()
	reviews := server.reviews
	server.mutex.Unlock()
	if reviews != 2 {
		t.Errorf("%d reviews of 2 kinds", reviews)
	}
	// When one is allowed the other is tried at once.
	server.setFault(nil)
	r.until(one, Live)
	r.until(two, Live)
}

func TestAnotherVersionGoesOnWithoutAList(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	old, next := widget("v1", "a"), widget("v2", "a")
	server.define(old, "", "v2")
	server.put(old, "n/a", "a", "")
	r := run(t, server.access(), sink)
	r.until(old, Live)
	settled(t, server, sink, old)
	before := sink.kindOf(old)

	server.define(next, "", "v1")
	eventually(t, func() error {
		if got := r.coverage(next); got.Kind != next || got.State != Live {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	if after := sink.kindOf(next); after.events != before.events || len(after.gaps) != 1 {
		t.Errorf("%d events, %d lists by the switch alone", after.events-before.events, len(after.gaps))
	}
	server.put(next, "n/a", "", `,"spec":{}`)
	settled(t, server, sink, next)
	opened := []change.Kind{old, next}
	if diff := cmp.Diff(opened, sink.kindOf(next).opened); diff != "" {
		t.Error(diff)
	}
}

func TestADefinitionThatGoesDuringASwitchIsClosed(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	old, next := widget("v1", "a"), widget("v2", "a")
	server.define(old, "", "v2")
	server.put(old, "n/a", "a", "")
	r := run(t, server.access(), sink)
	r.until(old, Live)
	server.define(next, "", "v1")
	server.undefine(old)
	eventually(t, func() error {
		if got := sink.kindOf(old); !sink.wasGone(old) || !got.removed["a"] || r.coverage(old).State != "" {
			return fmt.Errorf("it is not closed: %+v", r.coverage(old))
		}
		return nil
	})
}

func TestAKindThatIsNotServedAnyMoreIsNotDeletedUntilItsDefinitionIs(t *testing.T) {
	server, sink, kind, r := followed(t, "a")
	unserved := strings.Replace(fakeDefinition(kind, ""), `"served":true`, `"served":false`, 1)
	server.put(definitionKind, "/"+kind.GroupResource().String(), "", unserved)
	eventually(t, func() error {
		if got := r.coverage(kind); got.State != Pending || !strings.Contains(got.Reason, "serves no version") {
			return fmt.Errorf("%s: %s", got.State, got.Reason)
		}
		return nil
	})
	if sink.wasGone(kind) {
		t.Error("it is closed though its definition is there")
	}
	server.undefine(kind)
	eventually(t, func() error {
		if !sink.wasGone(kind) {
			return errors.New("it is not closed")
		}
		return nil
	})
}

func TestAChangedDescriptionIsToldWithoutAList(t *testing.T) {
	server, sink, kind, r := followed(t, "a")
	before := sink.kindOf(kind)
	for n := range 10 {
		server.define(kind, fmt.Sprintf("description %d", n))
	}
	eventually(t, func() error {
		if got := sink.kindOf(kind); !strings.Contains(got.schemas[len(got.schemas)-1], "description 9") {
			return fmt.Errorf("schemas %q", got.schemas)
		}
		return nil
	})
	r.until(kind, Live)
	if lists := server.count("list widgets.example.com"); lists != 1 {
		t.Errorf("%d lists", lists)
	}
	if after := sink.kindOf(kind); after.events != before.events {
		t.Errorf("%d events", after.events-before.events)
	}
	server.put(kind, "n/a", "", `,"spec":{}`)
	settled(t, server, sink, kind)
}

func TestADefinitionThatIsMadeAgainBeginsANewLife(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	old, next := widget("v1", "a"), widget("v1", "b")
	next.Namespaced = false
	server.define(old, "")
	server.put(old, "n/a", "a", "")
	r := run(t, server.access(), sink)
	r.until(old, Live)
	settled(t, server, sink, old)
	server.undefine(old)
	server.define(next, "")
	server.put(next, "/a", "b", "")
	settled(t, server, sink, next)
	eventually(t, func() error {
		if got := r.coverage(next); got.Kind != next || got.State != Live {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	if got := sink.kindOf(old); !sink.wasGone(old) || !got.removed["a"] || len(got.objects) != 0 {
		t.Errorf("the old kind: %+v", got)
	}
}

func TestWhatWentWhileNobodyWatchedIsClosedAtTheStart(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	deleted, madeAgain := gadget("g"), widget("v1", "before")
	builtin, err := Builtin("deployments.apps")
	if err != nil {
		t.Fatal(err)
	}
	sink.known = []change.Kind{deleted, madeAgain, builtin[0]}
	server.define(widget("v1", "now"), "")
	r := run(t, server.access(), sink)
	r.until(widget("v1", "now"), Live)
	eventually(t, func() error {
		if !sink.wasGone(deleted) || !sink.wasGone(madeAgain) {
			return errors.New("they are not closed")
		}
		return nil
	})
	if sink.wasGone(builtin[0]) {
		t.Error("Deployments were not deleted")
	}
}

func TestBuiltinKindsAreFollowedThoughDefinitionsAreRefused(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	builtin, err := Builtin("deployments.apps")
	if err != nil {
		t.Fatal(err)
	}
	server.kinds["deployments.apps"] = newFakeKind()
	server.put(builtin[0], "n/a", "a", "")
	server.setFault(onlyFor("", definitionKind.GroupResource().String(), refuse))
	stored := widget("v1", "a")
	sink.known = []change.Kind{stored}
	r := run(t, server.access(), sink, func(o *Options) { o.Builtin = builtin })
	r.until(builtin[0], Live)
	settled(t, server, sink, builtin[0])
	if got := r.Coverage(); got.Complete || got.Definitions.State != Refused {
		t.Errorf("the definitions are %s, complete %v", got.Definitions.State, got.Complete)
	}
	if sink.wasGone(stored) {
		t.Error("a kind is closed though nobody knows whether its definition is there")
	}
}

func TestWhatIsExcludedIsShown(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	server.define(widget("v1", "a"), "")
	server.define(gadget("g"), "")
	r := run(t, server.access(), sink, func(o *Options) { o.Exclude = []string{"gadgets.*"} })
	r.until(widget("v1", "a"), Live)
	if got := r.until(gadget("g"), Excluded); got.Reason != "excluded by the pattern gadgets.*" {
		t.Error(got.Reason)
	}
}

func TestASinkThatBlocksLosesNothing(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	slow, other := widget("v1", "a"), gadget("g")
	server.define(slow, "")
	server.define(other, "")
	r := run(t, server.access(), sink)
	r.until(slow, Live)
	r.until(other, Live)
	block := make(chan struct{})
	sink.hold(block)
	large := `,"spec":{"a":"` + strings.Repeat("x", 2000) + `"}`
	for n := range 3000 {
		server.put(slow, "n/a", "a", large)
		if n%100 == 0 {
			server.put(slow, fmt.Sprintf("n/%d", n), fmt.Sprint(n), large)
		}
	}
	eventually(t, func() error {
		if got := r.coverage(slow); got.Lag < 200*time.Millisecond {
			return fmt.Errorf("a lag of %v", got.Lag)
		}
		return nil
	})
	// Far less than what is sent may wait in memory.
	if bytes := r.coverage(slow).Counts.Bytes; bytes > 1<<20 {
		t.Errorf("%d bytes were read", bytes)
	}
	sink.hold(nil)
	close(block)
	settled(t, server, sink, slow)
	if got := sink.kindOf(slow); len(got.gaps) != 1 {
		t.Errorf("%+v", got.gaps)
	}
	eventually(t, func() error {
		if got := r.coverage(slow); got.Lag > 100*time.Millisecond {
			return fmt.Errorf("still a lag of %v", got.Lag)
		}
		return nil
	})
}

func TestABlockedSinkDoesNotBlockTheStop(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	server.define(kind, "")
	r := run(t, server.access(), sink)
	r.until(kind, Live)
	sink.hold(make(chan struct{}))
	server.put(kind, "n/a", "a", "")
	server.undefine(kind)
	eventually(t, func() error {
		if !sink.wasGone(kind) {
			return errors.New("it is not closed")
		}
		return nil
	})
}

func TestAfterAnErrorOfTheSinkNothingIsMissing(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	calls := 0
	sink.refuse = func(_ change.Kind, call string) error {
		calls++
		if calls%3 == 0 && call != "bookmark" {
			return errRefused
		}
		return nil
	}
	server.define(kind, "")
	for n := range 5 {
		server.put(kind, fmt.Sprintf("n/%d", n), fmt.Sprint(n), "")
	}
	r := run(t, server.access(), sink)
	if got := r.until(kind, Failing); !strings.Contains(got.Reason, errRefused.Error()) {
		t.Error(got.Reason)
	}
	sink.mutex.Lock()
	sink.refuse = func(change.Kind, string) error {
		if rand.IntN(20) == 0 {
			return errRefused
		}
		return nil
	}
	sink.mutex.Unlock()
	for n := range 20 {
		server.put(kind, fmt.Sprintf("n/%d", n%7), fmt.Sprint(n%7), `,"spec":{}`)
	}
	settled(t, server, sink, kind)
}

func TestALargeObjectIsToldByItsNameAndTheOthersInFull(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	server.define(kind, "")
	large := `,"spec":{"a":"` + strings.Repeat("x", 100_000) + `"}`
	server.put(kind, "n/large", "large", large)
	server.put(kind, "n/small", "small", "")
	r := run(t, server.access(), sink, func(o *Options) { o.MaxObjectBytes = 10_000 })
	settled(t, server, sink, kind)
	r.until(kind, Live)
	server.put(kind, "n/large", "", large)
	server.put(kind, "n/small", "", `,"spec":{}`)
	settled(t, server, sink, kind)
	got := sink.kindOf(kind)
	if !got.objects["large"].Oversized || len(got.objects["large"].Raw) > 300 || got.objects["small"].Oversized {
		t.Errorf("%+v", got.objects)
	}
	server.remove(kind, "n/large")
	settled(t, server, sink, kind)
	if !sink.kindOf(kind).removed["large"] {
		t.Error("its end is missing")
	}

	// Of one that does not begin with its name nobody can say which it is: that is told, and no object counts as deleted.
	server.do(func() {
		k := server.kinds["widgets.example.com"]
		hidden := k.objects["n/small"]
		hidden.raw = slices.Concat([]byte(`{"a":"`+strings.Repeat("x", 100_000)+`",`), hidden.raw[1:])
		k.objects["n/small"] = hidden
	})
	server.forget(kind)
	server.put(kind, "n/new", "new", "")
	eventually(t, func() error {
		if got := sink.kindOf(kind); len(got.lost) == 0 || got.objects["new"].UID == "" {
			return fmt.Errorf("lost %+v, gaps %+v, %+v", got.lost, got.gaps, r.coverage(kind))
		}
		return nil
	})
	if got := sink.kindOf(kind); got.objects["small"].UID == "" || got.removed["small"] {
		t.Errorf("an object counts as deleted that may be there: %+v", got.removed)
	}
}

func TestASilentWatchIsNoticed(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	server.define(kind, "")
	server.setFault(func(call fakeCall) fault {
		if call.what == bookmark && call.resource == "widgets.example.com" {
			return silentBookmark
		}
		return none
	})
	r := run(t, server.access(), sink)
	r.until(kind, Live)
	eventually(t, func() error {
		if n := server.count("watch widgets.example.com"); n < 3 {
			return fmt.Errorf("%d watches", n)
		}
		return nil
	})
	if lists := server.count("list widgets.example.com"); lists != 1 {
		t.Errorf("%d lists", lists)
	}
}

func TestAServerThatWasRestoredFromABackupIsNoticed(t *testing.T) {
	server, sink, kind, r := followed(t, "a", "b")
	eventually(t, func() error { // up to a bookmark
		if r.coverage(kind).Counts.Bookmarks == 0 {
			return errors.New("no bookmark")
		}
		return nil
	})
	server.do(func() {
		k := server.kinds["widgets.example.com"]
		delete(k.objects, "n/b")
		k.events = nil
		server.version -= 2
		k.closes++
	})
	eventually(t, func() error {
		if got := sink.kindOf(kind); !got.removed["b"] || len(got.lost) == 0 {
			return fmt.Errorf("removed %v, lost %v", got.removed, got.lost)
		}
		return nil
	})
}

// leaked waits until there are no more goroutines than before.
func leaked(t *testing.T, before int) {
	t.Helper()
	eventually(t, func() error {
		if now := runtime.NumGoroutine(); now > before {
			buffer := make([]byte, 1<<20)
			return fmt.Errorf("%d goroutines, there were %d\n%s", now, before, buffer[:runtime.Stack(buffer, true)])
		}
		return nil
	})
}

func TestKindsThatComeAndGoLeaveNothingBehind(t *testing.T) {
	const atOnce = 50
	cycles, _ := property.Inputs(t, 1000, 250)
	server, sink := newFakeServer(t), newMemorySink(t)
	stays := gadget("g")
	server.define(stays, "")
	r := run(t, server.access(), sink)
	r.until(stays, Live)
	round := func(n int) {
		var kinds []change.Kind
		for i := range atOnce {
			kinds = append(kinds, numbered(fmt.Sprintf("kind%d", i), types.UID(fmt.Sprintf("%d-%d", n, i))))
		}
		for _, kind := range kinds {
			server.define(kind, "")
			server.put(kind, "n/a", "a", "")
		}
		for _, kind := range kinds {
			r.until(kind, Live)
		}
		if n == 1 {
			// The server runs in this process, too: its goroutines are counted apart.
			each := (runtime.NumGoroutine() - inServer()) / atOnce
			t.Logf("%d goroutines for each kind", each)
			if each > 6 {
				t.Errorf("%d goroutines for each kind", each)
			}
		}
		for _, kind := range kinds {
			server.undefine(kind)
		}
		eventually(t, func() error {
			if left := len(r.Coverage().Kinds); left != 1 {
				return fmt.Errorf("%d kinds are left", left)
			}
			return nil
		})
		sink.mutex.Lock()
		defer sink.mutex.Unlock()
		if len(sink.gone) != (n+1)*atOnce {
			t.Errorf("%d kinds are gone, want %d", len(sink.gone), (n+1)*atOnce)
		}
		for key, k := range sink.kinds {
			if len(k.objects) != 0 {
				t.Errorf("objects of %s are left", key)
			}
		}
	}
	round(0) // connections are opened
	before := runtime.NumGoroutine()
	for n := range cycles / atOnce {
		round(n + 1)
	}
	leaked(t, before+2) // a stream of the kind that stays may be between two watches
}

// inServer counts the goroutines of the server in this process.
func inServer() int {
	buffer := make([]byte, 4<<20)
	n := 0
	for _, one := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(one, "fakeServer") || strings.Contains(one, "http2serverConn") || strings.Contains(one, "http.(*conn).serve") {
			n++
		}
	}
	return n
}

// What is followed of the definitions may be behind. The follower of the old one may have listed objects of the new one, and
// who is told that the old one is gone must not take them for gone.
func TestADefinitionThatIsMadeAgainIsKnownBeforeItIsSeen(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	old, next := widget("v1", "a"), widget("v1", "b")
	server.define(old, "")
	r := run(t, server.access(), sink)
	r.until(old, Live)
	server.setFault(func(call fakeCall) fault {
		if call.resource == definitionKind.GroupResource().String() && (call.verb == "list" || call.verb == "frame" && call.what == string(Added)) {
			return stopWatch // the new one is not shown
		}
		return none
	})
	server.do(func() { server.removeLocked(definitionKind, "/"+old.GroupResource().String()) })
	server.define(next, "")
	eventually(t, func() error {
		if !sink.wasGone(old) {
			return errors.New("it is not closed")
		}
		return nil
	})
	sink.mutex.Lock()
	defer sink.mutex.Unlock()
	if want := []time.Time{fakeMade("b")}; len(sink.successors) != 1 || !sink.successors[0].Equal(want[0]) {
		t.Errorf("it is told of successors at %v, want %v", sink.successors, want)
	}
}
