package watch

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/text"
)

// watchView is a change as YAML or JSON.
type watchView struct {
	change.Record
	// Was and Is are the health before and after, where it changed.
	Was *healthView `json:"was,omitempty"`
	Is  *healthView `json:"is,omitempty"`
}

// healthView is a verdict as YAML or JSON.
type healthView struct {
	State   health.State `json:"state"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Field   string       `json:"field,omitempty"`
	Value   string       `json:"value,omitempty"`
}

func healthOf(v health.Verdict) *healthView {
	return &healthView{State: v.State, Reason: v.Reason, Message: v.Message, Field: v.Field, Value: v.Value}
}

// watchPrinter prints what watch sees.
type watchPrinter struct {
	command.Painter
	out, errOut io.Writer
	output      command.Format
	// waiting are kinds that have not been listed yet, of those that are watched from the start on.
	waiting map[string]bool
	begun   bool
	kinds   int
	objects int
}

func (p *watchPrinter) show(s sighting) error {
	switch {
	case s.record != nil:
		return p.change(s)
	case s.begun != nil || s.resource == "":
		for _, resource := range s.begun {
			p.waiting[resource] = true
		}
		return p.begin()
	case s.problem != "":
		if _, err := fmt.Fprintf(p.errOut, "not watched: %s: %s\n", s.resource, command.Printable(s.problem)); err != nil {
			return err
		}
	case s.synced && p.waiting[s.resource]:
		p.kinds++
		p.objects += s.count
	}
	if !p.waiting[s.resource] {
		return nil
	}
	delete(p.waiting, s.resource)
	return p.begin()
}

// begin says that from now on every change is seen, when all kinds have been listed.
func (p *watchPrinter) begin() error {
	if p.begun || len(p.waiting) > 0 {
		return nil
	}
	p.begun = true
	if p.output != command.FormatTable {
		return nil
	}
	_, err := fmt.Fprintf(p.out, "%s\n", p.Colour(command.Faint,
		fmt.Sprintf("Watching %s with %s. Ctrl-C ends it.", text.Count(int64(p.kinds), "kind"), text.Count(int64(p.objects), "object"))))
	return err
}

// change prints one change.
func (p *watchPrinter) change(s sighting) error {
	changed := s.was.State != s.is.State || s.was.Reason != s.is.Reason
	if p.output != command.FormatTable {
		view := watchView{Record: *s.record}
		if changed && s.is.State != "" {
			view.Is = healthOf(s.is)
		}
		if changed && s.was.State != "" {
			view.Was = healthOf(s.was)
		}
		return p.output.PrintNext(p.out, view)
	}
	lines := &strings.Builder{}
	fmt.Fprintf(lines, "%s %s\n", p.Colour(command.Faint, s.record.Time.Format("15:04:05")), p.Title(s.record))
	p.Fields(lines, s.record.Fields)
	if s.record.Reason != "" {
		fmt.Fprintf(lines, "  note: %s\n", command.Printable(s.record.Reason))
	}
	if changed && s.is.State != "" {
		fmt.Fprintf(lines, "  health: %s\n", p.health(s.was, s.is))
	}
	_, err := io.WriteString(p.out, lines.String())
	return err
}

func (p *watchPrinter) health(was, is health.Verdict) string {
	codes := map[health.State]string{
		health.Healthy: command.Green, health.Progressing: command.Yellow, health.Failed: command.Red, health.Terminating: command.Red,
	}
	words := p.Colour(codes[is.State], string(is.State))
	if was.State != "" {
		words = p.Colour(codes[was.State], string(was.State)) + " -> " + words
	}
	if is.State == health.Healthy {
		return words
	}
	return words + ": " + command.Because(is.Reason, is.Message)
}
