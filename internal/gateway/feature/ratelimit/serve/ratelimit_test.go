package serve

import (
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
)

// The name of a client is a part of the head that it came with. Who keeps the name keeps the head.
func TestALimiterKeepsNoNamesOfClients(t *testing.T) {
	const clients, most = 10_000, 10 << 20
	l := newLimiter(testingclock.NewFakeClock(time.Now()))
	limit := &ratelimit.Limit{Requests: 1, Period: 24 * time.Hour, Burst: 1, Per: ratelimit.PerKey}
	inUse := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	filler, before := strings.Repeat("x", 60<<10), inUse()
	for i := range clients {
		name := strconv.Itoa(i)
		head := name + filler
		for _, who := range []string{head[:len(name)], head} {
			if l.take(limitKey{route: "r", limit: *limit, who: who}, limit) != 0 {
				t.Fatalf("client %d is limited", i)
			}
		}
	}
	if grown := inUse() - before; grown > most {
		t.Errorf("%d bytes are kept, want %d at the most", grown, most)
	}
	runtime.KeepAlive(l)
}

func TestALimiterCountsTogetherWhatBelongsTogether(t *testing.T) {
	limit := ratelimit.Limit{Requests: 1, Period: time.Hour, Burst: 1, Per: ratelimit.PerKey}
	key := limitKey{route: "r", limit: limit, who: "alice", client: netip.MustParseAddr("10.0.0.1")}
	got, want := map[string]bool{}, map[string]bool{}
	for name, test := range map[string]struct {
		change func(*limitKey)
		counts bool // as the same
	}{
		"the same":             {func(*limitKey) {}, true},
		"another route":        {func(k *limitKey) { k.route = "s" }, false},
		"another name":         {func(k *limitKey) { k.who = "bob" }, false},
		"a longer name":        {func(k *limitKey) { k.who = strings.Repeat("alice", 10_000) }, false},
		"no name":              {func(k *limitKey) { k.who = "" }, false},
		"one text, divided":    {func(k *limitKey) { k.route, k.who = "ra", "lice" }, false},
		"another address":      {func(k *limitKey) { k.client = netip.MustParseAddr("10.0.0.2") }, false},
		"the address in IPv6":  {func(k *limitKey) { k.client = netip.MustParseAddr("::ffff:10.0.0.1") }, false},
		"another rate":         {func(k *limitKey) { k.limit.Requests = 2 }, false},
		"the rate, by the day": {func(k *limitKey) { k.limit.Requests, k.limit.Period = 24, 24*time.Hour }, false},
		"another burst":        {func(k *limitKey) { k.limit.Burst = 2 }, false},
		"of what else it is":   {func(k *limitKey) { k.limit.Per = ratelimit.PerRoute }, false},
	} {
		l := newLimiter(testingclock.NewFakeClock(time.Now()))
		other := key
		test.change(&other)
		l.take(key, &limit)
		got[name], want[name] = l.take(other, &other.limit) != 0, test.counts
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what counts together (-want +got):\n%s", diff)
	}
}

func TestLimiterIsBoundedAndExact(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	l := newLimiter(clock)
	limit := &ratelimit.Limit{Requests: 10, Period: time.Second, Burst: 5}
	allowed := 0
	for range 1000 {
		if l.take(limitKey{route: "r"}, limit) == 0 {
			allowed++
		}
		clock.Step(10 * time.Millisecond)
	}
	if allowed != 104 {
		t.Errorf("%d requests in 10 s, want 10 per second and the burst", allowed)
	}
	for i := range limitShards * maxLimitKeys * 2 {
		if l.take(limitKey{route: "r", who: strconv.Itoa(i)}, limit) != 0 {
			t.Fatal("a new client is limited")
		}
	}
	total := 0
	for i := range l.shards {
		total += len(l.shards[i].next)
	}
	if total > limitShards*maxLimitKeys {
		t.Errorf("%d keys are held", total)
	}
}

// The largest burst for the longest period is not so large that nobody has any.
func TestTheLargestLimitOfTheAPIAllowsRequests(t *testing.T) {
	l := newLimiter(testingclock.NewFakeClock(time.Now()))
	limit := &ratelimit.Limit{Requests: 1, Period: 24 * time.Hour, Burst: 1_000_000}
	if wait := l.take(limitKey{route: "r"}, limit); wait != 0 {
		t.Errorf("the first request is refused for %v", wait)
	}
}
