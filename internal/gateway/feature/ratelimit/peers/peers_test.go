package peers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

var secret = bytes.Repeat([]byte("s"), quota.SecretBytes)

func identity(t testing.TB, secret []byte, scope string) *peers.Identity {
	t.Helper()
	id, err := peers.NewIdentity(secret, scope)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// replica is a replica with a real port.
type replica struct {
	*quota.Quota
	mesh    *peers.Mesh
	address string
	changed chan struct{}
	stop    func()
}

func start(t testing.TB, id *peers.Identity) *replica {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, id, listener, nil)
}

func startOn(t testing.TB, id *peers.Identity, listener net.Listener, report panics.Reporter) *replica {
	t.Helper()
	r := &replica{Quota: quota.New(clock.RealClock{}), address: listener.Addr().String(), changed: make(chan struct{}, 1)}
	r.mesh = peers.New(peers.Options{Identity: id, Listener: listener, Quota: r.Quota, Clock: clock.RealClock{}, Panics: report, Changed: func() {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { r.mesh.Run(ctx) })
	r.stop = func() { cancel(); wait.Wait() }
	t.Cleanup(r.stop)
	return r
}

// awaits waits until a replica has this state.
func (r *replica) awaits(t testing.TB, want peers.State) {
	t.Helper()
	for limit := time.After(20 * time.Second); r.mesh.State() != want; {
		select {
		case <-r.changed:
		case <-limit:
			t.Fatalf("the state is %+v, want %+v", r.mesh.State(), want)
		}
	}
}

// connected returns replicas that reach each other.
func connected(t testing.TB, number int) []*replica {
	t.Helper()
	id := identity(t, secret, "test")
	var list []*replica
	for range number {
		list = append(list, start(t, id))
	}
	join(t, list...)
	return list
}

func addresses(list []*replica) (all []string) {
	for _, r := range list {
		all = append(all, r.address)
	}
	return all
}

func join(t testing.TB, list ...*replica) {
	t.Helper()
	for _, r := range list {
		r.mesh.SetMembers(addresses(list))
	}
	for _, r := range list {
		r.awaits(t, peers.State{Known: len(list) - 1, Reached: len(list) - 1})
	}
}

// take sends requests to a replica, and returns how many were allowed.
func take(t *testing.T, r *replica, route string, limit quota.Limit, number int) (allowed int) {
	t.Helper()
	key := (&quota.Subject{Route: route, Limit: limit}).Key(secret)
	for range number {
		if r.Take(t.Context(), key, limit) == 0 {
			allowed++
		}
	}
	return allowed
}

func TestReplicasShareALimitOverConnections(t *testing.T) {
	list := connected(t, 3)
	limit := quota.NewLimit(100, time.Hour, 100)
	for route := range 10 {
		var allowed atomic.Int64
		var wait sync.WaitGroup
		for _, r := range list {
			for range 8 {
				wait.Go(func() { allowed.Add(int64(take(t, r, fmt.Sprint(route), limit, 25))) })
			}
		}
		wait.Wait()
		// A slow machine may make a request late, which is decided with a third of the limit.
		if got := allowed.Load(); got < 95 || got > 105 {
			t.Errorf("route %d: %d of 600 requests were allowed, want 100", route, got)
		}
	}
}

func TestAReplicaThatIsKilledIsNoticed(t *testing.T) {
	list := connected(t, 3)
	list[2].stop()
	for _, r := range list[:2] {
		r.awaits(t, peers.State{Known: 2, Reached: 1})
	}
	// All that are left give two thirds at most, until it is known that the third is gone.
	limit := quota.NewLimit(90, time.Hour, 90)
	if got := take(t, list[0], "a", limit, 300) + take(t, list[1], "a", limit, 300); got > 90 {
		t.Errorf("%d requests were allowed, want at most 90", got)
	}
	join(t, list[:2]...)
}

// A connection that is open and silent counts as none after a second.
func TestAReplicaThatHangsIsNoticed(t *testing.T) {
	id := identity(t, secret, "test")
	first := start(t, id)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", peers.Config(id))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	accepted := make(chan net.Conn, 16)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // says who it is, and no more
				_, _ = conn.Write(bytes.Repeat([]byte{7}, 16))
				_, _ = io.Copy(io.Discard, conn)
				accepted <- conn
			}()
		}
	}()
	first.mesh.SetMembers([]string{first.address, listener.Addr().String()})
	select {
	case <-accepted: // the first one has closed it
	case <-time.After(20 * time.Second):
		t.Fatal("the silent connection stays open")
	}
}

func TestOnlyWhoHasTheSecretIsHeard(t *testing.T) {
	list := connected(t, 2)
	for name, id := range map[string]*peers.Identity{
		"another secret":  identity(t, bytes.Repeat([]byte("x"), 32), "test"),
		"another gateway": identity(t, secret, "other"),
	} {
		stranger := start(t, id)
		stranger.mesh.SetMembers(append(addresses(list), stranger.address))
		for _, r := range list {
			if conn, err := tls.Dial("tcp", r.address, peers.Config(id)); err == nil {
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				if n, err := conn.Read(make([]byte, 1)); err == nil {
					t.Errorf("%s: %d bytes were read", name, n)
				}
				_ = conn.Close()
			}
			if conn, err := tls.Dial("tcp", stranger.address, peers.Config(identity(t, secret, "test"))); err == nil {
				t.Errorf("%s: a replica trusts it", name)
				_ = conn.Close()
			}
		}
		if state := stranger.mesh.State(); state.Reached != 0 {
			t.Errorf("%s: it reaches %d replicas", name, state.Reached)
		}
	}
	for name, config := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true, NextProtos: []string{"slipway-quota/1"}},
		"TLS 1.2":        {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: peers.Config(identity(t, secret, "test")).Certificates},
		"no protocol":    {InsecureSkipVerify: true, Certificates: peers.Config(identity(t, secret, "test")).Certificates},
	} {
		conn, err := tls.Dial("tcp", list[0].address, config)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: %d bytes were read", name, n)
		}
		_ = conn.Close()
	}
	if list[0].mesh.RejectedConnections() == 0 {
		t.Error("nobody was counted as a stranger")
	}
	for _, r := range list {
		r.awaits(t, peers.State{Known: 1, Reached: 1})
	}
}

// Many pods that connect and say nothing do not keep the replicas apart.
func TestSilentConnectionsDoNotKeepReplicasApart(t *testing.T) {
	id := identity(t, secret, "test")
	first, second := start(t, id), start(t, id)
	for range 500 {
		conn, err := net.Dial("tcp", first.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	join(t, first, second)
	if open := peers.Pending(first.mesh); open > 64 {
		t.Errorf("%d connections that have proved nothing are open", open)
	}
}

// A replica is found among the addresses by what it says of itself.
func TestAReplicaAloneCountsAlone(t *testing.T) {
	list := connected(t, 1)
	limit := quota.NewLimit(10, time.Hour, 10)
	list[0].alone(t)
	if got := take(t, list[0], "b", limit, 100); got != 10 {
		t.Errorf("%d of 100 requests were allowed, want 10", got)
	}
}

func TestAShortSecretIsRefused(t *testing.T) {
	if _, err := peers.NewIdentity(secret[1:], "test"); err == nil || strings.Contains(err.Error(), "sss") {
		t.Errorf("the answer is %v", err)
	}
	a, b := identity(t, secret, "test"), identity(t, secret, "test")
	if !a.Same(b) || a.Same(identity(t, secret, "other")) || !slices.Equal(a.Keys(), b.Keys()) || a.Same(nil) {
		t.Error("the same secret leads to another identity")
	}
}

// Whatever a replica with the secret sends: nothing is answered beyond what was asked, and nothing panics.
func FuzzAnswering(f *testing.F) {
	f.Add([]byte{1, 0, 0})
	f.Add(append([]byte{1, 0, 1}, bytes.Repeat([]byte{0}, 44)...))
	f.Add(append([]byte{1, 0, 2}, bytes.Repeat([]byte{0xff}, 88)...))
	f.Add([]byte{2, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, sent []byte) {
		q := quota.New(clock.RealClock{})
		answers, asks := peers.AnswerAll(q, sent)
		if answers > asks {
			t.Errorf("%d asks got %d answers", asks, answers)
		}
		peers.TakeAll(q, sent)
	})
}

// mined is a connection of another replica that makes this one panic.
type mined struct{ net.Conn }

func (mined) Read([]byte) (int, error) { panic("a defect") }

// mining makes mined connections of the first ones.
type mining struct {
	net.Listener

	left atomic.Int64
}

func (m *mining) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	if err == nil && m.left.Add(-1) >= 0 {
		conn = mined{conn}
	}
	return conn, err
}

func TestAPanicEndsOneConnectionAlone(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	id, doing := identity(t, secret, "test"), make(chan string, 1)
	listener := &mining{Listener: below}
	listener.left.Store(1)
	panicking := startOn(t, id, listener, func(what string, _ any, _ []byte) { doing <- what })
	join(t, panicking, start(t, id))
	if got := <-doing; got != "answer another replica" {
		t.Errorf("told of %q", got)
	}
}
