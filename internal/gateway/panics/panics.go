// Package panics keeps a panic in what serves one client from ending the gateway, which serves all the others.
//
// net/http does so for the goroutines of its connections. Every other goroutine that reads what comes from outside defers one of the
// methods of Reporter.
package panics

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrPanicked stands for a panic. The log says what it was: its text may have a part of a secret.
var ErrPanicked = errors.New("a defect of the gateway, see its log")

// Reporter is told of each panic that was caught: while doing what, why, and the stack. A nil Reporter catches nothing, so that a test
// fails with the panic.
//
// The methods catch a panic only when they are deferred themselves.
type Reporter func(doing string, cause any, stack []byte)

// Catch ends a panic.
func (r Reporter) Catch(doing string) {
	if r == nil {
		return
	}
	if cause := recover(); cause != nil {
		r(doing, cause, debug.Stack())
	}
}

// CatchClosing ends a panic, and closes what was being served.
func (r Reporter) CatchClosing(doing string, served io.Closer) {
	if r == nil {
		return
	}
	if cause := recover(); cause != nil {
		r(doing, cause, debug.Stack())
		_ = served.Close()
	}
}

// CatchError ends a panic, and makes ErrPanicked the result.
func (r Reporter) CatchError(doing string, result *error) {
	if r == nil {
		return
	}
	if cause := recover(); cause != nil {
		r(doing, cause, debug.Stack())
		*result = ErrPanicked
	}
}

// Abort makes a panic of an HTTP handler one with http.ErrAbortHandler, with which net/http ends the request and says nothing.
func (r Reporter) Abort(doing string) {
	if r == nil {
		return
	}
	cause := recover()
	if cause == nil {
		return
	}
	if err, is := cause.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
		r(doing, cause, debug.Stack())
	}
	panic(http.ErrAbortHandler)
}

// logPause is how long the same panic is not logged again. Who can cause one can cause many.
const logPause = 10 * time.Second

// Log counts panics and logs them. It is safe for concurrent use.
type Log struct {
	log   *slog.Logger
	clock clock.PassiveClock

	mu    sync.Mutex
	count uint64
	last  string
	at    time.Time
}

// NewLog returns a Log that has counted none.
func NewLog(log *slog.Logger, clock clock.PassiveClock) *Log { return &Log{log: log, clock: clock} }

// Report is a Reporter.
func (l *Log) Report(doing string, cause any, stack []byte) {
	text := fmt.Sprint(cause)
	now := l.clock.Now()
	l.mu.Lock()
	l.count++
	known := doing+text == l.last && now.Sub(l.at) < logPause
	if !known {
		l.last, l.at = doing+text, now
	}
	l.mu.Unlock()
	if !known {
		l.log.Error("a panic was caught, which is a defect of the gateway", "doing", doing, "panic", text, "stack", string(stack))
	}
}

// Count is how many panics were caught.
func (l *Log) Count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
