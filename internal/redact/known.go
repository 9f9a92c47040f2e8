package redact

import (
	"cmp"
	"strings"

	"github.com/slipway-dev/slipway/internal/redact/match"
)

// Value is a secret that is known, or may be one.
type Value struct {
	// Name is that of a variable or the like. It says how much of the value may be a secret.
	Name string
	// Text is the value. Its lines, and the passwords and queries of URLs in it, are hidden by themselves too.
	Text string
	// Marker stands in its place. Default: Marker.
	Marker string
	// Secret reports whether it is known to be a secret. Then it is hidden although it is short.
	Secret bool
}

const (
	// least is how long a part of a value is at least that is looked for: a shorter one would be found everywhere.
	least = 6
	// leastSecret is the same for one that is known to be a secret.
	leastSecret = 4
	// piece is how much of a long value is looked for at a time, so that what is left of it after a cut is hidden, too.
	piece = 256
)

// Redactor hides values that are known, and what looks like a secret. It is safe for concurrent use.
type Redactor struct {
	// forms are all forms of all parts, of has the marker of each, and base64 tells which of them are in base64.
	forms  *match.Set
	of     []string
	base64 []bool
	// longest is how long the longest form is.
	longest int
	// reversed are the forms from their ends, for a text that begins within one.
	reversed *match.Set
	ofEnd    []string
	// marker is Marker, unless that holds a value.
	marker string
	// markers are all that stand in place of values.
	markers map[string]bool
}

// New returns a redactor that knows some values. Those that are too short to be looked for are left out.
func New(values ...Value) *Redactor {
	r := &Redactor{marker: Marker, markers: map[string]bool{}}
	markerOf := map[string]string{}
	inBase64 := map[string]bool{}
	for _, v := range values {
		for _, form := range formsOf(v) {
			if _, found := markerOf[form.text]; !found {
				markerOf[form.text], inBase64[form.text] = cmp.Or(v.Marker, Marker), true
			}
			inBase64[form.text] = inBase64[form.text] && form.base64
		}
	}
	words := make([]string, 0, len(markerOf))
	for form := range markerOf {
		words = append(words, form)
	}
	r.forms = match.New(words)
	if r.holds(r.marker) {
		r.marker = lastMarker
	}
	markerOfEnd := map[string]string{}
	for i, form := range r.forms.Words() {
		marker := markerOf[form]
		if marker == Marker || r.holds(marker) {
			marker = r.marker
		}
		r.of = append(r.of, marker)
		r.base64 = append(r.base64, inBase64[form])
		r.longest = max(r.longest, len(form))
		r.markers[marker] = true
		words[i] = reverse(form)
		markerOfEnd[words[i]] = marker
	}
	r.reversed = match.New(words)
	for _, form := range r.reversed.Words() {
		r.ofEnd = append(r.ofEnd, markerOfEnd[form])
	}
	return r
}

// holds reports whether a text has a known value in it.
func (r *Redactor) holds(text string) bool {
	for at := range len(text) {
		found := false
		if r.forms.Begins(text, at) {
			r.forms.At(text, at, func(int) { found = true })
		}
		if found {
			return true
		}
	}
	return false
}

// values finds known values in a text. At its two ends parts of them are found, too: it may have been cut there. A text that is
// nothing but such a part is more likely a word of its own.
func (r *Redactor) values(text string) []part {
	if len(r.of) == 0 {
		return nil
	}
	found := append(r.whole(text), r.escapedValues(text)...)
	if strings.Contains(text, "+") && strings.Contains(text, "%") { // of a form, where a space is a plus sign
		found = append(found, r.escapedValues(strings.ReplaceAll(text, "+", " "))...)
	}
	for at := max(1, len(text)-r.longest); at <= len(text)-least; at++ {
		if r.forms.Begins(text, at) && r.forms.At(text, at, func(int) {}) {
			found = append(found, part{Span{at, len(text)}, r.marker})
			break
		}
	}
	if end := r.beginning(text); end > 0 {
		found = append(found, part{Span{0, end}, r.marker})
	}
	return found
}

// known reports whether a text has a value that is known, in whatever way that is written. Nil: there are none.
func (r *Redactor) known() func(string) bool {
	if len(r.of) == 0 {
		return nil
	}
	return func(text string) bool { return len(r.whole(text)) > 0 || len(r.escapedValues(text)) > 0 }
}

// whole finds whole values in a text. Of what is in base64 the whole run goes: its characters next to a value have some of its bits.
func (r *Redactor) whole(text string) []part {
	var found []part
	run := 0 // the end of the last run of base64 that has a value
	for at := 0; at < len(text); at++ {
		if !r.forms.Begins(text, at) {
			continue
		}
		longest := -1
		r.forms.At(text, at, func(word int) { longest = word })
		if longest < 0 {
			continue
		}
		span := Span{at, at + len(r.forms.Words()[longest])}
		if r.base64[longest] && at >= run {
			span = runAround(text, span, run)
			run = span.End
		}
		found = append(found, part{span, r.of[longest]})
	}
	return found
}

// runAround is the run of characters of base64 that a part of a text is in, from a place on.
func runAround(text string, span Span, from int) Span {
	for span.Start > from && isRunByte(text[span.Start-1]) {
		span.Start--
	}
	span.End = runEnd(text, span.End)
	return span
}

// beginning is how much of the beginning of a text is the end of a known value, 0 if nothing is.
func (r *Redactor) beginning(text string) int {
	head := reverse(text[:min(len(text), piece)])
	for at := range max(0, len(head)-least+1) {
		if r.reversed.Begins(head, at) && r.reversed.At(head, at, func(int) {}) && len(head)-at < len(text) {
			return len(head) - at
		}
	}
	return 0
}

func reverse(text string) string {
	reversed := []byte(text)
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	return string(reversed)
}
