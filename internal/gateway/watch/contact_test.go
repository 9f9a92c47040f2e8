package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// heardOf checks that exactly these kinds are stale, and for how long.
func heardOf(t *testing.T, c *contacts, age time.Duration, kinds ...string) {
	t.Helper()
	view, _ := c.look()
	if view.Current != (len(kinds) == 0) || !slices.Equal(view.Of, kinds) {
		t.Errorf("got %+v, want %v not heard of", view, kinds)
	}
	if want := c.clock.Now().Add(-age); !view.Current && view.Since.Sub(want).Abs() > time.Millisecond {
		t.Errorf("stale since %v, want %v", view.Since, want)
	}
}

func TestAViewIsStaleWhileAWatchHearsNothing(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	c := newContacts(clock)
	services, slices := c.add("Services"), c.add("EndpointSlices")
	heardOf(t, c, 0)
	clock.Step(firstPatience)
	heardOf(t, c, firstPatience, "EndpointSlices", "Services")

	services.opened(true) // it begins with all objects, which takes time
	heardOf(t, c, firstPatience, "EndpointSlices", "Services")
	services.filled()
	slices.filled() // a list, before the watch is open
	heardOf(t, c, firstPatience, "EndpointSlices")
	slices.opened(false)
	heardOf(t, c, 0)

	// The API server ends every watch from time to time.
	services.closed()
	heardOf(t, c, 0)
	if _, next := c.look(); !next.Equal(clock.Now().Add(patience)) {
		t.Errorf("looks again at %v, want after %v", next, patience)
	}
	clock.Step(patience - time.Millisecond)
	services.opened(false)
	clock.Step(time.Hour)
	heardOf(t, c, 0)

	services.closed()
	clock.Step(patience)
	heardOf(t, c, patience, "Services")
	services.failed(errors.New("connection refused"))
	services.closed() // another attempt does not mean that the API server answers
	clock.Step(time.Minute)
	heardOf(t, c, time.Minute+patience, "Services")
	services.opened(true)
	services.closed()
	heardOf(t, c, time.Minute+patience, "Services")
	c.remove(services)
	heardOf(t, c, 0)
}

// A refusal is an answer of the API server, so nothing is stale. But data that was read
// before becomes stale.
func TestASecretThatMayNotBeReadIsNotStale(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	c := newContacts(clock)
	secret := c.add("Secrets")
	secret.failed(forbidden("keys"))
	clock.Step(time.Hour)
	heardOf(t, c, 0)
	secret.failed(errors.New("connection refused"))
	heardOf(t, c, time.Hour, "Secrets")
	secret.filled()
	secret.opened(false)
	heardOf(t, c, 0)
	secret.closed()
	secret.failed(forbidden("keys"))
	clock.Step(time.Minute)
	heardOf(t, c, time.Minute, "Secrets")
}

// The view changes when it becomes stale and when it is current again.
func TestAStaleViewIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.contacts = newContacts(clock.RealClock{})
		f.synced()
		f.spec("u", 1, `routes: [`+hello+`]`)
		gateways := f.contacts.add("APIGateway")
		gateways.opened(false)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.contacts.run(ctx, f.wake) })
		defer running.Wait()
		defer cancel()
		says := func(stale bool) {
			t.Helper()
			synctest.Wait()
			if !f.woke() {
				t.Error("nobody was woken")
			}
			f.look(t.Context())
			f.says(1)
			if got := f.options.Board.Current(); got.Stale() != stale || got.Current() == stale || len(got.Routes) != 1 {
				t.Errorf("got %+v, want one route and stale: %v", got, stale)
			}
		}
		says(false)
		before := f.options.Board.Current().Revision
		gateways.closed()
		<-time.After(patience)
		says(true)
		gateways.failed(errors.New("connection refused"))
		<-time.After(time.Hour)
		synctest.Wait()
		if f.woke() {
			t.Error("woken though nothing has changed")
		}
		gateways.opened(false)
		says(false)
		if after := f.options.Board.Current().Revision; after != before+2 {
			t.Errorf("revision %d after %d, want one for each change", after, before)
		}
	})
}
