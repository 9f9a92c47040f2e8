package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// encoded writes the encoded body to the client.
type encoded struct{ to *exchange }

func (w encoded) Write(p []byte) (int, error) {
	if err := w.to.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// beginEncoding decides whether the response is compressed, and changes its header. The
// route's own changes come before it, so that they are part of the decision.
func (e *exchange) beginEncoding(response *upstream.Response) {
	header := e.w.Header()
	verdict := e.route.Compression.Decide(e.r, response.Status, header, response.ContentLength)
	if verdict.Coding != compress.Identity && e.r.Method != http.MethodHead {
		owner := compress.Owner{Client: e.client.shareOf, Route: e.route.Name}
		if e.facts.encoder = e.handler.encoders.Take(verdict.Coding, owner, encoded{e}); e.facts.encoder == nil {
			e.handler.metrics.compressionBusy.Inc()
			verdict = verdict.Without()
		}
	}
	verdict.Apply(header)
}

// endEncoding gives the encoder back. Before that, unless the body was cut, finishEncoding
// must have been called.
// An encoder that has panicked is not used again.
func (e *exchange) endEncoding(returned bool) {
	if e.facts.encoder == nil {
		return
	}
	e.handler.metrics.compressed(e.state, e.route, e.facts.unencoded, e.answer.sent)
	if returned {
		e.handler.encoders.Give(e.facts.encoder)
	} else {
		e.handler.encoders.Drop(e.facts.encoder)
	}
	e.facts.encoder = nil
}

// finishEncoding writes the end of the encoded body. A body that was cut has none.
func (e *exchange) finishEncoding() error {
	if e.facts.encoder == nil {
		return nil
	}
	return e.facts.encoder.Close()
}

// writePiece sends a piece of the backend's body.
func (e *exchange) writePiece(piece []byte) error {
	if e.facts.encoder == nil {
		return e.write(piece)
	}
	e.facts.unencoded += int64(len(piece))
	_, err := e.facts.encoder.Write(piece)
	return err
}

// flushPieces sends the pieces that have come.
func (e *exchange) flushPieces() error {
	if e.facts.encoder != nil {
		if err := e.facts.encoder.Flush(); err != nil {
			return err
		}
	}
	e.flush()
	return nil
}
