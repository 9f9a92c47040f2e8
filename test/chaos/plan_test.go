//go:build chaos

package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// operation is what a user does to an application.
type operation string

const (
	create            operation = "create"
	remove            operation = "delete"
	changeImage       operation = "image"
	changeMessage     operation = "env"
	changePort        operation = "port"
	changeGreeting    operation = "Secret, a key in use"
	changeUnused      operation = "Secret, another key"
	changeReplicas    operation = "replicas"
	changeAutoscaling operation = "autoscaling"
)

// change is one thing that a user does, that long after the beginning of the round.
type change struct {
	operation operation
	// want is the application afterwards; with remove: as it was.
	want  app
	after time.Duration
}

// victim is what is killed.
type victim string

const (
	leader    victim = "leader"
	standby   victim = "standby"
	apiServer victim = "kube-apiserver"
	etcd      victim = "etcd"
)

// kill is one SIGKILL, that long after the beginning of the round.
type kill struct {
	victim victim
	// gone: an operator's pod is deleted too, without grace, as when its node has died.
	// Otherwise the kubelet starts its container again.
	gone  bool
	after time.Duration
}

// round is what happens at the same time.
type round struct {
	number  int
	changes []change
	kills   []kill
	// settle: the next round waits until the cluster is what the model says. Otherwise it
	// begins while everybody is still busy with this one.
	settle bool
}

// Rounds follow each other without a rest for a while, a storm. Then everything has to
// come right. It cannot be asked after every round: after a few failures within two
// minutes every watch of Kubernetes, not just the operator's, pauses for 30 to 60 s
// before it tries the API server again.
const (
	shortestStorm = 10
	longestStorm  = 18
)

const (
	// changesWithin and killsWithin are how long a round is.
	changesWithin = 1500 * time.Millisecond
	killsWithin   = 2500 * time.Millisecond

	fewestApps = 6
	mostApps   = 10
)

// planner makes one round after the other, for a seed always the same ones. It knows
// nothing of the cluster.
type planner struct {
	random *rand.Rand
	// apps are what should exist after the rounds so far.
	apps map[string]*app
	// bystanders are applications that nothing is done to in this storm.
	bystanders map[string]bool
	// removed are the names of applications that were deleted in this storm. They are not
	// used again before the next: Kubernetes' garbage collector never notices, until it is
	// restarted, that an object was deleted and recreated while its watch was broken.
	removed map[string]bool
	// left is how many rounds the storm still has.
	left   int
	rounds int
	// value is the last one that was used.
	value int
}

func newPlanner(seed uint64) *planner {
	return &planner{random: rand.New(rand.NewPCG(seed, 0)), apps: map[string]*app{}}
}

// next plans the next round.
func (p *planner) next() round {
	p.rounds++
	if p.left == 0 {
		p.left = shortestStorm + p.random.IntN(longestStorm-shortestStorm+1)
		p.chooseBystanders()
		p.removed = map[string]bool{}
	}
	p.left--
	r := round{number: p.rounds, settle: p.left == 0}
	number := 1 + p.random.IntN(3)
	if p.rounds == 1 {
		number = fewestApps
	}
	for _, after := range p.moments(number, changesWithin) {
		c := p.change()
		c.after = after
		r.changes = append(r.changes, c)
	}
	first := p.victim("")
	victims := []victim{first}
	if p.chance(20) {
		victims = append(victims, p.victim(first))
	}
	for i, after := range p.moments(len(victims), killsWithin) {
		r.kills = append(r.kills, kill{victim: victims[i], gone: p.chance(50), after: after})
	}
	return r
}

// chooseBystanders leaves half of the applications alone.
func (p *planner) chooseBystanders() {
	p.bystanders = map[string]bool{}
	names := slices.Sorted(maps.Keys(p.apps))
	p.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:len(names)/2] {
		p.bystanders[name] = true
	}
}

// chance is true in so many of 100 cases.
func (p *planner) chance(percent int) bool { return p.random.IntN(100) < percent }

// moments returns so many moments in their order.
func (p *planner) moments(number int, within time.Duration) []time.Duration {
	var list []time.Duration
	for range number {
		list = append(list, time.Duration(p.random.Int64N(int64(within))).Round(time.Millisecond))
	}
	slices.Sort(list)
	return list
}

// victim picks one, another than the one given.
func (p *planner) victim(other victim) victim {
	for {
		picked := leader
		switch n := p.random.IntN(100); {
		case n < 30:
			picked = apiServer
		case n < 60:
			picked = etcd
		case n < 75:
			picked = standby
		}
		if picked != other {
			return picked
		}
	}
}

// change picks what is done next, and does it to the model.
func (p *planner) change() change {
	p.value++
	kind := p.random.IntN(100)
	switch {
	case len(p.apps) < fewestApps, kind < 10 && len(p.apps) < mostApps && len(p.free()) > 0:
		return p.create()
	case kind < 20 && len(p.apps) > fewestApps:
		a := p.pick()
		delete(p.apps, a.name)
		p.removed[a.name] = true
		return change{operation: remove, want: *a}
	}
	a := p.pick()
	o := p.operation(a)
	// The value says by how much a number of replicas changes, and must not depend on how
	// many changes there were.
	p.value += p.random.IntN(mostReplicas)
	a.do(o, p.value)
	return change{operation: o, want: *a}
}

func (p *planner) create() change {
	free := p.free()
	a := newApp(free[p.random.IntN(len(free))], p.value)
	p.apps[a.name] = a
	return change{operation: create, want: *a}
}

// free are names for new applications. There are few, so that most are used again.
func (p *planner) free() []string {
	var names []string
	for n := range 2 * mostApps {
		if name := fmt.Sprintf("app-%d", n); p.apps[name] == nil && !p.removed[name] {
			names = append(names, name)
		}
	}
	return names
}

// pick picks an application that is no bystander.
func (p *planner) pick() *app {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.apps)), func(name string) bool { return p.bystanders[name] })
	return p.apps[names[p.random.IntN(len(names))]]
}

// operation picks a change of an application. Between two looks at the cluster its scale
// changes once at most: the operator may see two changes as one, and with an autoscaler
// the number of pods then depends on whether it did.
func (p *planner) operation(a *app) operation {
	scale := !a.since.created && !a.since.scaled
	switch n := p.random.IntN(100); {
	case n < 20:
		return changeImage
	case n < 28:
		return changePort
	case n < 48:
		return changeGreeting
	case n < 58:
		return changeUnused
	case n < 74 && scale:
		return changeReplicas
	case n < 88 && scale:
		return changeAutoscaling
	default:
		return changeMessage
	}
}

// settled begins a new account of what is done to each application.
func (p *planner) settled() {
	for _, a := range p.apps {
		a.settled()
	}
}

func TestASeedAlwaysGivesTheSamePlan(t *testing.T) {
	const rounds = 200
	plan := func(seed uint64) string {
		p := newPlanner(seed)
		var text strings.Builder
		for range rounds {
			r := p.next()
			fmt.Fprintf(&text, "%+v\n", r)
			if r.settle {
				p.settled()
			}
		}
		return text.String()
	}
	first := plan(1)
	if plan(1) != first {
		t.Error("the same seed gave two plans")
	}
	if plan(2) == first {
		t.Error("two seeds gave the same plan")
	}
	for _, word := range []operation{
		create, remove, changeImage, changeMessage, changePort, changeGreeting, changeUnused, changeReplicas, changeAutoscaling,
	} {
		if !strings.Contains(first, fmt.Sprintf("operation:%s ", word)) {
			t.Errorf("%d rounds have no %q", rounds, word)
		}
	}
	for _, word := range []victim{leader, standby, apiServer, etcd} {
		if !strings.Contains(first, fmt.Sprintf("victim:%s ", word)) {
			t.Errorf("%d rounds kill no %s", rounds, word)
		}
	}
}
