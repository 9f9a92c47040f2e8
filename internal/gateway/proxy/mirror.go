package proxy

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// maxMirrors bounds the copies in flight. Above it, requests are not copied.
	maxMirrors = 128
	// mirrorTimeout bounds a copy from its request to the end of its response.
	mirrorTimeout = 10 * time.Second
)

// mirrors are the copied requests in flight. Nothing waits for their responses.
type mirrors struct {
	slots chan struct{}
	wait  sync.WaitGroup
}

func newMirrors() *mirrors { return &mirrors{slots: make(chan struct{}, maxMirrors)} }

// mirror copies requests of a route to other backends: to its own, and to those of the backend that is chosen.
type mirror struct{ of []table.Mirror }

func isMirrored(r *table.Route) bool {
	return len(r.Mirrors) > 0 || slices.ContainsFunc(r.Backends, func(b table.WeightedBackend) bool { return len(b.Mirrors) > 0 })
}

func (m mirror) send(e *exchange) (response *upstream.Response, done bool) {
	for _, mirrors := range [...][]table.Mirror{m.of, e.chosen.Mirrors} {
		for i := range mirrors {
			e.mirror(&mirrors[i])
		}
	}
	return nil, false
}

// mirror sends a copy of the request to another backend. A request with a large body is not
// copied, because its body would have to wait for two readers.
func (e *exchange) mirror(mirror *table.Mirror) {
	if rand.Uint32N(mirror.Denominator) >= mirror.Numerator || e.request.Upgrade != "" {
		return
	}
	length := e.request.ContentLength
	if e.request.Body != nil && (length < 0 || length > upstream.MaxReplay || e.request.ExpectContinue) {
		return
	}
	mirrors := e.handler.mirrors
	select {
	case mirrors.slots <- struct{}{}:
	default:
		return
	}
	sent := false
	defer func() {
		if !sent { // an error or a panic
			<-mirrors.slots
		}
	}()
	copied := e.request
	copied.Informational, copied.ClientGone = nil, nil
	copied.Fields = slices.Clone(e.request.Fields)
	copied.Retry = upstream.Retry{}
	copied.Affinity = upstream.Affinity{} // it names an endpoint of the other backend
	copied.Protocol = protocolOf(mirror.Backend)
	if e.request.Body != nil {
		content := make([]byte, length)
		n, err := io.ReadFull(e.request.Body, content)
		e.request.Body = io.MultiReader(bytes.NewReader(content[:n]), failing{err})
		if err != nil {
			return
		}
		copied.Body = bytes.NewReader(content)
		copied.StopBody = func() {}
	}
	service := e.state.services[mirror.Backend.Index]
	ctx, caught := context.WithoutCancel(e.r.Context()), e.handler.options.Panics
	sent = true
	mirrors.wait.Go(func() {
		defer caught.Catch("copy a request")
		defer func() { <-mirrors.slots }()
		sendMirror(ctx, service, &copied)
	})
}

// failing returns an earlier error, or EOF.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func sendMirror(ctx context.Context, service *upstream.Service, request *upstream.Request) {
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	defer cancel()
	response, err := service.Do(ctx, request)
	if err != nil {
		return
	}
	defer response.Close()
	_, _ = io.Copy(io.Discard, response)
}
