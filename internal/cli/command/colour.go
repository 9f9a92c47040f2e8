package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/text"
)

// These bound what one change prints.
const (
	maxFields = 40
	maxValue  = 160
)

// The colours of a terminal.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Faint  = "\x1b[2m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// Painter says what changed in words, with colours where they are wanted.
type Painter struct {
	Colours bool
}

// Colour puts a text in a colour.
func (p Painter) Colour(code, text string) string {
	if !p.Colours {
		return text
	}
	return code + text + plain
}

// Title says in a line what happened to which object, and who did it.
func (p Painter) Title(r *change.Record) string {
	codes := map[change.Type]string{change.Created: Green, change.Updated: Yellow, change.Deleted: Red}
	title := p.Colour(codes[r.Type], string(r.Type)) + " " + p.Colour(bold, ObjectRef(r.Kind.Kind, r.Name))
	if r.Namespace != "" {
		title += " in " + Printable(r.Namespace)
	}
	if r.Actor.Name != "" {
		by := " by " + Printable(r.Actor.Name)
		if r.Actor.Subresource != "" {
			by += " (" + Printable(r.Actor.Subresource) + ")"
		}
		title += by
	}
	switch {
	case r.SchemaDriven:
		title += ", as its definition changed"
	case r.InGap:
		title += ", while the watch was interrupted"
	}
	return title
}

// Fields prints fields, each on a line.
func (p Painter) Fields(lines io.Writer, fields []change.Field) {
	for i, field := range fields {
		if i == maxFields {
			fmt.Fprintf(lines, "  ... and %s\n", text.Count(int64(len(fields)-i), "more field"))
			break
		}
		fmt.Fprintln(lines, "  "+p.field(field))
	}
}

func (p Painter) field(f change.Field) string {
	path := Printable(f.Path)
	switch f.Op {
	case change.Added:
		return p.Colour(Green, "+ "+path+": "+changedValue(f.New))
	case change.Removed:
		return p.Colour(Red, "- "+path+": "+changedValue(f.Old))
	default:
		return p.Colour(Yellow, "~ "+path+": ") + p.Colour(Red, changedValue(f.Old)) + " -> " + p.Colour(Green, changedValue(f.New))
	}
}

// changedValue shortens a value. A secret is not shown, not even the hash in its place.
func changedValue(value json.RawMessage) string {
	if value == nil {
		return "(left out)"
	}
	var word string
	if json.Unmarshal(value, &word) == nil && change.IsRedacted(word) {
		return "(hidden)"
	}
	return text.Cut(Printable(string(value)), maxValue)
}
