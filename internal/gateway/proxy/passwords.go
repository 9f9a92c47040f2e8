package proxy

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
)

const (
	// maxPasswords bounds the passwords that are known to be right.
	maxPasswords = 4096
	// maxGuesses bounds the passwords that wait to be compared, and maxClientGuesses those of
	// one client address among them.
	maxGuesses       = 64
	maxClientGuesses = 8
	// maxUserGuesses bounds those for one user name, so that guessing at one does not keep
	// others out. Names are counted by their hash: that there is a user must not show.
	maxUserGuesses = 16
	userBuckets    = 64
	// maxTogether bounds the requests that wait for the same password of the same user.
	maxTogether = 256
	// maxPasswordWait bounds the wait of a request, also where its route has no timeout.
	maxPasswordWait = 5 * time.Second
)

// verdict is what became of a password.
type verdict int

const (
	passwordRight verdict = iota
	passwordWrong
	passwordClientBusy // the client's address has too many waiting
	passwordBusy       // there are too many waiting, or it took too long
	passwordTimeout    // the request's time is over
	passwordCanceled   // nobody waits any more
)

// verdicts are the names of the verdicts as a label.
var verdicts = [...]string{"right", "wrong", "client_busy", "busy", "timeout", "canceled"}

// attempt is a user name with a password, and who sent it.
type attempt struct {
	users          map[string][][]byte // bcrypt hashes by user
	user, password string
	client         netip.Addr // what counts as one client
	deadline       time.Time  // of the request; zero: none
}

// passwords checks passwords. A hash is slow to compare on purpose, so that one core
// compares, whoever guesses. It serves client addresses in turn, from a queue of which
// each has a small share. What was right is remembered under a keyed hash of password and
// bcrypt hash, which is worth nothing without both, and is found no more when the Secret
// has another bcrypt hash.
type passwords struct {
	clock   clock.PassiveClock
	key     []byte
	seed    maphash.Seed
	compare func(hash, password []byte) error

	mu      sync.Mutex
	right   map[fingerprint]struct{}
	running bool // somebody compares
	queued  int
	turns   int64 // clients that came, and guesses that ended
	clients map[netip.Addr]*guesser
	users   [userBuckets]int // guesses that wait, by user name
	flights map[fingerprint]*guess
}

// fingerprint is a keyed hash of a password, and of what it is compared with.
type fingerprint [sha256.Size]byte

// guesser is a client address with guesses that wait, or with one that is compared.
type guesser struct {
	guesses []*guess
	turn    int64 // when it came, or had its last guess compared; the lowest is next
	running bool
}

// guess is a password that waits to be compared or is compared, for one or more requests.
type guess struct {
	attempt

	print    fingerprint
	bucket   int
	together int           // the requests that wait
	shared   bool          // of several clients
	done     chan struct{} // closed when it has been compared
	right    bool          // written before that
	dropped  bool          // written before that: it made room for another client's
}

func newPasswords(clock clock.PassiveClock) *passwords {
	p := &passwords{
		clock: clock, key: make([]byte, sha256.Size), seed: maphash.MakeSeed(), compare: bcrypt.CompareHashAndPassword,
		right: map[fingerprint]struct{}{}, clients: map[netip.Addr]*guesser{}, flights: map[fingerprint]*guess{},
	}
	_, _ = rand.Read(p.key) // never fails
	return p
}

// check says whether a password is the user's. For a user that there is not it takes the
// time that it takes for another one, so that the answer does not tell them apart.
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

// await waits until a guess has been compared, or nobody can wait any longer.
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

// enqueue makes a password wait, together with the same one if that waits already. It
// returns nil, and why, where there is no room. It is called with mu held.
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

// makeRoom reports whether the client's guess at a user may wait. Where the queue is full, the
// newest guess of the client with most of them gives way to who has less: so a few clients do
// not fill the queue. It is called with mu held.
func (p *passwords) makeRoom(client netip.Addr, bucket int) bool {
	atUser := func(g *guess) bool { return g.bucket == bucket }
	anybody := func(*guess) bool { return true }
	if p.users[bucket] >= maxUserGuesses && !p.giveWay(client, atUser) {
		return false
	}
	return p.queued < maxGuesses || p.giveWay(client, anybody)
}

// giveWay drops a guess, of those that count, of the client that has most of them, and not one
// for which another client waits too. It reports false where that would leave this client less
// than the newcomer has then.
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

// leave takes a request from its guess. One that nobody waits for is not compared.
func (p *passwords) leave(g *guess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.together--
	if g.together > 0 {
		return
	}
	p.remove(g)
}

// remove takes a guess from those that wait, if it does. It is called with mu held.
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

// dequeued and forget are called with mu held.
func (p *passwords) dequeued(g *guess) {
	p.queued--
	p.users[g.bucket]--
}

func (p *passwords) forget(client netip.Addr) {
	if c := p.clients[client]; c != nil && len(c.guesses) == 0 && !c.running {
		delete(p.clients, client)
	}
}

// run compares what waits, one at a time, and ends when nothing does.
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

// ended lets go of a guess that has been compared. It is called with mu held.
func (p *passwords) ended(g *guess) {
	delete(p.flights, g.print)
	p.turns++
	client := p.clients[g.client]
	client.turn, client.running = p.turns, false
	p.forget(g.client)
}

// next takes the first guess of the client that has been waiting for its turn for longest.
// It is called with mu held.
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
func (p *passwords) isRight(a *attempt) bool {
	hashes, known := a.users[a.user]
	if !known {
		hashes = anybodys(a.users)
	}
	right := false
	for _, hash := range hashes {
		right = right || p.compare(hash, []byte(a.password)) == nil
	}
	return right && known
}

// anybodys returns the hashes of some user.
func anybodys(users map[string][][]byte) [][]byte {
	for _, hashes := range users {
		return hashes
	}
	return nil
}

// fingerprint is the same for the same password of the same user with the same bcrypt
// hashes, none for a user that there is not. Lengths keep its parts apart.
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

// remember is called with mu held.
func (p *passwords) remember(print fingerprint) {
	for old := range p.right {
		if len(p.right) < maxPasswords {
			break
		}
		delete(p.right, old)
	}
	p.right[print] = struct{}{}
}
