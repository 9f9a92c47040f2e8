package cli

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
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// painter says what changed in words, with colours where they are wanted.
type painter struct {
	colours bool
}

// colour puts a text in a colour.
func (p painter) colour(code, text string) string {
	if !p.colours {
		return text
	}
	return code + text + plain
}

// title says in a line what happened to which object, and who did it.
func (p painter) title(r *change.Record) string {
	codes := map[change.Type]string{change.Created: green, change.Updated: yellow, change.Deleted: red}
	title := p.colour(codes[r.Type], string(r.Type)) + " " + p.colour(bold, objectRef(r.Kind.Kind, r.Name))
	if r.Namespace != "" {
		title += " in " + printable(r.Namespace)
	}
	if r.Actor.Name != "" {
		by := " by " + printable(r.Actor.Name)
		if r.Actor.Subresource != "" {
			by += " (" + printable(r.Actor.Subresource) + ")"
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

// fields prints fields, each on a line.
func (p painter) fields(lines io.Writer, fields []change.Field) {
	for i, field := range fields {
		if i == maxFields {
			fmt.Fprintf(lines, "  ... and %s\n", text.Count(int64(len(fields)-i), "more field"))
			break
		}
		fmt.Fprintln(lines, "  "+p.field(field))
	}
}

func (p painter) field(f change.Field) string {
	path := printable(f.Path)
	switch f.Op {
	case change.Added:
		return p.colour(green, "+ "+path+": "+changedValue(f.New))
	case change.Removed:
		return p.colour(red, "- "+path+": "+changedValue(f.Old))
	default:
		return p.colour(yellow, "~ "+path+": ") + p.colour(red, changedValue(f.Old)) + " -> " + p.colour(green, changedValue(f.New))
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
	return text.Cut(printable(string(value)), maxValue)
}
