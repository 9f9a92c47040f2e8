package table

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// maxInstructions bounds what a regular expression costs in time for each request. A long alternative of words has some hundred
	// instructions.
	maxInstructions = 2_000
	// maxMemory bounds its memory, in instructions of at most 100 bytes.
	maxMemory = 20_000
	// maxRoom bounds the memory of all expressions of an owner together. One for each of 1,000 routes fits.
	maxRoom = 200_000
)

// expression compiles an expression that must match the whole value.
func (t *texts) expression(owner, field, text string) (*expression, *Fault) {
	known := t.expressions[text]
	if known == nil {
		known = parseExpression(text)
		t.expressions[text] = known
	}
	if known.wrong == "" && !t.takeRoom(usedExpression{owner, text}, known.memory) {
		return nil, &Fault{ReasonInvalidRegex, fmt.Sprintf("%s: there is no room for the regular expression %q, because those before it are too large together", field, text)}
	}
	if !t.checks {
		known.compile()
	}
	if known.wrong != "" {
		return nil, &Fault{ReasonInvalidRegex, fmt.Sprintf("%s: the regular expression %q does not compile: %s", field, text, known.wrong)}
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

// parseExpression finds out whether an expression can be compiled. Its size is known before: what is too large must not be compiled
// to find that out.
func parseExpression(text string) *expression {
	parsed, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return &expression{wrong: err.Error()}
	}
	ignoreLines(parsed)
	e := &expression{alone: parsed.String()}
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
