package compress

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
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
}

// Pool has encoders. Its memory is bounded.
type Pool struct {
	places chan struct{}
	idle   [codings]chan *Encoder
}

// NewPool returns a pool without encoders. They are made when they are needed.
func NewPool() *Pool {
	p := &Pool{places: make(chan struct{}, MaxInUse)}
	for i := range p.idle {
		p.idle[i] = make(chan *Encoder, maxIdle)
	}
	return p
}

// Take returns an encoder that writes to a writer. It is nil if too many are in use. The
// caller must give it back.
func (p *Pool) Take(coding Coding, to io.Writer) *Encoder {
	select {
	case p.places <- struct{}{}:
	default:
		return nil
	}
	var e *Encoder
	select {
	case e = <-p.idle[coding]:
	default:
		e = newEncoder(coding)
	}
	e.Reset(to)
	return e
}

// Give takes an encoder back, in whatever state. It keeps nothing of the body.
func (p *Pool) Give(e *Encoder) {
	e.Reset(io.Discard)
	select {
	case p.idle[e.coding] <- e:
	default: // there are enough
	}
	<-p.places
}

// InUse is how many encoders are in use.
func (p *Pool) InUse() int { return len(p.places) }

func newEncoder(coding Coding) *Encoder {
	if coding == Zstd {
		return &Encoder{newZstd(), Zstd}
	}
	w, err := gzip.NewWriterLevel(io.Discard, gzipLevel)
	if err != nil {
		panic(err) // only for an unknown level
	}
	return &Encoder{w, Gzip}
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
