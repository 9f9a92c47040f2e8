package rule

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// maxExpression is how many bytes an expression has at most.
const maxExpression = 4096

// maxErrors is how many errors of one expression are told.
const maxErrors = 3

// expression is a compiled expression. It is safe for concurrent use.
type expression struct {
	text    string
	program cel.Program
	// uses are the variables that it reads.
	uses map[string]bool
}

// expression compiles a text that yields a type. It returns nil for an empty text, and after a problem.
func (b *builder) expression(field, text string, want *cel.Type) *expression {
	if text == "" {
		return nil
	}
	if len(text) > maxExpression {
		b.refuse(field, "has more than %d bytes", maxExpression)
		return nil
	}
	c := b.compiler
	ast, issues := c.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		for i, e := range issues.Errors() {
			if i == maxErrors {
				break
			}
			b.problems = append(b.problems, Problem{
				Field: field, Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: cut(e.Message, 300),
			})
		}
		return nil
	}
	// What is read from an object may be of any type. Then it is seen when it is evaluated.
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		b.refuse(field, "yields %s, and it must yield %s", got, want)
		return nil
	}
	if cost := c.estimate(ast); cost > c.limits.PerCall {
		b.refuse(field,
			"costs too much: for an object with %d entries in each list it could cost %s, and %d is the most; use fewer nested loops",
			c.limits.Entries, costText(cost), c.limits.PerCall)
		return nil
	}
	program, err := c.env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostTracking(&library.CostEstimator{}),
		cel.CostLimit(c.limits.PerCall), cel.InterruptCheckFrequency(c.limits.CheckEvery))
	if err != nil {
		b.refuse(field, "%s", cut(err.Error(), 300))
		return nil
	}
	e := &expression{text: text, program: program, uses: map[string]bool{}}
	for _, reference := range ast.NativeRep().ReferenceMap() {
		e.uses[reference.Name] = true
	}
	return e
}

func costText(cost uint64) string {
	if cost > math.MaxInt64 {
		return "any amount"
	}
	return fmt.Sprint(cost)
}

// estimate is what an expression costs at most for an ordinary object.
func (c *Compiler) estimate(ast *cel.Ast) uint64 {
	cost, err := c.env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: &ordinary{limits: c.limits}})
	if err != nil {
		return math.MaxUint64
	}
	return cost.Max
}

// ordinary is an object of ordinary size.
type ordinary struct{ limits Limits }

// EstimateSize is asked for what CEL does not know the size of.
func (o *ordinary) EstimateSize(of checker.AstNode) *checker.SizeEstimate {
	switch of.Type().Kind() {
	case types.StringKind, types.BytesKind:
		return &checker.SizeEstimate{Max: o.limits.Letters}
	case types.ListKind, types.MapKind, types.DynKind, types.AnyKind, types.TypeParamKind:
		return &checker.SizeEstimate{Max: o.limits.Entries}
	default:
		return nil
	}
}

// EstimateCallCost leaves the cost of functions to the libraries.
func (o *ordinary) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// errStopped is the error of an evaluation that ended because its context did.
var errStopped = errors.New("the evaluation was stopped")

// evaluate yields the value of the expression.
func (e *expression) evaluate(ctx context.Context, variables interpreter.Activation) (ref.Val, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	switch {
	case err == nil:
		return value, nil
	case ctx.Err() != nil:
		return nil, errStopped
	default:
		return nil, errors.New(Text(err.Error()))
	}
}

// holds evaluates an expression that is true or false.
func (e *expression) holds(ctx context.Context, variables interpreter.Activation) (bool, error) {
	value, err := e.evaluate(ctx, variables)
	if err != nil {
		return false, err
	}
	holds, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("yields %s, and it must yield bool", value.Type().TypeName())
	}
	return bool(holds), nil
}

// sentence evaluates an expression that yields a text.
func (e *expression) sentence(ctx context.Context, variables interpreter.Activation) (string, error) {
	value, err := e.evaluate(ctx, variables)
	if err != nil {
		return "", err
	}
	text, ok := value.(types.String)
	if !ok {
		return "", fmt.Errorf("yields %s, and it must yield string", value.Type().TypeName())
	}
	return Text(string(text)), nil
}
