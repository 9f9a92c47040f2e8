package table

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxInstructions bounds what a regular expression costs in memory, and in time for each
// request. A long alternative of words has some hundred instructions.
const maxInstructions = 10_000

// compileExpression compiles an expression that must match the whole value. literal is the
// prefix of every matching value.
func compileExpression(field, text string) (expression *regexp.Regexp, literal string, f *Fault) {
	refuse := func(why any) *Fault {
		return &Fault{ReasonInvalidRegex, fmt.Sprintf("%s: the regular expression %q does not compile: %v", field, text, why)}
	}
	parsed, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil, "", refuse(err)
	}
	ignoreLines(parsed)
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, "", refuse(err)
	}
	if len(program.Inst) > maxInstructions {
		return nil, "", refuse("it is too large")
	}
	alone, err := regexp.Compile(parsed.String())
	if err != nil {
		return nil, "", refuse(err)
	}
	if expression, err = regexp.Compile(`\A(?:` + parsed.String() + `)\z`); err != nil {
		return nil, "", refuse(err)
	}
	literal, _ = alone.LiteralPrefix()
	return expression, literal, nil
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
