package redact

import (
	"slices"
	"strings"
)

// Marker stands in place of a secret whose name is not known.
const Marker = "(secret)"

// HashMarker begins what stands in place of a secret where its hash follows, so that a change of it is seen.
const HashMarker = "redacted:hmac:"

// lastMarker stands in place of what cannot be told in any other way. It is shorter than any value that is looked for.
const lastMarker = "***"

// isMarker reports whether a value stands in place of a secret, and has nothing else in it but signs after it.
func isMarker(value string) bool {
	length := markerLength(value)
	return length > 0 && strings.Trim(value[length:], "\"'`\\,;.:)]}>") == ""
}

// markerLength is how long what stands in place of a secret is, with which a text begins, and 0 if it does not.
func markerLength(text string) int {
	switch {
	case strings.HasPrefix(text, Marker):
		return len(Marker)
	case strings.HasPrefix(text, HashMarker):
		return len(HashMarker) + hexLength(text[len(HashMarker):])
	case strings.HasPrefix(text, lastMarker):
		return len(text) - len(strings.TrimLeft(text, "*"))
	}
	return 0
}

// Clean returns a text without what looks like a secret in it. What is cut off from a text first is not seen as what it was, so
// clean a text before it is shortened.
func Clean(text string) string { return unknown.Clean(text) }

// unknown knows no value.
var unknown = New()

// maxRounds is how often a text is cleaned until nothing is found in it. What stands in place of a secret, with what is before and
// after it, may look like another one.
const maxRounds = 4

// part is a part of a text, and what stands in its place.
type part struct {
	Span

	marker string
}

// Clean returns a text without the values that are known, and without what looks like a secret. It changes nothing else.
func (r *Redactor) Clean(text string) string {
	for range maxRounds {
		parts := r.parts(text)
		if len(parts) == 0 {
			return text
		}
		text = replace(text, parts)
	}
	if len(r.parts(text)) > 0 {
		return lastMarker
	}
	return text
}

// parts are the secrets of a text, in their order. None overlaps with another one.
func (r *Redactor) parts(text string) []part {
	found := r.values(text)
	for _, span := range defaultNames.findWith(text, false, r.known()) {
		if !r.isMarked(text[span.Start:span.End]) {
			found = append(found, part{span, r.marker})
		}
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b part) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	merged := found[:1]
	for _, next := range found[1:] {
		last := &merged[len(merged)-1]
		touches := next.Start == last.End && next.marker == last.marker
		if next.Start >= last.End && !touches {
			merged = append(merged, next)
			continue
		}
		if next.marker != last.marker && (last.marker == r.marker || next.marker != r.marker && next.End-next.Start > last.End-last.Start) {
			last.marker = next.marker
		}
		last.End = max(last.End, next.End)
	}
	return merged
}

// isMarked reports whether a part of a text is nothing but what stands in place of secrets.
func (r *Redactor) isMarked(text string) bool {
	text = strings.Trim(text, " \t\r\n\"'\\,;")
	return text == "" || isMarker(text) || r.markers[text]
}

func replace(text string, parts []part) string {
	var out strings.Builder
	at := 0
	for _, p := range parts {
		out.WriteString(text[at:p.Start])
		out.WriteString(p.marker)
		at = p.End
	}
	out.WriteString(text[at:])
	return out.String()
}
