package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// logFlushEvery bounds how long a line waits to be written together with others.
	logFlushEvery = 200 * time.Millisecond
	// logFlushSize is how much text is collected before it is written.
	logFlushSize = 32 << 10
	// maxLogPending bounds the text that waits to be written. As much again may be in
	// writing.
	maxLogPending = 1 << 20
	// lastLogLines bounds how long writing the last lines may take at the end.
	lastLogLines = 2 * time.Second
)

// accessLog writes one JSON object per line. It holds no query, no cookie and no field with
// credentials. A request never waits for the output: if the output blocks, lines are
// dropped.
type accessLog struct {
	out     io.Writer // nil: no access log
	dropped func(lines int)
	full    chan struct{} // has a value when enough text is pending

	mu      sync.Mutex
	pending []byte
	writing sync.Mutex // held while pending is written, so that lines stay in order
	spare   []byte
}

func newAccessLog(out io.Writer, dropped func(lines int)) *accessLog {
	return &accessLog{out: out, dropped: dropped, full: make(chan struct{}, 1)}
}

func (l *accessLog) write(e *exchange, duration time.Duration) {
	if l.out == nil || !sampled(e) {
		return
	}
	l.append(func(b []byte) []byte { return appendLine(b, e, duration) })
}

// append adds a line, or drops it when too much waits.
func (l *accessLog) append(line func([]byte) []byte) {
	size := l.take(line)
	if size > maxLogPending {
		l.dropped(1)
	}
	if size >= logFlushSize {
		select {
		case l.full <- struct{}{}:
		default: // a signal waits already
		}
	}
}

// take adds a line if it fits, and returns how much would be pending with it. A line that panics is not added. The room that was made
// for a line stays for the next one.
func (l *accessLog) take(line func([]byte) []byte) (size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.pending)
	next := line(l.pending)
	if size = len(next); size > maxLogPending {
		next = next[:before]
	}
	l.pending = next
	return size
}

// run writes lines until the context ends. Then it writes the rest, unless the output
// blocks.
func (l *accessLog) run(ctx context.Context, ticking clock.WithTicker) error {
	if l.out == nil {
		<-ctx.Done()
		return nil
	}
	ended := make(chan error, 1)
	go func() {
		l.collect(ctx, ticking)
		ended <- l.flush()
	}()
	<-ctx.Done()
	select {
	case err := <-ended:
		return err
	case <-ticking.After(lastLogLines):
		return nil // the output is blocked, and the program ends
	}
}

// collect writes lines when there is enough text, or when some have waited long enough.
func (l *accessLog) collect(ctx context.Context, ticking clock.WithTicker) {
	ticker := ticking.NewTicker(logFlushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-l.full:
		}
		_ = l.flush() // lost lines are counted, and nothing more can be done
	}
}

func sampled(e *exchange) bool {
	if e.state == nil || e.state.LogPercent >= 100 {
		return true
	}
	if e.state.LogPercent == 0 {
		return false
	}
	return e.answer.status >= http.StatusInternalServerError || rand.Uint32N(100) < e.state.LogPercent
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
	n, err := l.out.Write(lines)
	if err != nil {
		l.dropped(bytes.Count(lines[n:], []byte{'\n'}))
	}
	return err
}

func appendLine(b []byte, e *exchange, duration time.Duration) []byte {
	b = append(b, `{"time":"`...)
	b = e.start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = appendText(b, "method", e.r.Method)
	b = appendText(b, "host", e.r.Host)
	_, path, _ := splitTarget(e.r.RequestURI)
	b = appendText(b, "path", path)
	b = appendText(b, "protocol", e.r.Proto)
	if gateway := e.handler.options.Gateway; gateway != "" {
		b = appendText(b, "gateway", gateway)
	}
	if e.route != nil {
		b = appendText(b, "route", e.route.Name)
	}
	b = appendNumber(b, "status", int64(e.answer.status))
	b = appendNumber(b, "bytes", e.answer.sent)
	b = appendNumber(b, "duration_us", duration.Microseconds())
	b = appendText(b, "client", e.client.text)
	if e.facts.identity != "" {
		b = appendText(b, "identity", e.facts.identity)
	}
	if agent := e.r.Header.Get("User-Agent"); agent != "" {
		b = appendText(b, "user_agent", agent)
	}
	if e.answer.endpoint != "" {
		b = appendText(b, "upstream", e.answer.endpoint)
	}
	if e.facts.cacheResult != "" {
		b = appendText(b, "cache", e.facts.cacheResult)
	}
	if e.answer.failure != "" {
		b = appendText(b, "failure", e.answer.failure)
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
