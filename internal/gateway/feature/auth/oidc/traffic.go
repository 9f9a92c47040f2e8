package oidc

import (
	"crypto/sha256"
	"sync"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// These bound the requests for tokens of one client that are under way. Anybody can cause those of log-ins, with an address that
// looks like the provider's answer. So they have a bound of their own, and leave room for the sessions of others.
const (
	maxRedeeming = 32
	maxRenewing  = 64
)

// Traffic is what goes on with providers. All clients of a gateway share one, also those of the next configuration.
type Traffic struct {
	// Renewed is called with the result of each request to renew a session. Optional.
	Renewed func(Kind)
	// Panics is told of a panic of such a request, which has failed then. Nil: it ends the process.
	Panics panics.Reporter

	mu     sync.Mutex
	shares map[shareKey]*share
}

// shareKey tells which clients are the same one, whatever their secrets.
type shareKey struct{ prefix, issuer, clientID string }

// share is what goes on for one client.
type share struct {
	counted func(Kind)
	panics  panics.Reporter
	// redeeming and renewing have a place for each request for tokens that may be under way.
	redeeming, renewing chan struct{}

	mu      sync.Mutex
	renewed map[[sha256.Size]byte]*renewal
	bytes   int // of the results in renewed
}

func newShare(counted func(Kind), panics panics.Reporter) *share {
	if counted == nil {
		counted = func(Kind) {}
	}
	return &share{
		counted: counted, panics: panics, renewed: map[[sha256.Size]byte]*renewal{},
		redeeming: make(chan struct{}, maxRedeeming), renewing: make(chan struct{}, maxRenewing),
	}
}

func (t *Traffic) share(key shareKey) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shares == nil {
		t.shares = map[shareKey]*share{}
	}
	if t.shares[key] == nil {
		t.shares[key] = newShare(t.Renewed, t.Panics)
	}
	return t.shares[key]
}

// Keep drops what goes on for other clients.
func (t *Traffic) Keep(clients []*Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := map[shareKey]*share{}
	for _, c := range clients {
		kept[c.key()] = c.share
	}
	for key, gone := range t.shares {
		if kept[key] != gone {
			gone.clear()
		}
	}
	t.shares = kept
}

// take takes a place, if there is one.
func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}
