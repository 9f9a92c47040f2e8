package table

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const (
	// maxInstructions bounds what a regular expression costs in time for each request. A long alternative of words has some hundred
	// instructions.
	maxInstructions = 2_000
	// maxMemory bounds its memory, in instructions of at most 100 bytes.
	maxMemory = 20_000
	// maxRoom bounds the memory of all expressions of an owner together. One for each of 1,000 routes fits.
	maxRoom = 200_000
	// maxEffort bounds what it costs to read an expression, which is not known from what comes of it. maxEfforts bounds all
	// expressions of an owner together: some tenths of a second. Plain ones are never refused for it.
	maxEffort  = 50_000
	maxEfforts = 1_500_000
)

// expression compiles an expression that must match the whole value.
func (t *texts) expression(owner, field, text string) (*expression, *model.Fault) {
	noRoom := func() *model.Fault {
		return &model.Fault{Reason: model.ReasonInvalidRegex, Message: fmt.Sprintf(
			"%s: there is no room for the regular expression %q, because those before it are too large together", field, text)}
	}
	use := usedExpression{owner, text}
	known := t.expressions[text]
	if known == nil {
		if !t.takeEffort(use) {
			return nil, noRoom()
		}
		known = parseExpression(text)
		t.expressions[text] = known
	}
	if known.wrong == "" && !t.takeRoom(use, known.memory) {
		return nil, noRoom()
	}
	if !t.checks {
		known.compile()
	}
	if known.wrong != "" {
		return nil, &model.Fault{Reason: model.ReasonInvalidRegex, Message: fmt.Sprintf(
			"%s: the regular expression %q does not compile: %s", field, text, known.wrong)}
	}
	return known, nil
}

// takeRoom takes room for an expression, once for each owner. It returns false if there is none.
func (t *texts) takeRoom(use usedExpression, memory int) bool {
	if t.used[use] {
		return true
	}
	if t.room[use.owner]+memory > maxRoom {
		return false
	}
	t.used[use] = true
	t.room[use.owner] += memory
	return true
}

// takeEffort takes the effort of reading an expression that nobody has read yet. It returns false if the owner has none left.
func (t *texts) takeEffort(use usedExpression) bool {
	effort := min(effortOf(use.text), maxEffort)
	if t.effort[use.owner]+effort > maxEfforts {
		return false
	}
	t.effort[use.owner] += effort
	return true
}

// effortOf estimates what it costs to read an expression, in characters of a plain one: about 0.2 microseconds. A class of
// Unicode has hundreds of ranges. Where case is ignored, every character of a range that is written is looked at. Where the
// expression is written anew, it is every character of a set, so what is not in [^/] counts too.
func effortOf(text string) int {
	flags := flagsOf(text)
	classes := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	if !flags.ignoresCase && !flags.lines {
		return len(text) + 500*classes
	}
	if flags.lines {
		for _, class := range []string{`[^`, `[:^`, `\W`, `\S`, `\D`} {
			classes += strings.Count(text, class)
		}
	}
	for i := range len(text) - 1 {
		if text[i] == '-' && (text[i+1] == '\\' || text[i+1] >= utf8.RuneSelf) {
			classes++
		}
	}
	return len(text) + 5_000*classes
}

// flags are what an expression says of itself, or seems to.
type flags struct {
	// ignoresCase tells that the flag i is set somewhere.
	ignoresCase bool
	// lines tells that a line end may not be an ordinary character, or that it does not go into a group as it is.
	lines bool
}

func flagsOf(text string) flags {
	found := flags{lines: strings.Contains(text, `\Q`)}
	for rest := text; ; {
		_, after, more := strings.Cut(rest, "(?")
		if !more {
			return found
		}
		set, cleared, _ := strings.Cut(after[:len(after)-len(strings.TrimLeft(after, "imsU-"))], "-")
		found.ignoresCase = found.ignoresCase || strings.Contains(set, "i")
		found.lines = found.lines || strings.Contains(set, "m") || strings.Contains(cleared, "s")
		rest = after
	}
}

// parseExpression finds out whether an expression can be compiled. Its size is known before: what is too large must not be compiled
// to find that out, and what would take long must not be read.
func parseExpression(text string) *expression {
	if effortOf(text) > maxEffort {
		return &expression{wrong: "it is too large"}
	}
	parsed, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return &expression{wrong: err.Error()}
	}
	e := &expression{alone: "(?s:" + text + ")"}
	if flagsOf(text).lines {
		ignoreLines(parsed)
		e.alone = parsed.String()
	}
	if e.program, e.memory = sizeOf(parsed); e.program > maxInstructions || e.memory > maxMemory {
		e.wrong = "it is too large"
	} else if _, err := syntax.Parse(e.ofWhole(), syntax.Perl); err != nil { // which has one more level
		e.wrong = "it nests too deeply"
	}
	return e
}

// ofWhole is the text of the expression that matches the whole value.
func (e *expression) ofWhole() string { return `\A(?:` + e.alone + `)\z` }

// compile compiles what can be compiled, once.
func (e *expression) compile() {
	if e.whole != nil || e.wrong != "" {
		return
	}
	alone, err := regexp.Compile(e.alone)
	if err == nil {
		e.literal, _ = alone.LiteralPrefix()
		e.whole, err = regexp.Compile(e.ofWhole())
	}
	if err != nil {
		e.wrong = err.Error()
	}
}

// sizeOf returns at least how many instructions an expression has, and how many would take as much memory as it does: those for sets
// of characters are large. What is above the bounds need not be exact.
func sizeOf(e *syntax.Regexp) (program, memory int) {
	for _, sub := range e.Sub {
		more, of := sizeOf(sub)
		if program, memory = program+more, memory+of; memory > maxMemory {
			return program, memory
		}
	}
	own, copies := 1, 1
	switch e.Op {
	case syntax.OpLiteral:
		own = len(e.Rune)
	case syntax.OpCharClass:
		memory += len(e.Rune) / 5
	case syntax.OpCapture, syntax.OpAlternate:
		own = 1 + len(e.Sub)
	case syntax.OpConcat:
		own = 0
	case syntax.OpRepeat:
		if copies = max(e.Min, e.Max, 1); e.Min == e.Max {
			own = 0
		}
	}
	return max((program+own)*copies, 1), max((memory+own)*copies, 1)
}

// ignoreLines makes a line end an ordinary character, whatever the flags s and m are. A
// client can send an escaped line end. Without this, it could get past an expression for a
// whole path.
func ignoreLines(e *syntax.Regexp) {
	switch e.Op {
	case syntax.OpAnyCharNotNL:
		e.Op = syntax.OpAnyChar
	case syntax.OpBeginLine:
		e.Op = syntax.OpBeginText
	case syntax.OpEndLine:
		e.Op = syntax.OpEndText
	}
	for _, sub := range e.Sub {
		ignoreLines(sub)
	}
}
