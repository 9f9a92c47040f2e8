package peers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

// shape is a load on three replicas.
type shape struct {
	shares [3]float64 // of the requests
	rate   int64      // of the limit, per second; the burst is the same
	keys   int        // that get twice as much
	others int        // keys with a request every other second
	alone  bool       // a defect: the replicas do not know of each other
}

func (s shape) String() string {
	return fmt.Sprintf("%.0f:%.0f:%.0f/%d per s/%d keys", 100*s.shares[0], 100*s.shares[1], 100*s.shares[2], s.rate, s.keys+s.others)
}

var (
	even   = [3]float64{1. / 3, 1. / 3, 1. / 3}
	uneven = [3]float64{0.5, 0.3, 0.2}
	one    = [3]float64{1, 0, 0}
)

func shapes() (all []shape) {
	for _, shares := range [][3]float64{even, uneven, one} {
		for _, rate := range []int64{10, 100, 10_000} {
			all = append(all, shape{shares: shares, rate: rate, keys: 1})
		}
		all = append(all, shape{shares: shares, rate: 10, keys: 100, others: 9900})
	}
	return all
}

// decision is what became of a request.
type decision struct {
	at, took time.Duration
	key      int
	allowed  bool
}

// outcome is what judge finds. over and under are in percent.
type outcome struct {
	over, under float64
	exact       float64
	p50, p99    time.Duration
	requests    int
}

// play sends a load, and returns the decisions. at is called once at half of the time.
func play(t testing.TB, s shape, list []*replica, duration time.Duration, at func()) []decision {
	limit := quota.NewLimit(s.rate, time.Second, s.rate)
	keys := make([]quota.Key, s.keys+s.others)
	for i := range keys {
		keys[i] = (&quota.Subject{Route: fmt.Sprint(i), Limit: limit}).Key(secret)
	}
	var mu sync.Mutex
	var all []decision
	var wait sync.WaitGroup
	begin := time.Now()
	for i, r := range list {
		if s.shares[i] == 0 {
			continue
		}
		requests := make(chan int, 1<<16)
		for range 32 {
			wait.Go(func() {
				var own []decision
				for key := range requests {
					sent := time.Now()
					wait := r.Take(t.Context(), keys[key], limit)
					own = append(own, decision{at: time.Since(begin), took: time.Since(sent), key: key, allowed: wait == 0})
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, own...)
			})
		}
		wait.Go(func() {
			defer close(requests)
			busy, quiet := 2*float64(s.rate)*float64(s.keys)*s.shares[i], float64(s.others)/2*s.shares[i]
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			sentBusy, sentQuiet := 0., 0.
			for since := time.Duration(0); since < duration; since = time.Since(begin) {
				for ; sentBusy < busy*since.Seconds(); sentBusy++ {
					requests <- rand.IntN(s.keys)
				}
				for ; sentQuiet < quiet*since.Seconds(); sentQuiet++ {
					requests <- s.keys + rand.IntN(s.others)
				}
				<-tick.C
			}
		})
	}
	if at != nil {
		half := time.NewTimer(duration / 2)
		defer half.Stop()
		<-half.C
		at()
	}
	wait.Wait()
	return all
}

// step is how finely the time is cut for windows. The shortest window has steps of it.
const (
	step  = 100 * time.Millisecond
	steps = 10
)

// judge looks at the decisions. over is by how much more was allowed than the burst and the rate allow in the worst
// window of a second or more of each key. exact is how many requests were allowed at a moment at which a single counter would
// have refused them. under is by how much less was allowed in all than a single counter would have.
func judge(s shape, all []decision) (o outcome) {
	limit := quota.NewLimit(s.rate, time.Second, s.rate)
	slices.SortFunc(all, func(a, b decision) int { return int(a.at - b.at) })
	counter, ofAllowed := make([]int64, s.keys), make([]int64, s.keys)
	windows := make([][]int64, s.keys) // what was allowed until the end of each step
	last := int(all[len(all)-1].at/step) + 1
	for i := range windows {
		windows[i] = make([]int64, last+1)
	}
	var allowed, ideal, refused int64
	var took []time.Duration
	for _, d := range all {
		took = append(took, d.took)
		if d.key >= s.keys {
			continue
		}
		granted, next, _ := limit.Grant(counter[d.key], int64(d.at), 1)
		counter[d.key], ideal = next, ideal+granted
		if d.allowed {
			granted, next, _ := limit.Grant(ofAllowed[d.key], int64(d.at), 1)
			ofAllowed[d.key], allowed, refused = next, allowed+1, refused+1-granted
			windows[d.key][d.at/step+1]++
		}
	}
	var excess, limits float64
	for _, sums := range windows {
		worst, of := 0., 2*float64(s.rate)
		for i := 1; i < len(sums); i++ {
			sums[i] += sums[i-1]
		}
		for from := range sums {
			for to := from + steps; to < len(sums); to++ {
				may := float64(s.rate) * (1 + float64(to-from)*step.Seconds())
				if more := float64(sums[to]-sums[from]) - may; more > worst {
					worst, of = more, may
				}
			}
		}
		excess, limits = excess+worst, limits+of
	}
	o.over = 100 * excess / limits
	slices.Sort(took)
	o.exact = 100 * float64(refused) / float64(ideal)
	o.under, o.requests = 100*float64(max(ideal-allowed, 0))/float64(ideal), len(all)
	o.p50, o.p99 = took[len(took)/2], took[len(took)*99/100]
	return o
}

// mostOver is the overshoot in percent that the documentation promises for three replicas that reach each other. One request
// is allowed where it is more than that, and those that were late on a busy machine.
func mostOver(s shape, list []*replica, o outcome) float64 {
	var late uint64
	for _, r := range list {
		late += r.Counts().Late
	}
	return max(5, 100/float64(2*s.rate)) + 100*float64(late)/float64(o.requests)
}

// prepare makes three replicas for a shape.
func prepare(t testing.TB, s shape) []*replica {
	if !s.alone {
		return connected(t, 3)
	}
	id := identity(t, secret, "test")
	list := []*replica{start(t, id), start(t, id), start(t, id)}
	for _, r := range list {
		join(t, r)
		r.alone(t)
	}
	return list
}

func TestTheLimitHoldsForEveryShapeOfLoad(t *testing.T) {
	const seconds = 2
	for _, s := range shapes() {
		t.Run(s.String(), func(t *testing.T) {
			list := prepare(t, s)
			o := judge(s, play(t, s, list, seconds*time.Second, nil))
			t.Logf("%+v, at most %.1f", o, mostOver(s, list, o))
			if o.over > mostOver(s, list, o) {
				t.Errorf("%.1f %% more was allowed than the limit", o.over)
			}
		})
	}
}

// What the test above proves: it sees replicas that count for themselves.
func TestReplicasThatDoNotShareAreSeenByTheShapes(t *testing.T) {
	s := shape{shares: even, rate: 100, keys: 1, alone: true}
	if o := judge(s, play(t, s, prepare(t, s), 2*time.Second, nil)); o.over < 20 {
		t.Errorf("only %.1f %% more was allowed by three that do not share", o.over)
	}
}

func TestTheLimitHoldsWhileReplicasComeAndGo(t *testing.T) {
	events := map[string]func(t *testing.T, list []*replica){
		"one is killed":  func(_ *testing.T, list []*replica) { list[2].stop() },
		"one is removed": func(t *testing.T, list []*replica) { join(t, list[:2]...); list[2].stop() },
		"another comes": func(t *testing.T, list []*replica) {
			join(t, append(slices.Clone(list), start(t, identity(t, secret, "test")))...)
		},
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			s := shape{shares: [3]float64{0.5, 0.5, 0}, rate: 100, keys: 5}
			list := prepare(t, s)
			o := judge(s, play(t, s, list, 4*time.Second, func() { event(t, list) }))
			t.Logf("%+v", o)
			if o.over > mostOver(s, list, o) {
				t.Errorf("%.1f %% more was allowed than the limit", o.over)
			}
		})
	}
}

// BenchmarkShapes measures what docs/performance.md says of shared limits.
func BenchmarkShapes(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.String(), func(b *testing.B) {
			var last outcome
			frames := uint64(0)
			list := prepare(b, s)
			for b.Loop() {
				before := peers.Frames(list[0].mesh) + peers.Frames(list[1].mesh) + peers.Frames(list[2].mesh)
				last = judge(s, play(b, s, list, 4*time.Second, nil))
				frames = peers.Frames(list[0].mesh) + peers.Frames(list[1].mesh) + peers.Frames(list[2].mesh) - before
			}
			b.ReportMetric(last.over, "over-%")
			b.ReportMetric(last.exact, "exact-%")
			b.ReportMetric(last.under, "under-%")
			b.ReportMetric(float64(last.p50.Microseconds()), "p50-µs")
			b.ReportMetric(float64(last.p99.Microseconds()), "p99-µs")
			b.ReportMetric(float64(frames)/4, "frames/s")
			b.ReportMetric(float64(last.requests)/4, "requests/s")
		})
	}
}

// alone waits until a replica counts alone.
func (r *replica) alone(t testing.TB) {
	t.Helper()
	limit := quota.NewLimit(1_000_000, time.Second, 1_000_000)
	for deadline := time.Now().Add(10 * time.Second); r.Counts().Granted == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the replica does not find itself")
		}
		r.Take(context.WithoutCancel(t.Context()), (&quota.Subject{Limit: limit}).Key(secret), limit)
	}
}
