package telemetry

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

// Line is what is logged of a request that has ended.
type Line struct {
	Start    time.Time
	Duration time.Duration
	Method   string
	Host     string
	Path     string // without the query, which may hold keys
	Protocol string
	Route    string // empty: there was none
	Status   int
	Sent     int64  // bytes of the response's body
	Client   string // the address
	Identity string // that the client has proven; empty: none
	Agent    string // the field User-Agent
	Endpoint string // that has answered; empty: none
	Cache    string // what the cache says; empty: the route has none
	Failure  string // empty: there was none
}

// Log is the access log. It writes one JSON object per line. It holds no query, no cookie and no field with
// credentials. A request never waits for the output: if the output blocks, lines are
// dropped.
type Log struct {
	out     io.Writer // nil: no access log
	gateway string    // namespace and name of the Gateway; empty: the lines have none
	dropped func(lines int)
	full    chan struct{} // has a value when enough text is pending

	mu      sync.Mutex
	pending []byte
	writing sync.Mutex // held while pending is written, so that lines stay in order
	spare   []byte
}

// NewLog returns a log that must be run. out nil: nothing is logged. gateway is in each line, unless it is empty. dropped is told of
// lines that are lost.
func NewLog(out io.Writer, gateway string, dropped func(lines int)) *Log {
	return &Log{out: out, gateway: gateway, dropped: dropped, full: make(chan struct{}, 1)}
}

// Write writes a line. percent is how many of them are written. Errors of the server always are, except at 0.
func (l *Log) Write(of *Line, percent uint32) {
	if l.out == nil || !isSampled(percent, of.Status >= http.StatusInternalServerError) {
		return
	}
	l.append(func(b []byte) []byte { return l.appendLine(b, of) })
}

// append adds a line, or drops it when too much waits.
func (l *Log) append(line func([]byte) []byte) {
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
func (l *Log) take(line func([]byte) []byte) (size int) {
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

// Run writes lines until the context ends. Then it writes the rest, unless the output
// blocks.
func (l *Log) Run(ctx context.Context, ticking clock.WithTicker) error {
	if l.out == nil {
		<-ctx.Done()
		return nil
	}
	ended := make(chan error, 1)
	go func() {
		l.collect(ctx, ticking)
		ended <- l.Flush()
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
func (l *Log) collect(ctx context.Context, ticking clock.WithTicker) {
	ticker := ticking.NewTicker(logFlushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-l.full:
		}
		_ = l.Flush() // lost lines are counted, and nothing more can be done
	}
}

// isSampled reports whether one of many is logged. What always is logged is so except at 0.
func isSampled(percent uint32, always bool) bool {
	return percent >= 100 || percent > 0 && (always || rand.Uint32N(100) < percent)
}

// Flush writes what waits.
func (l *Log) Flush() error {
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

func (l *Log) appendLine(b []byte, of *Line) []byte {
	b = append(b, `{"time":"`...)
	b = of.Start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = appendText(b, "method", of.Method)
	b = appendText(b, "host", of.Host)
	b = appendText(b, "path", of.Path)
	b = appendText(b, "protocol", of.Protocol)
	b = appendGiven(b, "gateway", l.gateway)
	b = appendGiven(b, "route", of.Route)
	b = appendNumber(b, "status", int64(of.Status))
	b = appendNumber(b, "bytes", of.Sent)
	b = appendNumber(b, "duration_us", of.Duration.Microseconds())
	b = appendText(b, "client", of.Client)
	b = appendGiven(b, "identity", of.Identity)
	b = appendGiven(b, "user_agent", of.Agent)
	b = appendGiven(b, "upstream", of.Endpoint)
	b = appendGiven(b, "cache", of.Cache)
	b = appendGiven(b, "failure", of.Failure)
	return append(b, '}', '\n')
}

func appendNumber(b []byte, name string, value int64) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return strconv.AppendInt(b, value, 10)
}

// appendGiven adds a text, unless it is empty.
func appendGiven(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(b, name, value)
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
