// Package panics keeps a panic in what serves one client from ending the gateway, which serves all the others.
//
// net/http does so for the goroutines of its connections, and tells only its error log. Goroutines of our own that work with what comes
// from outside defer one of the methods of Reporter, and so does our code on goroutines of libraries. What a library does on a
// goroutine of its own still ends the process: reading a connection of HTTP/2 to a backend, above all.
//
// Who catches a panic must give back what it holds, as after an error: deferred functions do that.
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
// What is done is one of a few constant texts.
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

// logPause is how long no further panic of the same work is logged. Who can cause one can cause many.
const logPause = 10 * time.Second

// Log counts panics and logs them. It is safe for concurrent use.
type Log struct {
	log   *slog.Logger
	clock clock.PassiveClock

	mu    sync.Mutex
	count uint64
	at    map[string]time.Time // when a panic of some work was logged last
}

// NewLog returns a Log that has counted none.
func NewLog(log *slog.Logger, clock clock.PassiveClock) *Log {
	return &Log{log: log, clock: clock, at: map[string]time.Time{}}
}

// Report is a Reporter.
func (l *Log) Report(doing string, cause any, stack []byte) {
	if l.note(doing) {
		l.log.Error("a panic was caught, which is a defect of the gateway", "doing", doing, "panic", fmt.Sprint(cause), "stack", string(stack))
	}
}

// note counts a panic, and reports whether it is to be logged.
func (l *Log) note(doing string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	now := l.clock.Now()
	if last, is := l.at[doing]; is && now.Sub(last) < logPause {
		return false
	}
	l.at[doing] = now
	return true
}

// Count is how many panics were caught.
func (l *Log) Count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
