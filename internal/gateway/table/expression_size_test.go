package table

import (
	"regexp/syntax"
	"testing"
)

// What is said to be small must be small.
func TestTheSizeOfAnExpressionIsAtLeastThatOfItsProgram(t *testing.T) {
	for _, text := range []string{
		"", "a", "abc", "(?i)abc", "a|b|cde|", "(a|b)*c+d?", "[a-z]{3,5}", "(?:ab){2,}", "(?:ab){0,7}", "(a{1,3}){2,4}", `\pL{20}`, `^/v[0-9]+(/[^/]+)?$`, `\bfoo\b`,
		"(?:(?:a|bc)*?){5}", "(?:){9}", "x{0}", "((((a))))", "(?s).{100}", "[[:^alpha:]]{9}", "(?:a?){30}a{30}",
	} {
		parsed, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
		if err != nil {
			t.Fatal(err)
		}
		ignoreLines(parsed)
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		const ends = 2 // that every program has
		if size, _ := sizeOf(parsed); size < len(program.Inst)-ends || size > 2*len(program.Inst) {
			t.Errorf("%q: %d, and the program has %d instructions", text, size, len(program.Inst))
		}
	}
}
