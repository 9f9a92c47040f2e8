package redact

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/redact/gitleaks"
)

// maxLook is how far a text is read around a place to decide whether a secret is there, so that judging takes time in proportion to
// the length of a text. How long a secret is that was found is not bounded.
const maxLook = 256

// Span is a part of a text.
type Span struct{ Start, End int }

// Holds reports whether a text has a secret in it.
func (n *Names) Holds(text string) bool { return len(n.find(text, true)) > 0 }

// Find returns where the secrets of a text are. They may overlap, and are in no order.
func (n *Names) Find(text string) []Span { return n.find(text, false) }

func (n *Names) find(text string, first bool) []Span { return n.findWith(text, first, nil) }

// findWith finds what known tells of a text that was in base64, too.
func (n *Names) findWith(text string, first bool, known func(string) bool) []Span {
	budget := decodeFactor*len(text) + decodeLeast
	f := finder{text: text, names: n, first: first, known: known, budget: &budget}
	f.all()
	return f.spans
}

// finder goes over a text once, and looks at each place that a secret may begin at.
type finder struct {
	text  string
	names *Names
	// first ends the search at the first secret.
	first bool
	spans []Span
	// known reports whether a text that was decoded has a known value. Nil: none is known.
	known func(string) bool
	// until is the end of the last secret that was found. What is before it is not looked at again.
	until int
	// run is the end of the last run of characters of base64 that was looked at.
	run int
	// command is the program of a command line that the place is in, and since where.
	command      *program
	commandSince int
	// line is the last end of a line, and closing the last end of an element of XML that was looked for.
	line, closing place
	// depth is how many times the text was decoded, and budget how many bytes may still be.
	depth  int
	budget *int
}

func (f *finder) add(start, end int) {
	if start >= end || end-start < maxLook && isMarker(f.text[start:end]) {
		return
	}
	f.spans = append(f.spans, Span{start, end})
	f.until = max(f.until, end)
}

func (f *finder) done() bool { return f.first && len(f.spans) > 0 }

func (f *finder) all() {
	f.scan()
	if f.done() || f.depth > 0 && len(f.spans) > 0 {
		return
	}
	complete := gitleaks.Find(f.text, func(start, end int) bool {
		f.add(start, end)
		return !f.done()
	})
	if !complete {
		// It is made to have more of what might be a secret than anybody can look at.
		f.add(0, len(f.text))
	}
}

func (f *finder) scan() {
	inWord := false
	for i := 0; i < len(f.text); i++ {
		if f.until > i {
			i, inWord = f.until-1, false
			if f.done() {
				return
			}
			continue
		}
		if c := f.text[i]; isLetter(c) || isDigit(c) {
			if !inWord {
				f.word(i)
			}
			inWord = true
			continue
		}
		inWord = false
		f.sign(i)
	}
}

// sign looks at a place with a character that is in no word.
func (f *finder) sign(i int) {
	switch f.text[i] {
	case '\n', ';', '|':
		if i == 0 || f.text[i-1] != '\\' {
			f.command = nil
		}
	case ':':
		if strings.HasPrefix(f.text[i:], "://") {
			f.address(i + 3)
			return
		}
		f.assignment(i)
		if f.until <= i {
			f.pgpass(i)
		}
	case '=':
		f.assignment(i)
	case '-':
		f.privateKey(i)
		f.flag(i)
	case '@':
		f.login(i)
	case '<':
		f.element(i)
	case '$', '{':
		f.passwordHash(i)
	case '&':
		if strings.HasPrefix(f.text[i:], "&lt;") {
			f.escapedElement(i, "&lt;", "&gt;")
		}
	case '\\':
		if strings.HasPrefix(f.text[i:], `\u003c`) {
			f.escapedElement(i, `\u003c`, `\u003e`)
		}
	}
}

// word looks at a place where a word begins.
func (f *finder) word(i int) {
	if f.token(i) {
		return
	}
	if i >= f.run {
		start := i
		for start > f.until && start > f.run && isRunSign(f.text[start-1]) {
			start--
		}
		f.run = runEnd(f.text, i)
		f.random(start, f.run)
	}
	f.programName(i)
	f.statement(i)
}

// lineEnd is where the line ends that a place is in.
func (f *finder) lineEnd(at int) int { return f.line.next(f.text, "\n", at) }

// place is where something is that was looked for from some place on. It is remembered: who looks for what is far away, again and
// again, takes time that grows with the square of the length.
type place struct {
	known    bool
	from, at int
}

// next is where something is next, and the end of the text if it is nowhere.
func (p *place) next(text, what string, from int) int {
	if p.known && from >= p.from && from <= p.at {
		return p.at
	}
	*p = place{known: true, from: from, at: len(text)}
	if found := strings.Index(text[from:], what); found >= 0 {
		p.at = from + found
	}
	return p.at
}
