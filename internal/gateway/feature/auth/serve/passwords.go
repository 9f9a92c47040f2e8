package serve

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash/maphash"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

const (
	// maxPasswords bounds how many correct passwords are remembered.
	maxPasswords = 4096
	// maxGuesses bounds the passwords that wait for their comparison. maxClientGuesses
	// bounds those of one client address.
	maxGuesses       = 64
	maxClientGuesses = 8
	// maxUserGuesses bounds the waiting passwords for one user name, so that guesses for
	// one user do not block others. Names are counted by their hash, so that a client
	// cannot find out which users exist.
	maxUserGuesses = 16
	userBuckets    = 64
	// maxTogether bounds the requests that wait for the same password of the same user.
	maxTogether = 256
	// maxPasswordWait bounds how long a request waits, also when its route has no timeout.
	maxPasswordWait = 5 * time.Second
)

// verdict is the result of a password check.
type verdict int

const (
	passwordRight verdict = iota
	passwordWrong
	passwordClientBusy // the client's address has too many guesses waiting
	passwordBusy       // too many guesses wait, or the wait was too long
	passwordTimeout    // the request's deadline has passed
	passwordCanceled   // the client has gone
)

// verdicts are the label values of the verdicts.
var verdicts = [...]string{"right", "wrong", "client_busy", "busy", "timeout", "canceled"}

// attempt is a user name with a password and the client that sent it.
type attempt struct {
	users          map[string][][]byte // bcrypt hashes by user
	user, password string
	client         netip.Addr // as clients.Of defines it
	deadline       time.Time  // of the request; zero means none
}

// passwords checks passwords. Comparing a bcrypt hash is slow by design. So only one
// goroutine compares, and guessing uses at most one core. It serves client addresses in
// turn. Each address has a small share of the queue. Correct passwords are remembered under
// a keyed hash of the password and the bcrypt hash. That hash is useless without both, and
// a new bcrypt hash in the Secret makes it invalid.
type passwords struct {
	clock   clock.PassiveClock
	key     []byte
	seed    maphash.Seed
	compare func(hash, password []byte) error
	panics  panics.Reporter

	mu      sync.Mutex
	right   map[fingerprint]struct{}
	running bool // a goroutine compares
	queued  int
	turns   int64 // counts new clients and finished guesses
	clients map[netip.Addr]*guesser
	users   [userBuckets]int // waiting guesses by user name
	flights map[fingerprint]*guess
}

// fingerprint is a keyed hash of a password, and of what it is compared with.
type fingerprint [sha256.Size]byte

// guesser is a client address with a guess that waits or is compared.
type guesser struct {
	guesses []*guess
	turn    int64 // when it came, or when its last guess was compared; the lowest is next
	running bool
}

// guess is a password that waits or is compared. Several requests may share it.
type guess struct {
	attempt

	print    fingerprint
	bucket   int
	together int           // how many requests wait for it
	shared   bool          // requests of several clients wait for it
	done     chan struct{} // closed after the comparison
	right    bool          // the result; written before done is closed
	dropped  bool          // it lost its place to another client's guess; written before done is closed
}

func newPasswords(clock clock.PassiveClock) *passwords {
	p := &passwords{
		clock: clock, key: make([]byte, sha256.Size), seed: maphash.MakeSeed(), compare: bcrypt.CompareHashAndPassword,
		right: map[fingerprint]struct{}{}, clients: map[netip.Addr]*guesser{}, flights: map[fingerprint]*guess{},
	}
	_, _ = rand.Read(p.key) // never fails
	return p
}

// check checks the password of a user. For an unknown user it takes as long as for a known
// one, so that the time does not tell which users exist.
func (p *passwords) check(ctx context.Context, a attempt) verdict {
	print := p.fingerprint(&a)
	p.mu.Lock()
	if _, right := p.right[print]; right {
		p.mu.Unlock()
		return passwordRight
	}
	g, refused := p.enqueue(a, print)
	p.mu.Unlock()
	if g == nil {
		return refused
	}
	defer p.leave(g)
	return p.await(ctx, g, a.deadline)
}

// await waits until a guess has been compared, or the request cannot wait any longer.
func (p *passwords) await(ctx context.Context, g *guess, deadline time.Time) verdict {
	wait, late := maxPasswordWait, passwordBusy
	if !deadline.IsZero() {
		if left := deadline.Sub(p.clock.Now()); left < wait {
			wait, late = left, passwordTimeout
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-g.done:
		switch {
		case g.dropped:
			return passwordBusy
		case g.right:
			return passwordRight
		}
		return passwordWrong
	case <-ctx.Done():
		return passwordCanceled
	case <-timer.C:
		return late
	}
}

// enqueue adds a guess to the queue, or joins the same guess if it waits already. If there
// is no room, it returns nil and the reason. The caller holds mu.
func (p *passwords) enqueue(a attempt, print fingerprint) (*guess, verdict) {
	if same := p.flights[print]; same != nil {
		if same.together >= maxTogether {
			return nil, passwordBusy
		}
		same.together++
		same.shared = same.shared || same.client != a.client
		return same, 0
	}
	client := p.clients[a.client]
	bucket := p.bucket(a.user)
	switch {
	case client != nil && len(client.guesses) >= maxClientGuesses:
		return nil, passwordClientBusy
	case !p.makeRoom(a.client, bucket):
		return nil, passwordBusy
	case client == nil:
		p.turns++
		client = &guesser{turn: p.turns}
		p.clients[a.client] = client
	}
	g := &guess{attempt: a, print: print, bucket: bucket, together: 1, done: make(chan struct{})}
	p.flights[print] = g
	client.guesses = append(client.guesses, g)
	p.queued++
	p.users[bucket]++
	if !p.running {
		p.running = true
		go p.run()
	}
	return g, 0
}

// makeRoom reports whether the client's guess for a user may enter the queue. If the queue
// is full, the client with the most guesses loses its newest one to a client with fewer. So
// a few clients cannot fill the queue. The caller holds mu.
func (p *passwords) makeRoom(client netip.Addr, bucket int) bool {
	atUser := func(g *guess) bool { return g.bucket == bucket }
	anybody := func(*guess) bool { return true }
	if p.users[bucket] >= maxUserGuesses && !p.giveWay(client, atUser) {
		return false
	}
	return p.queued < maxGuesses || p.giveWay(client, anybody)
}

// giveWay drops a guess of the client with the most guesses that counts selects. It never
// drops a guess for which another client waits too. It returns false if that client would
// then have fewer guesses than the newcomer.
func (p *passwords) giveWay(newcomer netip.Addr, counts func(*guess) bool) bool {
	most, has := 0, 0
	var newest *guess
	for client, c := range p.clients {
		n := 0
		var last *guess
		for _, g := range c.guesses {
			if !counts(g) {
				continue
			}
			n++
			if !g.shared {
				last = g
			}
		}
		if client == newcomer {
			has = n
		}
		if n > most && last != nil {
			most, newest = n, last
		}
	}
	if most < has+2 {
		return false
	}
	newest.dropped = true
	p.remove(newest)
	close(newest.done)
	return true
}

func (p *passwords) bucket(user string) int { return int(maphash.String(p.seed, user) % userBuckets) }

// leave removes a request from its guess. A guess for which no request waits is not
// compared.
func (p *passwords) leave(g *guess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.together--
	if g.together > 0 {
		return
	}
	p.remove(g)
}

// remove removes a guess from the queue, if it is there. The caller holds mu.
func (p *passwords) remove(g *guess) {
	client := p.clients[g.client]
	if client == nil {
		return
	}
	if i := slices.Index(client.guesses, g); i >= 0 {
		client.guesses = slices.Delete(client.guesses, i, i+1)
		p.dequeued(g)
		delete(p.flights, g.print)
		p.forget(g.client)
	}
}

// dequeued and forget need mu held.
func (p *passwords) dequeued(g *guess) {
	p.queued--
	p.users[g.bucket]--
}

func (p *passwords) forget(client netip.Addr) {
	if c := p.clients[client]; c != nil && len(c.guesses) == 0 && !c.running {
		delete(p.clients, client)
	}
}

// run compares the waiting guesses one after the other. It ends when none waits.
func (p *passwords) run() {
	for {
		p.mu.Lock()
		g := p.next()
		if g == nil {
			p.running = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		right := p.isRight(&g.attempt)
		p.mu.Lock()
		g.right = right
		if right {
			p.remember(g.print)
		}
		p.ended(g)
		p.mu.Unlock()
		close(g.done)
	}
}

// ended forgets a guess that has been compared. The caller holds mu.
func (p *passwords) ended(g *guess) {
	delete(p.flights, g.print)
	p.turns++
	client := p.clients[g.client]
	client.turn, client.running = p.turns, false
	p.forget(g.client)
}

// next takes the first guess of the client with the lowest turn. The caller holds mu.
func (p *passwords) next() *guess {
	var chosen *guesser
	for _, client := range p.clients {
		if len(client.guesses) == 0 {
			continue
		}
		if chosen == nil || client.turn < chosen.turn {
			chosen = client
		}
	}
	if chosen == nil {
		return nil
	}
	g := chosen.guesses[0]
	chosen.guesses = append(chosen.guesses[:0], chosen.guesses[1:]...)
	chosen.running = true
	p.dequeued(g)
	return g
}

// isRight compares a password with every hash of the user.
func (p *passwords) isRight(a *attempt) (right bool) {
	defer p.panics.Catch("compare a password") // then it is not right
	hashes, known := a.users[a.user]
	if !known {
		hashes = anybodys(a.users)
	}
	matches := false
	for _, hash := range hashes {
		matches = matches || p.compare(hash, []byte(a.password)) == nil
	}
	return matches && known
}

// anybodys returns the hashes of any user.
func anybodys(users map[string][][]byte) [][]byte {
	for _, hashes := range users {
		return hashes
	}
	return nil
}

// fingerprint returns the same value for the same user, password and bcrypt hashes. An
// unknown user has no hashes. The lengths keep the parts apart.
func (p *passwords) fingerprint(a *attempt) fingerprint {
	mac := hmac.New(sha256.New, p.key)
	parts := append([][]byte{[]byte(a.user), []byte(a.password)}, a.users[a.user]...)
	for _, part := range parts {
		length := len(part)
		_, _ = mac.Write([]byte{byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length)})
		_, _ = mac.Write(part)
	}
	return fingerprint(mac.Sum(nil))
}

// remember needs mu held.
func (p *passwords) remember(print fingerprint) {
	for old := range p.right {
		if len(p.right) < maxPasswords {
			break
		}
		delete(p.right, old)
	}
	p.right[print] = struct{}{}
}
