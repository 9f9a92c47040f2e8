package quota_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

var secret = []byte("a secret of these tests")

func keyOf(route string, limit quota.Limit) quota.Key {
	return (&quota.Subject{Route: route, Limit: limit}).Key(secret)
}

// replica is one of several that share limits, without a network between them.
type replica struct {
	*quota.Quota
	name string
}

// wire sends asks to a replica, and its answers back after a delay.
type wire struct {
	from, to   *replica
	connection uint64
	delay      time.Duration
	deaf       *bool // whether nothing arrives
}

func (w *wire) Ask(ask quota.Ask) bool {
	if *w.deaf {
		return true
	}
	time.AfterFunc(w.delay, func() {
		if answer, wanted := w.to.Answer(ask); wanted {
			w.from.Answered(w.connection, answer)
		}
	})
	return true
}

// replicas are those of a test.
type replicas struct {
	list []*replica
	deaf bool
	next uint64
}

func newReplicas(number int) *replicas {
	r := &replicas{}
	for i := range number {
		r.list = append(r.list, &replica{Quota: quota.New(clock.RealClock{}), name: fmt.Sprintf("replica-%d", i)})
	}
	r.connect(r.list...)
	return r
}

// connect gives each of these replicas a ring of all of them.
func (r *replicas) connect(list ...*replica) {
	for _, from := range list {
		ring := &quota.Ring{Reached: len(list) - 1}
		for _, to := range list {
			member := quota.Member{Name: to.name, Self: from == to}
			if from != to {
				r.next++
				member.Connection = r.next
				member.Peer = &wire{from: from, to: to, connection: r.next, delay: 200 * time.Microsecond, deaf: &r.deaf}
			}
			ring.Members = append(ring.Members, member)
		}
		from.SetRing(ring)
	}
}

// cutOff leaves a replica alone, and it knows of all others.
func (r *replicas) cutOff(lost *replica, list ...*replica) {
	for _, from := range list {
		ring := &quota.Ring{Reached: len(list) - 2}
		for _, to := range list {
			member := quota.Member{Name: to.name, Self: from == to}
			if from != to && from != lost && to != lost {
				r.next++
				member.Connection = r.next
				member.Peer = &wire{from: from, to: to, connection: r.next, delay: 200 * time.Microsecond, deaf: &r.deaf}
			}
			ring.Members = append(ring.Members, member)
		}
		if from == lost {
			ring.Reached = 0
		}
		from.SetRing(ring)
	}
}

// flood sends a request to each of the replicas every millisecond, and returns how many were allowed.
func flood(t *testing.T, limit quota.Limit, route string, duration time.Duration, list ...*replica) (allowed int) {
	t.Helper()
	key, results := keyOf(route, limit), make(chan time.Duration, 64)
	for begin := time.Now(); time.Since(begin) < duration; <-time.After(time.Millisecond) {
		for _, r := range list {
			go func() { results <- r.Take(t.Context(), key, limit) }()
		}
		for range list {
			if <-results == 0 {
				allowed++
			}
		}
	}
	return allowed
}

// within fails if a number is not the wanted one, give or take so many.
func within(t *testing.T, what string, got, want, tolerance int) {
	t.Helper()
	if got < want-tolerance || got > want+tolerance {
		t.Errorf("%s: %d requests were allowed, want %d ± %d", what, got, want, tolerance)
	}
}

func TestReplicasCountTogether(t *testing.T) {
	for _, rate := range []int64{10, 100, 1000} {
		for route := range 3 { // with different owners
			synctest.Test(t, func(t *testing.T) {
				r := newReplicas(3)
				limit := quota.NewLimit(rate, time.Second, rate)
				got := flood(t, limit, fmt.Sprint(route), 2*time.Second, r.list...)
				within(t, "three replicas", got, int(3*rate), max(2, int(rate/50)))
				<-time.After(2 * time.Second)
				got = flood(t, limit, fmt.Sprint(route), 2*time.Second, r.list[0])
				within(t, "one of three", got, int(min(3*rate, 2000)), max(2, int(rate/50)))
			})
		}
	}
}

// With a defect of this test's own: three that do not know of each other allow three times as much.
func TestReplicasThatDoNotKnowOfEachOtherCountForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(3)
		for _, one := range r.list {
			one.SetRing(&quota.Ring{})
		}
		limit := quota.NewLimit(100, time.Second, 100)
		within(t, "three alone", flood(t, limit, "a", 5*time.Second, r.list...), 1800, 3)
	})
}

// Whoever owns the key: the parts of those that are cut off from each other add up to the limit.
func TestNobodyGetsMoreWhileAReplicaIsCutOff(t *testing.T) {
	for route := range 6 {
		synctest.Test(t, func(t *testing.T) {
			r := newReplicas(3)
			limit := quota.NewLimit(90, time.Second, 90)
			flood(t, limit, fmt.Sprint(route), 3*time.Second, r.list...)
			r.cutOff(r.list[2], r.list...)
			within(t, "one is cut off", flood(t, limit, fmt.Sprint(route), 5*time.Second, r.list...), 450, 15)
			r.connect(r.list...)
			within(t, "it is back", flood(t, limit, fmt.Sprint(route), 5*time.Second, r.list...), 450, 15)
		})
	}
}

// Those that are left know what the one that ended has counted, from its answers.
func TestAReplicaThatEndsGivesNobodyAnotherBurst(t *testing.T) {
	for route := range 6 {
		synctest.Test(t, func(t *testing.T) {
			r := newReplicas(3)
			limit := quota.NewLimit(60, time.Minute, 60)
			within(t, "all", flood(t, limit, fmt.Sprint(route), time.Second, r.list...), 61, 1)
			r.connect(r.list[:2]...)
			within(t, "the third is gone", flood(t, limit, fmt.Sprint(route), time.Second, r.list[:2]...), 1, 1)
			r.connect(r.list...)
			within(t, "another has come", flood(t, limit, fmt.Sprint(route), time.Second, r.list...), 1, 1)
		})
	}
}

// A replica that learns that a key is no longer its own tells the new owner what it has counted.
func TestAnOwnerHandsOverWhatItHasCounted(t *testing.T) {
	for route := range 6 {
		synctest.Test(t, func(t *testing.T) {
			r := newReplicas(3)
			r.connect(r.list[0])
			limit := quota.NewLimit(60, time.Minute, 60)
			within(t, "the first", flood(t, limit, fmt.Sprint(route), time.Second, r.list[0]), 61, 1)
			r.connect(r.list...)
			<-time.After(10 * time.Millisecond)
			// The first one gets no requests any more.
			within(t, "the others", flood(t, limit, fmt.Sprint(route), time.Second, r.list[1:]...), 1, 1)
		})
	}
}

func TestARequestWaitsForTheOwnerOnlyForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(3)
		r.deaf = true
		limit := quota.NewLimit(30, time.Second, 30)
		allowed := 0
		for i := range 200 {
			begin := time.Now()
			if r.list[0].Take(t.Context(), keyOf(fmt.Sprint(i), limit), limit) == 0 {
				allowed++
			}
			if took := time.Since(begin); took > quota.MaxWait {
				t.Fatalf("request %d waited %v, want at most %v", i, took, quota.MaxWait)
			}
		}
		if allowed != 200 {
			t.Errorf("%d first requests of 200 clients were allowed", allowed)
		}
		counts := r.list[0].Counts()
		if counts.Late == 0 || counts.Late+counts.Granted != 200 {
			t.Errorf("the counts are %+v", counts)
		}
		// The owner gives all of the limit, as it does not know that nothing arrives, and each other takes a third. Package
		// peers ends such a connection after a second.
		within(t, "nothing arrives", flood(t, limit, "a", 10*time.Second, r.list...), 550, 10)
	})
}

// A full ledger forgets some keys. It locks nobody out.
func TestManyKeysLockNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(1)
		limit := quota.NewLimit(1, time.Hour, 1)
		for i := range 150_000 {
			if wait := r.list[0].Take(t.Context(), keyOf(fmt.Sprint(i), limit), limit); wait != 0 {
				t.Fatalf("client %d was refused for %v", i, wait)
			}
		}
		counted := 0
		for i := range 150_000 {
			if r.list[0].Take(t.Context(), keyOf(fmt.Sprint(i), limit), limit) != 0 {
				counted++
			}
		}
		// Each first request removes another key now.
		if counted == 0 || counted > 131_072 {
			t.Errorf("%d keys of 150000 were remembered, want some and at most 131072", counted)
		}
	})
}

func TestAskIsChecked(t *testing.T) {
	good := quota.NewLimit(10, time.Second, 10)
	for name, ask := range map[string]quota.Ask{
		"no limit":      {Want: 1},
		"negative":      {Want: 1, Limit: quota.Limit{Interval: -1, Tolerance: 1}},
		"no burst":      {Want: 1, Limit: quota.Limit{Interval: 10, Tolerance: 1}},
		"too long":      {Want: 1, Limit: quota.Limit{Interval: 1 << 60, Tolerance: 1 << 60}},
		"too much":      {Want: 1, Limit: quota.Limit{Interval: 1, Tolerance: 1 << 62}},
		"nothing asked": {Limit: good},
	} {
		if answer, wanted := quota.New(clock.RealClock{}).Answer(ask); wanted {
			t.Errorf("%s: the answer is %+v", name, answer)
		}
	}
	q := quota.New(clock.RealClock{})
	answer, _ := q.Answer(quota.Ask{Limit: good, Want: 1 << 31, Ahead: -5})
	if answer.Granted != 10 {
		t.Errorf("%d tokens were granted, want the burst", answer.Granted)
	}
	answer, _ = q.Answer(quota.Ask{Limit: good, Want: 1, Ahead: 1 << 62})
	if answer.Granted != 0 || answer.Wait > 2*time.Second {
		t.Errorf("a client is locked out by what another replica says: %+v", answer)
	}
}

func TestSubjectsHaveKeysOfTheirOwn(t *testing.T) {
	limit, other := quota.NewLimit(10, time.Second, 10), quota.NewLimit(10, time.Second, 20)
	seen := map[quota.Key]string{}
	for name, s := range map[string]quota.Subject{
		"a":       {Route: "a", Limit: limit},
		"b":       {Route: "b", Limit: limit},
		"burst":   {Route: "a", Limit: other},
		"per":     {Route: "a", Limit: limit, Per: 1},
		"minute":  {Route: "a", Limit: limit, Requests: 600, Period: time.Minute},
		"second":  {Route: "a", Limit: limit, Requests: 10, Period: time.Second},
		"who":     {Route: "a", Limit: limit, Who: "b"},
		"joined":  {Route: "ab", Limit: limit},
		"client":  {Route: "a", Limit: limit, Client: netip.MustParseAddr("10.0.0.1")},
		"another": {Route: "a", Limit: limit, Client: netip.MustParseAddr("10.0.0.2")},
		"IPv6":    {Route: "a", Limit: limit, Client: netip.MustParseAddr("::ffff:10.0.0.1")},
	} {
		key := s.Key(secret)
		if before, taken := seen[key]; taken {
			t.Errorf("%s has the key of %s", name, before)
		}
		seen[key] = name
		if key == s.Key([]byte("another secret")) {
			t.Errorf("%s has the same key with another secret", name)
		}
	}
}

// Grant never allows more than the burst and the rate, whatever is asked when.
func TestGrantKeepsTheLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		requests, burst := 1+random.Int64N(1000), 1+random.Int64N(1000)
		limit := quota.NewLimit(requests, time.Second, burst)
		var next, sum int64
		now := int64(1e9)
		begin := now
		for range 200 {
			now += random.Int64N(int64(50 * time.Millisecond))
			granted, after, wait := limit.Grant(next, now, 1+random.Int64N(100))
			if wait > 0 {
				if again, _, _ := limit.Grant(after, now+int64(wait), 1); again != 1 {
					t.Fatalf("nothing was granted after the wait of %v", wait)
				}
				if early, _, _ := limit.Grant(after, now+int64(wait)-1, 1); early != 0 {
					t.Fatalf("the wait of %v is too long", wait)
				}
			}
			next, sum = after, sum+granted
			if most := burst + (now-begin)/limit.Interval; sum > most {
				t.Fatalf("%d were granted, want at most %d", sum, most)
			}
		}
	}
}

func TestNoLimitOfTheAPIOverflows(t *testing.T) {
	for _, l := range []quota.Limit{
		quota.NewLimit(1, 24*time.Hour, 1_000_000), quota.NewLimit(1_000_000, time.Second, 1_000_000), quota.NewLimit(1, 24*time.Hour, 1), quota.NewLimit(1_000_000, time.Second, 1),
	} {
		granted, _, _ := l.Grant(0, int64(100*365*24*time.Hour), 1)
		if !l.Valid() || granted != 1 {
			t.Errorf("%+v: valid %v, granted %d", l, l.Valid(), granted)
		}
	}
}
