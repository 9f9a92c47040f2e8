// Package serve sends copies of requests to other backends. The table says which.
package serve

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// maxCopies bounds the copies in flight. Above it, requests are not copied.
	maxCopies = 128
	// copyTimeout bounds a copy from its request to the end of its response.
	copyTimeout = 10 * time.Second
)

// Engine has the copied requests in flight. Nothing waits for their responses.
type Engine struct {
	slots chan struct{}
	wait  sync.WaitGroup
}

// New returns an engine without copies.
func New() *Engine { return &Engine{slots: make(chan struct{}, maxCopies)} }

// Copy is a backend that gets copies of requests.
type Copy struct {
	Service  *upstream.Service
	Protocol upstream.Protocol
	// Numerator of Denominator requests are copied.
	Numerator, Denominator uint32
}

// Step copies requests of a route to other backends.
type Step struct {
	// Engine sends the copies.
	Engine *Engine
	// Copies are those of the route. OfBackend are those of its backends, by their place.
	Copies    []Copy
	OfBackend [][]Copy
}

// Send sends copies of the request.
func (s Step) Send(e *exchange.Exchange) (response *upstream.Response, done bool) {
	for _, copies := range [...][]Copy{s.Copies, s.OfBackend[e.Chosen]} {
		for i := range copies {
			s.Engine.copy(e, &copies[i])
		}
	}
	return nil, false
}

// copy sends a copy of the request to another backend. A request with a large body is not
// copied, because its body would have to wait for two readers.
func (n *Engine) copy(e *exchange.Exchange, to *Copy) {
	if rand.Uint32N(to.Denominator) >= to.Numerator || e.Outgoing.Upgrade != "" {
		return
	}
	length := e.Outgoing.ContentLength
	if e.Outgoing.Body != nil && (length < 0 || length > upstream.MaxReplay || e.Outgoing.ExpectContinue) {
		return
	}
	select {
	case n.slots <- struct{}{}:
	default:
		return
	}
	sent := false
	defer func() {
		if !sent { // an error or a panic
			<-n.slots
		}
	}()
	copied := e.Outgoing
	copied.Informational, copied.ClientGone = nil, nil
	copied.Fields = slices.Clone(e.Outgoing.Fields)
	copied.Retry = upstream.Retry{}
	copied.Affinity = upstream.Affinity{} // it names an endpoint of the other backend
	copied.Protocol = to.Protocol
	if e.Outgoing.Body != nil {
		content := make([]byte, length)
		read, err := io.ReadFull(e.Outgoing.Body, content)
		e.Outgoing.Body = io.MultiReader(bytes.NewReader(content[:read]), failing{err})
		if err != nil {
			return
		}
		copied.Body = bytes.NewReader(content)
		copied.StopBody = func() {}
	}
	ctx, caught := context.WithoutCancel(e.Context()), e.Panics
	sent = true
	n.wait.Go(func() {
		defer caught.Catch("copy a request")
		defer func() { <-n.slots }()
		sendCopy(ctx, to.Service, &copied)
	})
}

// InFlight returns how many copies there are.
func (n *Engine) InFlight() int { return len(n.slots) }

// Wait waits until all copies have ended.
func (n *Engine) Wait() { n.wait.Wait() }

// failing returns an earlier error, or EOF.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func sendCopy(ctx context.Context, service *upstream.Service, request *upstream.Request) {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	response, err := service.Do(ctx, request)
	if err != nil {
		return
	}
	defer response.Close()
	_, _ = io.Copy(io.Discard, response)
}
