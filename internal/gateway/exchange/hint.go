package exchange

import (
	"net/http"
	"net/textproto"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// inform forwards an informational response. HTTP/1.0 has none.
func (e *Exchange) inform(status int, fields []upstream.Field) {
	if !e.r.ProtoAtLeast(1, 1) {
		return
	}
	e.Answer.heads.Lock()
	defer e.Answer.heads.Unlock()
	header := e.w.Header()
	before := header.Clone()
	defer func() { // also after a panic: none of this belongs to the final response
		clear(header)
		for name, values := range before {
			header[name] = values
		}
	}()
	SetFields(header, fields)
	for _, hint := range e.Steps.Hint {
		hint(e, header)
	}
	e.writeHint(status)
}

// writeHint sends the head of an informational response. The client must take it in time. The final response may come later, so
// there is no deadline afterwards.
func (e *Exchange) writeHint(status int) {
	e.beginTaking()
	defer e.endTaking()
	if e.r.ProtoMajor == 1 {
		defer e.setWriteDeadline(time.Time{})
	}
	e.w.WriteHeader(status)
}

// SetFields adds fields to a header. All values share one slice to save allocations.
func SetFields(header http.Header, fields []upstream.Field) {
	values := make([]string, len(fields))
	for i, field := range fields {
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		values[i] = field.Value
		if before := header[name]; before != nil {
			header[name] = append(before, field.Value)
			continue
		}
		header[name] = values[i : i+1 : i+1]
	}
}

// askForBody sends 100 Continue. net/http would send it at the first read of the body. But
// at the same moment the backend may send an informational response, which must also be
// forwarded.
func (e *Exchange) askForBody() {
	e.Answer.heads.Lock()
	defer e.Answer.heads.Unlock()
	if !e.Answer.begun {
		e.writeHint(http.StatusContinue)
	}
}
