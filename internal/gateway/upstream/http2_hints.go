package upstream

import (
	"net/http"
	"net/textproto"
	"strconv"
	"sync"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// waitingHints bounds the informational responses that wait for a client. Each may be as large as a head, and clients can do
// without them.
const waitingHints = 4

// hints forwards the informational responses of an exchange over HTTP/2. They arrive on the goroutine that reads the connection.
// It must not wait for a client, because all other requests on the connection would wait too.
type hints struct {
	forward func(status int, fields []Field) // nil: nobody wants them
	panics  panics.Reporter

	mu         sync.Mutex
	came       int
	fault      error // what must not be forwarded
	ended      bool
	queue      chan hint // nil before the first
	forwarding sync.WaitGroup
}

type hint struct {
	status int
	fields []Field
}

// take is called for each informational response. An error ends the exchange.
func (h *hints) take(status int, header textproto.MIMEHeader) (fault error) {
	defer h.panics.CatchError("take an informational response", &fault)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came++
	var head head
	malformedHead := head.take(strconv.Itoa(status), http.Header(header))
	head.framing(http.MethodGet) // which has no length
	switch {
	case status == http.StatusSwitchingProtocols:
		h.fault = malformed("101, which HTTP/2 does not have")
	case h.came > maxInformational:
		h.fault = malformed("more than %d informational responses", maxInformational)
	case malformedHead != nil:
		h.fault = malformedHead
	case status != http.StatusContinue && h.forward != nil && !h.ended:
		h.pass(hint{status, head.fields})
	}
	return h.fault
}

// pass needs mu held. Most exchanges have no hints, so they have no goroutine for them.
func (h *hints) pass(one hint) {
	if h.queue == nil {
		h.queue = make(chan hint, waitingHints)
		h.forwarding.Go(func() {
			defer h.panics.Catch("forward informational responses")
			for next := range h.queue {
				h.forward(next.status, next.fields)
			}
		})
	}
	select {
	case h.queue <- one:
	default:
	}
}

// end waits until those that wait were forwarded, so that the final response comes after them. It returns what must not be
// forwarded.
func (h *hints) end() error {
	h.mu.Lock()
	if h.queue != nil && !h.ended {
		close(h.queue)
	}
	h.ended = true
	fault := h.fault
	h.mu.Unlock()
	h.forwarding.Wait()
	return fault
}
