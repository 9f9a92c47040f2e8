//go:build monitortest

package supervisor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

// TestNothingIsMissedWhateverTheServerDoes lets a server fail at random while objects and definitions change at random. In
// the end the sink knows what the server keeps, every deletion was seen, and every change was seen or lies within a gap
// that was reported.
func TestNothingIsMissedWhateverTheServerDoes(t *testing.T) {
	count, source := property.Inputs(t, 200, 12)
	for n := range count {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			course := newCourse(t, source(uint64(n)))
			course.play(200)
			course.check()
		})
	}
}

// TestAPlantedDropIsCaught shows that the property can fail.
func TestAPlantedDropIsCaught(t *testing.T) {
	server, sink := newFakeServer(t), newMemorySink(t)
	kind := widget("v1", "a")
	server.define(kind, "")
	r := run(t, server.access(), sink)
	r.until(kind, Live)
	server.put(kind, "n/a", "a", "")
	server.put(kind, "n/a", "", `,"spec":{}`)
	settled(t, server, sink, kind)
	sink.mutex.Lock()
	for id := range sink.kinds[memoryKey(kind)].seen {
		delete(sink.kinds[memoryKey(kind)].seen, id)
		break
	}
	sink.mutex.Unlock()
	server.mutex.Lock()
	events := server.kinds["widgets.example.com"].events
	server.mutex.Unlock()
	if err := sink.unseen(kind, events); err == nil {
		t.Error("a change that was dropped is not found")
	}
}

// course is one course of random changes and faults.
type course struct {
	t      *testing.T
	rand   *rand.Rand
	server *fakeServer
	sink   *memorySink
	r      *running

	kinds []change.Kind // the present life of each
	lives int
	past  []past
}

// past is a kind that was deleted, with everything that happened to its objects.
type past struct {
	kind   change.Kind
	events []fakeEvent
}

func newCourse(t *testing.T, random *rand.Rand) *course {
	c := &course{t: t, rand: random, server: newFakeServer(t), sink: newMemorySink(t)}
	for i := range 3 {
		kind := numbered(fmt.Sprintf("kind%d", i), types.UID(fmt.Sprintf("%d-0", i)))
		c.kinds = append(c.kinds, kind)
		c.server.define(kind, "")
	}
	// Faults of a source of their own: the server asks at any time.
	var mutex sync.Mutex
	faults := rand.New(rand.NewPCG(random.Uint64(), 1))
	c.server.setFault(func(call fakeCall) fault {
		mutex.Lock()
		defer mutex.Unlock()
		if faults.IntN(12) > 0 {
			return none
		}
		choice := []fault{refuse, missing, busy, broken, gone, hang, cut, noise}
		if call.verb == "watch" {
			choice = []fault{refuse, missing, broken, gone, busy}
		}
		if call.verb == "frame" {
			choice = []fault{cut, noise, twice, swap, gone, broken, stopWatch, silentBookmark}
		}
		if call.what == bookmark {
			choice = []fault{stopWatch, silentBookmark}
		}
		return choice[faults.IntN(len(choice))]
	})
	c.r = run(t, c.server.access(), c.sink)
	return c
}

// play does so many steps.
func (c *course) play(steps int) {
	for range steps {
		i := c.rand.IntN(len(c.kinds))
		kind := c.kinds[i]
		switch dice := c.rand.IntN(100); {
		case dice < 60:
			key := fmt.Sprintf("n/%d", c.rand.IntN(8))
			c.lives++
			c.server.put(kind, key, fmt.Sprintf("%s-%d", key, c.lives), fmt.Sprintf(`,"spec":{"a":%d,"b":%q}`, c.lives, strings.Repeat("x", c.rand.IntN(3000))))
		case dice < 85:
			c.server.remove(kind, fmt.Sprintf("n/%d", c.rand.IntN(8)))
		case dice < 88:
			c.server.forget(kind)
		case dice < 91:
			c.server.define(kind, fmt.Sprint(dice, c.rand.Uint64()))
		case dice < 93:
			c.renew(i)
		case dice < 94:
			c.restart()
		default:
			<-time.After(time.Duration(c.rand.IntN(20)) * time.Millisecond)
		}
	}
}

// renew deletes a definition and makes another one of the same name.
func (c *course) renew(i int) {
	kind := c.kinds[i]
	k := c.server.kinds[kind.GroupResource().String()]
	c.server.undefine(kind)
	c.past = append(c.past, past{kind, slices.Clone(k.events)})
	c.lives++
	c.kinds[i].Definition = types.UID(fmt.Sprintf("%d-%d", i, c.lives))
	c.kinds[i].Namespaced = !kind.Namespaced
	c.server.define(c.kinds[i], "")
}

// restart stops the supervisor and starts another one that knows what the sink has.
func (c *course) restart() {
	c.r.halt()
	c.sink.mutex.Lock()
	c.sink.known = nil
	last := map[string]change.Kind{}
	for key, k := range c.sink.kinds {
		if !slices.ContainsFunc(c.sink.gone, func(g change.Kind) bool { return memoryKey(g) == key }) {
			last[key] = k.kind
		}
	}
	for _, kind := range last {
		c.sink.known = append(c.sink.known, kind)
	}
	c.sink.mutex.Unlock()
	c.r = run(c.t, c.server.access(), c.sink)
}

// check lets the server be good again and compares.
func (c *course) check() {
	c.server.setFault(nil)
	for _, kind := range c.kinds {
		c.server.define(kind, "mended") // so that what waits tries again
	}
	for _, kind := range c.kinds {
		settled(c.t, c.server, c.sink, kind)
		c.r.until(kind, Live)
		c.deletions(kind, c.server.kinds[kind.GroupResource().String()].events)
	}
	for _, p := range c.past {
		// What nobody followed at all is not known. What was followed is closed, and its objects are gone.
		if got := c.sink.kindOf(p.kind); got.opened != nil {
			eventually(c.t, func() error {
				if !c.sink.wasGone(p.kind) {
					return fmt.Errorf("%s is not closed", memoryKey(p.kind))
				}
				return nil
			})
			c.deletions(p.kind, p.events)
		}
	}
}

// deletions checks that each object that was seen and is gone was seen to go.
func (c *course) deletions(kind change.Kind, events []fakeEvent) {
	got := c.sink.kindOf(kind)
	for _, e := range events {
		if e.what != Deleted {
			continue
		}
		seen := false
		for id := range got.seen {
			seen = seen || strings.HasPrefix(id, e.uid+"/")
		}
		if seen && !got.removed[e.uid] {
			c.t.Errorf("%s: the deletion of %s was missed", memoryKey(kind), e.uid)
		}
	}
}
