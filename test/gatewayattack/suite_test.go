package gatewayattack

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// atOnce is how many attacks run at a time.
const atOnce = 32

// suite is attacks against a target, with what came of them.
type suite struct {
	target *target
	lanes  []*lane
	played []*played
	judge  *judge
	// between records what a proxy in front of the gateway sends to it; nil where there is none.
	between *recorder
}

// run plays every attack against every lane that it is for, and judges.
func (s *suite) run(attacks []*attack) {
	for _, a := range attacks {
		for _, l := range s.lanes {
			if !a.hostile() && l.hostile == nil && (!l.real || !a.recorderOnly) {
				s.played = append(s.played, a.against(l))
			}
		}
	}
	s.playHostile(attacks, "", func(a *attack) bool { return a.hostile() && a.behind.replies == nil })
	for _, protocol := range []string{overH2C, overTLS} {
		s.playHostile(attacks, protocol, func(a *attack) bool { return a.behind.replies != nil })
	}
	s.judge = newJudge(s.played)
	var victims sync.Map
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for _, p := range s.played {
		wait.Go(func() {
			if p.lane.hostile != nil {
				p.lane.hostile.Lock()
				defer p.lane.hostile.Unlock()
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			p.play(s.target)
			if p.asksAgain {
				p.askAgain(s.target)
			}
			if !p.noVictim {
				if trouble := s.target.victim(p.lane, p.number); trouble != "" {
					victims.Store(p, trouble)
				}
			}
		})
	}
	wait.Wait()
	for _, l := range s.lanes {
		l.records.settle(300 * time.Millisecond)
	}
	if s.between != nil {
		s.judge.relays(s.between)
	}
	s.judge.lanes(s.lanes)
	reached := map[string]bool{}
	for _, l := range s.lanes {
		for _, request := range l.requests() {
			reached[request.id] = true
		}
	}
	for _, p := range s.played {
		s.judge.client(p)
		s.judge.kept(p)
		s.judge.served(p, reached)
		if trouble, ok := victims.Load(p); ok {
			s.judge.add(p, oracleVictim, "the next client %s", trouble)
		}
	}
}

// playHostile deals the attacks that are meant to the hostile backends that speak the protocol.
func (s *suite) playHostile(attacks []*attack, protocol string, meant func(*attack) bool) {
	lanes := slices.DeleteFunc(slices.Clone(s.lanes), func(l *lane) bool { return l.hostile == nil || l.over != protocol })
	if len(lanes) == 0 {
		return
	}
	for i, a := range slices.DeleteFunc(slices.Clone(attacks), func(a *attack) bool { return !meant(a) }) {
		s.played = append(s.played, a.against(lanes[i%len(lanes)]))
	}
}

// report has a test per lane and family, which fails with what was violated.
func (s *suite) report(t *testing.T) {
	t.Helper()
	for _, v := range s.judge.stray {
		t.Errorf("%s: %s", v.oracle, v.text)
	}
	type group struct{ lane, family string }
	var groups []group
	members := map[group][]*played{}
	for _, p := range s.played {
		g := group{p.lane.name, p.family}
		if p.lane.hostile != nil {
			g.lane = strings.TrimSpace("hostile " + p.lane.over)
		}
		if members[g] == nil {
			groups = append(groups, g)
		}
		members[g] = append(members[g], p)
	}
	for _, g := range groups {
		t.Run(g.lane+"/"+g.family, func(t *testing.T) {
			for _, p := range members[g] {
				s.reportOne(t, p)
			}
		})
	}
}

func (s *suite) reportOne(t *testing.T, p *played) {
	t.Helper()
	found := s.judge.found[p]
	if len(found) == 0 {
		return
	}
	var text strings.Builder
	for _, v := range found {
		fmt.Fprintf(&text, "  %s: %s\n", v.oracle, v.text)
	}
	t.Errorf("%s\n%s%s", p.name, p.sent(), text.String())
}

// Every attack, against the gateway's program with the recording backend behind it.
func TestNothingGetsThroughToARecordingBackend(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	s.run(allAttacks())
	s.report(t)
	if s.fromCache() == 0 {
		t.Error("nobody got anything from the cache: the attacks on it show nothing")
	}
}

// newSuite starts the gateway in front of the recording backend.
func newSuite(t testing.TB) *suite {
	t.Helper()
	lanes := append(recordingLanes(t, loopback), hostileLanes2(t, loopback, authority.New(t, "backends"))...)
	return &suite{target: startGateway(t, lanes), lanes: lanes}
}

// recordingLanes are the recording backend, and some for backends that do not behave, at an address of this machine.
func recordingLanes(t testing.TB, address string) []*lane {
	t.Helper()
	lanes := []*lane{recordingLane(t, "recorder", address)}
	for i := range 8 {
		hostile := recordingLane(t, fmt.Sprintf("hostile-%d", i), address)
		hostile.hostile = &sync.Mutex{}
		lanes = append(lanes, hostile)
	}
	return lanes
}

// violations counts them by oracle.
func (s *suite) violations() map[string]int {
	counts := map[string]int{}
	for _, found := range s.judge.found {
		for _, v := range found {
			counts[v.oracle]++
		}
	}
	for _, v := range s.judge.stray {
		counts[v.oracle]++
	}
	return counts
}

func recordingLane(t testing.TB, name, address string) *lane {
	t.Helper()
	records := record(t, address, (*recorder).serve)
	return &lane{name: name, host: name + ".test", address: records.address(), records: records}
}

// Every answer of a backend over HTTP/2 that does not behave, with and without TLS.
func TestNoBackendOverHTTP2SplitsAnswers(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	s.run(backendAnswers())
	s.report(t)
}
