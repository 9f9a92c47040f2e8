package compress

import (
	"io"
	"net/netip"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

const (
	// gzipLevel is a good ratio for its time.
	gzipLevel = 4
	// zstdWindow is how far back zstd looks. A browser takes up to 8 MiB (RFC 9659). A small
	// one costs little memory.
	zstdWindow = 128 << 10
	// MaxInUse bounds the encoders in use at a time. With maxIdle, it bounds the memory of a
	// Pool: an encoder has less than 1 MiB.
	MaxInUse = 64
	// maxIdle bounds the encoders of a coding that wait for a response.
	maxIdle = 16
)

// writer is an encoder of any coding.
type writer interface {
	io.Writer
	Flush() error
	Close() error
	Reset(to io.Writer)
}

// Encoder encodes one body at a time. It writes nothing of its own accord: what it has not
// written when a body is cut is thrown away, so that the body cannot look whole.
type Encoder struct {
	writer

	coding Coding
	owner  Owner
}

// Owner is for whom a body is encoded. Each client and each route has a share of the encoders
// (clients.Shares): a response without an end keeps its encoder until the client leaves.
type Owner struct {
	// Client is the client, as clients.Of defines it. The zero Addr means no particular one.
	Client netip.Addr
	// Route is the name of the route.
	Route string
}

// Pool has encoders. Its memory is bounded.
type Pool struct {
	mu      sync.Mutex
	clients clients.Places
	routes  clients.Shares[string]
	idle    [codings]chan *Encoder
}

// NewPool returns a pool without encoders. They are made when they are needed.
func NewPool() *Pool {
	p := &Pool{}
	for i := range p.idle {
		p.idle[i] = make(chan *Encoder, maxIdle)
	}
	return p
}

// Take returns an encoder that writes to a writer. It is nil if too many are in use, or too
// many for the owner. The caller must give it back.
func (p *Pool) Take(coding Coding, owner Owner, to io.Writer) *Encoder {
	if !p.takePlace(owner) {
		return nil
	}
	var e *Encoder
	select {
	case e = <-p.idle[coding]:
	default:
		e = newEncoder(coding)
	}
	e.owner = owner
	e.Reset(to)
	return e
}

func (p *Pool) takePlace(owner Owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.clients.Room(owner.Client, MaxInUse) || !p.routes.Room(owner.Route, MaxInUse) {
		return false
	}
	p.clients.Take(owner.Client)
	p.routes.Take(owner.Route)
	return true
}

// Give takes an encoder back, in whatever state. It keeps nothing of the body.
func (p *Pool) Give(e *Encoder) {
	defer p.release(e.owner) // as it is now: once it waits, somebody else may take it
	e.Reset(io.Discard)
	select {
	case p.idle[e.coding] <- e:
	default: // there are enough
	}
}

// Drop gives the place of an encoder back, and not the encoder.
func (p *Pool) Drop(e *Encoder) { p.release(e.owner) }

func (p *Pool) release(owner Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients.Release(owner.Client)
	p.routes.Release(owner.Route)
}

// InUse is how many encoders are in use.
func (p *Pool) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients.Taken()
}

func newEncoder(coding Coding) *Encoder {
	if coding == Zstd {
		return &Encoder{writer: newZstd(), coding: Zstd}
	}
	w, err := gzip.NewWriterLevel(io.Discard, gzipLevel)
	if err != nil {
		panic(err) // only for an unknown level
	}
	return &Encoder{writer: w, coding: Gzip}
}

// newZstd returns an encoder that works in the goroutine of its caller. It writes a frame for
// an empty body too.
func newZstd() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err) // only for options that do not fit together
	}
	return w
}
