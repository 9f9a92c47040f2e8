package upstream

import "sync"

// http2Kind is what a connection over HTTP/2 is for.
type http2Kind int

const (
	wide   http2Kind = iota // responses with a wide window
	narrow                  // responses with a narrow window
	ending                  // no further requests: it ends with those that it has
	kinds
)

// http2Places counts the connections to an endpoint over HTTP/2 in its Service's gate. A request needs one connection. That
// there are others is up to the gateway: those for windows of the other kind, and those that end. They must take no place from
// other endpoints. So a wide and a narrow connection have a place together, and those that end have one if nothing else has.
type http2Places struct {
	gate *gate

	mu   sync.Mutex
	open [kinds]int // connections
	held int        // places in the gate
}

// take counts a connection that is being opened. It returns false if it needs a place and there is none, unless it is forced.
func (p *http2Places) take(of http2Kind, forced bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[of]++
	switch {
	case p.needed() <= p.held:
		return true
	case forced:
		p.gate.force()
	case !p.gate.open():
		p.open[of]--
		return false
	}
	p.held++
	return true
}

// end notes that a connection gets no further requests.
func (p *http2Places) end(of http2Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[ending]++
	p.drop(of)
}

// closed ends the counting of a connection.
func (p *http2Places) closed(of http2Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(of)
}

// drop needs mu held.
func (p *http2Places) drop(of http2Kind) {
	p.open[of]--
	if p.needed() < p.held {
		p.held--
		p.gate.closed()
	}
}

// needed returns how many places the connections need. It needs mu held.
func (p *http2Places) needed() int {
	return max(p.open[wide], p.open[narrow], min(p.open[ending], 1))
}

// http2Place is what one connection has of the places.
type http2Place struct {
	of     *http2Places
	mu     sync.Mutex
	kind   http2Kind
	closed bool
}

// end notes that the connection gets no further requests.
func (p *http2Place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.kind == ending {
		return
	}
	p.of.end(p.kind)
	p.kind = ending
}

// release ends the counting of the connection.
func (p *http2Place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.of.closed(p.kind)
	}
}
