package peers

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// Port is where the replicas of a gateway reach each other.
const Port = quota.Port

const (
	// toldAfter is how long something may be wrong before it is told. When a replica starts or ends, something is for a moment.
	toldAfter = 10 * time.Second
	// listenPause is the pause before the next attempt to open the port.
	listenPause = time.Second
)

// Settings say what a gateway shares.
type Settings struct {
	// Wanted means that a rate limit is counted by all replicas. Without it there is no port and no connection.
	Wanted bool
	// Secret is what all replicas have in common. Without it each counts its part.
	Secret []byte
	// Addresses are those of all replicas that take requests, as host:port.
	Addresses []string
}

// SharedOptions configures a Shared.
type SharedOptions struct {
	// Address is where to listen, as host:port.
	Address string
	// Scope names the gateway (NewIdentity).
	Scope string
	// Secret is the name of the Secret with Settings.Secret, and SecretKey the key there, for messages.
	Secret    string
	SecretKey string
	// Clock gives the time.
	Clock clock.WithTicker
	// Changed is called when Trouble may have changed. Optional. It must not block.
	Changed func()
	// Panics is told of a panic of a connection to another replica. Nil: it ends the process.
	Panics panics.Reporter
}

// Shared counts requests for all replicas of a gateway, as the settings say. It is safe for concurrent use.
type Shared struct {
	options SharedOptions
	quota   *quota.Quota
	keys    atomic.Pointer[[]byte] // for quota.Subject.Key

	mu       sync.Mutex
	settings Settings
	identity *Identity
	mesh     *Mesh
	stop     func()    // ends the mesh; nil without one
	wrong    string    // why there is no mesh
	since    time.Time // since when something is wrong; zero: nothing is
	rejected uint64    // of former meshes
}

// NewShared returns a Shared of a gateway that shares nothing yet.
func NewShared(options SharedOptions) *Shared {
	s := &Shared{options: options, quota: quota.New(options.Clock)}
	s.setKeys(nil)
	return s
}

// setKeys sets the secret of hashes. Without one it is random, so that no keys of another gateway are counted.
func (s *Shared) setKeys(keys []byte) {
	if keys == nil {
		keys = make([]byte, quota.SecretBytes)
		_, _ = rand.Read(keys) // never fails
	}
	s.keys.Store(&keys)
}

// Take counts a request (quota.Quota.Take).
func (s *Shared) Take(ctx context.Context, subject *quota.Subject) time.Duration {
	return s.quota.Take(ctx, subject.Key(*s.keys.Load()), subject.Limit)
}

// Set makes the settings true. What it opens ends with the context. If the port cannot be opened, again is when to call it
// again.
func (s *Shared) Set(ctx context.Context, settings Settings) (again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !settings.Wanted {
		s.end("")
		s.settings, s.identity = settings, nil
		return time.Time{}
	}
	if s.identity == nil || !bytes.Equal(settings.Secret, s.settings.Secret) {
		s.end("")
		s.identity = nil
		identity, err := NewIdentity(settings.Secret, s.options.Scope)
		switch {
		case len(settings.Secret) == 0:
			s.wrong = fmt.Sprintf("Secret %q, by which the replicas know each other, cannot be read yet, or has no key %q", s.options.Secret, s.options.SecretKey)
		case err != nil:
			s.wrong = fmt.Sprintf("key %q of Secret %q, by which the replicas know each other: %v", s.options.SecretKey, s.options.Secret, err)
		default:
			s.identity = identity
			s.setKeys(identity.Keys())
		}
	}
	s.settings = settings
	s.settings.Secret, s.settings.Addresses = bytes.Clone(settings.Secret), slices.Clone(settings.Addresses)
	if s.identity != nil && s.mesh == nil {
		again = s.begin(ctx)
	}
	if s.mesh == nil {
		s.quota.SetRing(apart(len(settings.Addresses)))
		return again
	}
	s.mesh.SetMembers(settings.Addresses)
	return again
}

// apart is the ring of a replica that reaches none of all. It need not know which one it is.
func apart(all int) *quota.Ring {
	ring := &quota.Ring{Members: []quota.Member{{Name: "self", Self: true}}}
	for i := 1; i < min(all, maxMembers); i++ {
		ring.Members = append(ring.Members, quota.Member{Name: fmt.Sprint(i)})
	}
	return ring
}

// begin opens the port and connects the replicas. The caller holds the mutex.
func (s *Shared) begin(ctx context.Context) (again time.Time) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		s.wrong = "the port for the other replicas cannot be opened: " + err.Error()
		return s.options.Clock.Now().Add(listenPause)
	}
	s.wrong = ""
	s.mesh = New(Options{Identity: s.identity, Listener: listener, Quota: s.quota, Clock: s.options.Clock, Changed: s.options.Changed, Panics: s.options.Panics})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func(mesh *Mesh) {
		defer close(ended)
		mesh.Run(ctx)
	}(s.mesh)
	s.stop = func() { cancel(); <-ended }
	return time.Time{}
}

// end ends what begin has begun. The caller holds the mutex.
func (s *Shared) end(wrong string) {
	s.wrong = wrong
	if s.stop == nil {
		return
	}
	s.stop()
	s.rejected += s.mesh.RejectedConnections()
	s.mesh, s.stop = nil, nil
	s.setKeys(nil)
}

// Trouble says why requests have not been counted together for a while, or nothing. again is when the answer may change
// without a call of Changed.
func (s *Shared) Trouble() (text string, again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = s.trouble()
	if text == "" {
		s.since = time.Time{}
		return "", time.Time{}
	}
	now := s.options.Clock.Now()
	if s.since.IsZero() {
		s.since = now
	}
	if until := s.since.Add(toldAfter); now.Before(until) {
		return "", until
	}
	return text, time.Time{}
}

// trouble is what is wrong now. The caller holds the mutex.
func (s *Shared) trouble() string {
	switch {
	case !s.settings.Wanted:
		return ""
	case s.mesh == nil:
		return s.wrong
	}
	if state := s.mesh.State(); state.Reached < state.Known {
		return "not all replicas reach each other on port " + s.port()
	}
	return ""
}

func (s *Shared) port() string {
	_, port, _ := net.SplitHostPort(s.options.Address)
	return port
}

// Figures are what is measured of a Shared.
type Figures struct {
	quota.Counts
	State

	// Wanted means that a rate limit is counted by all replicas.
	Wanted bool
	// RejectedConnections are the connections that did not prove that they have the secret.
	RejectedConnections uint64
}

// Figures returns what is measured.
func (s *Shared) Figures() Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := Figures{Counts: s.quota.Counts(), Wanted: s.settings.Wanted, RejectedConnections: s.rejected}
	if s.mesh != nil {
		f.State = s.mesh.State()
		f.RejectedConnections += s.mesh.RejectedConnections()
	}
	return f
}
