package peers

import (
	"context"
	"crypto/rand"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

const (
	// maxMembers bounds the replicas. Further ones count as replicas that start: they ask, and own no keys.
	maxMembers = 256
	// firstPause and maxPause bound the pause before the next attempt to reach a replica. It doubles.
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Options configures a Mesh.
type Options struct {
	// Identity is what this replica has in common with the others.
	Identity *Identity
	// Listener is where the others reach this one. Run closes it.
	Listener net.Listener
	// Quota gets the ring, asks and answers.
	Quota *quota.Quota
	// Clock gives the time.
	Clock clock.WithTicker
	// Changed is called when State may have changed. Optional. It must not block.
	Changed func()
	// Panics is told of a panic of a connection to another replica, which ends the connection. Nil: it ends the process.
	Panics panics.Reporter
}

// State tells how many other replicas there are, and how many of them are reached in both directions.
type State struct {
	Known, Reached int
}

// Mesh connects this replica with the others. It is safe for concurrent use.
type Mesh struct {
	options     Options
	instance    instance
	pending     *pending
	connections atomic.Uint64
	frames      atomic.Uint64 // that were sent
	rejected    atomic.Uint64 // connections without the secret
	wait        sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context // nil before Run
	members map[string]*member
	inbound map[instance]int // connections of other replicas
	served  int
}

// member is a replica that takes requests. Its fields are guarded by the mutex of the Mesh.
type member struct {
	stop context.CancelFunc
	self bool
	link *link // nil while it is not reached
}

// New returns a Mesh without members.
func New(options Options) *Mesh {
	m := &Mesh{options: options, pending: newPending(), members: map[string]*member{}, inbound: map[instance]int{}}
	_, _ = rand.Read(m.instance[:]) // never fails
	return m
}

// Run connects the replicas until the context ends. Then this replica is alone.
func (m *Mesh) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = m.options.Listener.Close() })()
	m.mu.Lock()
	m.ctx = ctx
	for address, one := range m.members {
		m.follow(address, one)
	}
	m.mu.Unlock()
	m.accept(ctx)
	m.wait.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ctx = nil
	m.publish()
}

// SetMembers sets the addresses, as host:port, of the replicas that take requests. This one may be among them.
func (m *Mesh) SetMembers(addresses []string) {
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	addresses = addresses[:min(len(addresses), maxMembers)]
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := false
	for address, one := range m.members {
		if slices.Contains(addresses, address) {
			continue
		}
		delete(m.members, address)
		changed = true
		if one.stop != nil {
			one.stop()
		}
	}
	for _, address := range addresses {
		if m.members[address] != nil {
			continue
		}
		m.members[address], changed = &member{}, true
		m.follow(address, m.members[address])
	}
	if changed {
		m.publish()
	}
}

// follow reaches a member in the background. The caller holds the mutex.
func (m *Mesh) follow(address string, one *member) {
	if m.ctx == nil || m.ctx.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, one.stop = context.WithCancel(m.ctx)
	m.wait.Go(func() { m.reach(ctx, address, one) })
}

// reach keeps a connection to a member until the context ends.
func (m *Mesh) reach(ctx context.Context, address string, one *member) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		connected, self := m.exchange(ctx, address, one)
		if self {
			return
		}
		if connected {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-m.options.Clock.After(pause):
		}
	}
}

// exchange connects to a member and exchanges asks and answers until the connection ends. self: it is this replica.
func (m *Mesh) exchange(ctx context.Context, address string, one *member) (connected, self bool) {
	defer m.options.Panics.Catch("connect to another replica")
	l, err := m.open(ctx, address)
	if err != nil {
		return false, false
	}
	if l.peer == m.instance {
		_ = l.conn.Close()
		m.set(one, nil, true)
		return true, true
	}
	m.set(one, l, false)
	defer m.set(one, nil, false)
	l.run(ctx)
	return true, false
}

// set notes the connection to a member.
func (m *Mesh) set(one *member, l *link, self bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one.link, one.self = l, self
	m.publish()
}

// came notes a connection of another replica. It returns false if there are too many.
func (m *Mesh) came(peer instance) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served >= maxServed {
		return false
	}
	m.served++
	m.inbound[peer]++
	m.publish()
	return true
}

func (m *Mesh) left(peer instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served--
	if m.inbound[peer]--; m.inbound[peer] == 0 {
		delete(m.inbound, peer)
	}
	m.publish()
}

// publish gives the quota the ring. The caller holds the mutex.
func (m *Mesh) publish() {
	ring := &quota.Ring{}
	for _, address := range slices.Sorted(maps.Keys(m.members)) {
		one := m.members[address]
		next := quota.Member{Name: address, Self: one.self}
		if one.link != nil {
			next.Peer, next.Connection = one.link, one.link.number
			if m.inbound[one.link.peer] > 0 {
				ring.Reached++
			}
		}
		ring.Members = append(ring.Members, next)
	}
	m.options.Quota.SetRing(ring)
	if m.options.Changed != nil {
		m.options.Changed()
	}
}

// State returns how many others are known and reached.
func (m *Mesh) State() (s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.members {
		if one.self {
			continue
		}
		s.Known++
		if one.link != nil && m.inbound[one.link.peer] > 0 {
			s.Reached++
		}
	}
	return s
}

// RejectedConnections returns how many connections did not prove that they have the secret.
func (m *Mesh) RejectedConnections() uint64 { return m.rejected.Load() }
