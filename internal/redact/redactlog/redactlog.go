// Package redactlog hides secrets in what a program logs.
package redactlog

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"

	"github.com/slipway-dev/slipway/internal/redact"
)

// Attribute is for slog.HandlerOptions.ReplaceAttr. It hides secrets in texts, errors and what writes itself as a text.
func Attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(redact.Clean(a.Value.String()))
	case slog.KindAny:
		if value, changed := clean(a.Value.Any()); changed {
			a.Value = slog.AnyValue(value)
		}
	}
	return a
}

// clean returns a value without secrets, if it is one that may have some.
func clean(value any) (any, bool) {
	switch of := value.(type) {
	case string:
		return redact.Clean(of), true
	case []byte:
		return redact.Clean(string(of)), true
	case []string:
		cleaned := make([]string, len(of))
		for i := range of {
			cleaned[i] = redact.Clean(of[i])
		}
		return cleaned, true
	case error:
		return Error(of), true
	case fmt.Stringer:
		text := of.String()
		if cleaned := redact.Clean(text); cleaned != text {
			return cleaned, true
		}
	}
	return value, false
}

// Error returns an error whose text has no secret: the same one if that has none anyway.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if cleaned := redact.Clean(text); cleaned != text {
		return errors.New(cleaned)
	}
	return err
}

// Logger returns a logger that hides secrets in messages, errors and values.
func Logger(to logr.Logger) logr.Logger {
	inner := to.GetSink()
	if inner == nil {
		return to
	}
	if deeper, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deeper.WithCallDepth(1)
	}
	return to.WithSink(sink{inner})
}

type sink struct{ logr.LogSink }

func (s sink) Info(level int, message string, pairs ...any) {
	s.LogSink.Info(level, redact.Clean(message), cleanPairs(pairs)...)
}

func (s sink) Error(err error, message string, pairs ...any) {
	s.LogSink.Error(Error(err), redact.Clean(message), cleanPairs(pairs)...)
}

func (s sink) WithValues(pairs ...any) logr.LogSink {
	return sink{s.LogSink.WithValues(cleanPairs(pairs)...)}
}

func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s sink) WithCallDepth(depth int) logr.LogSink {
	if deeper, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return sink{deeper.WithCallDepth(depth)}
	}
	return s
}

// cleanPairs returns keys and values, of which the values have no secret.
func cleanPairs(pairs []any) []any {
	cleaned := make([]any, len(pairs))
	for i, value := range pairs {
		cleaned[i] = value
		if i%2 == 1 {
			cleaned[i], _ = clean(value)
		}
	}
	return cleaned
}
