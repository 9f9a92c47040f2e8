package rule

import (
	"fmt"
	"strings"
)

// Problem is what is wrong with a rule.
type Problem struct {
	// Field is where, such as spec.when.
	Field string
	// Line and Column are where in an expression, from 1. They are 0 if it is not about one place.
	Line, Column int
	// Message says what is wrong.
	Message string
}

// String is the problem in a sentence.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Field + ": " + p.Message
	}
	return fmt.Sprintf("%s, line %d, column %d: %s", p.Field, p.Line, p.Column, p.Message)
}

// Sentence tells of several problems, bounded as a message is.
func Sentence(problems []Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.String()
	}
	return Text(strings.Join(texts, "; "))
}
