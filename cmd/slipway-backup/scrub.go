package main

import (
	"log/slog"
	"slices"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/redact"
)

// scrubber replaces secrets in what is written. Nothing should hold one; this is for a server that repeats what it was sent, for a
// command that does, and for a source that has one in the name of a file. Only texts are changed that are for people. An ID, a
// digest or a number may hold a secret by chance, and would be another one without it.
type scrubber struct{ secrets *redact.Redactor }

func newScrubber(secrets []string) *scrubber {
	values := make([]redact.Value, 0, len(secrets))
	for _, secret := range secrets {
		values = append(values, redact.Value{Text: secret, Secret: true})
	}
	return &scrubber{secrets: redact.New(values...)}
}

// clean returns a text for people without secrets.
func (s *scrubber) clean(text string) string { return s.secrets.Clean(text) }

func (s *scrubber) all(texts []string) []string {
	cleaned := slices.Clone(texts)
	for i := range cleaned {
		cleaned[i] = s.clean(cleaned[i])
	}
	return cleaned
}

// result returns a result in which the texts for people are clean.
func (s *scrubber) result(r *result) *result {
	cleaned := *r
	cleaned.Message = s.clean(r.Message)
	if r.Snapshot != nil {
		of := *r.Snapshot
		of.Stats = s.stats(of.Stats)
		cleaned.Snapshot = &of
	}
	if r.Restore != nil {
		of := *r.Restore
		of.Snapshot.Stats, of.Examples = s.stats(of.Snapshot.Stats), s.all(of.Examples)
		cleaned.Restore = &of
	}
	return &cleaned
}

func (s *scrubber) stats(of engine.Stats) engine.Stats {
	of.SkippedExamples, of.UnreadableExamples = s.all(of.SkippedExamples), s.all(of.UnreadableExamples)
	return of
}

// attribute cleans one attribute of a line of the log, its words among them. What is neither a text nor an error nor the result
// has numbers and IDs only.
func (s *scrubber) attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(s.clean(a.Value.String()))
	case slog.KindAny:
		switch of := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(s.clean(of.Error()))
		case *result:
			a.Value = slog.AnyValue(s.result(of))
		}
	}
	return a
}
