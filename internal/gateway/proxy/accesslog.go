package proxy

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// logFlushSize is how much is collected before it is written.
const logFlushSize = 32 << 10

// accessLog writes a JSON object per line. It holds no query, no cookie and no field in
// which a client proves who it is.
type accessLog struct {
	out io.Writer // nil: no log

	mu      sync.Mutex
	pending []byte
	writing sync.Mutex // held while pending goes out, so that lines stay in order
	spare   []byte
}

func newAccessLog(out io.Writer) *accessLog { return &accessLog{out: out} }

func (l *accessLog) write(e *exchange, duration time.Duration) {
	if l.out == nil || !sampled(e) {
		return
	}
	l.mu.Lock()
	l.pending = appendLine(l.pending, e, duration)
	full := len(l.pending) >= logFlushSize
	l.mu.Unlock()
	if full {
		_ = l.flush() // the log's trouble is not the request's
	}
}

func sampled(e *exchange) bool {
	if e.state == nil || e.state.LogPercent >= 100 {
		return true
	}
	if e.state.LogPercent == 0 {
		return false
	}
	return e.status >= http.StatusInternalServerError || rand.Uint32N(100) < e.state.LogPercent
}

func (l *accessLog) flush() error {
	if l.out == nil {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	lines := l.pending
	l.pending = l.spare[:0]
	l.mu.Unlock()
	l.spare = lines
	if len(lines) == 0 {
		return nil
	}
	_, err := l.out.Write(lines)
	return err
}

func appendLine(b []byte, e *exchange, duration time.Duration) []byte {
	b = append(b, `{"time":"`...)
	b = e.start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = appendText(b, "method", e.r.Method)
	b = appendText(b, "host", e.r.Host)
	b = appendText(b, "path", e.r.URL.EscapedPath())
	b = appendText(b, "protocol", e.r.Proto)
	if e.route != nil {
		b = appendText(b, "route", e.route.Name)
	}
	b = appendNumber(b, "status", int64(e.status))
	b = appendNumber(b, "bytes", e.sent)
	b = appendNumber(b, "duration_us", duration.Microseconds())
	b = appendText(b, "client", e.client)
	if e.identity != "" {
		b = appendText(b, "identity", e.identity)
	}
	if agent := e.r.Header.Get("User-Agent"); agent != "" {
		b = appendText(b, "user_agent", agent)
	}
	if e.endpoint != "" {
		b = appendText(b, "upstream", e.endpoint)
	}
	if e.failure != "" {
		b = appendText(b, "failure", e.failure)
	}
	return append(b, '}', '\n')
}

func appendNumber(b []byte, name string, value int64) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return strconv.AppendInt(b, value, 10)
}

func appendText(b []byte, name, value string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(value)
			if err != nil {
				return append(b, '"', '"')
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, value...)
	return append(b, '"')
}
