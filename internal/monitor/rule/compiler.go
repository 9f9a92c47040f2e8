package rule

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Limits bound what the expressions of a rule may cost, in the units of CEL. A unit is about 50 ns or less. A field that is 0
// has the value that Kubernetes has for its ValidatingAdmissionPolicies.
type Limits struct {
	// PerCall is what one evaluation of an expression may cost. Default 1,000,000. A rule has two expressions, so that a look
	// at an object costs at most twice as much.
	PerCall uint64
	// CheckEvery is after how many turns of a loop it is asked whether the context is done. Default 100.
	CheckEvery uint
	// Entries and Letters are how many entries a list or a map has, and how many characters a text has, in the object for which
	// the cost is estimated before anything is evaluated. Defaults 20 and 256. A rule is refused if it may cost more than
	// PerCall for such an object.
	Entries, Letters uint64
}

func (l *Limits) setDefaults() {
	if l.PerCall == 0 {
		l.PerCall = 1_000_000
	}
	if l.CheckEvery == 0 {
		l.CheckEvery = 100
	}
	if l.Entries == 0 {
		l.Entries = 20
	}
	if l.Letters == 0 {
		l.Letters = 256
	}
}

// The variables of expressions.
const (
	varObject  = "object"
	varOld     = "oldObject"
	varChanges = "changes"
	varHealth  = "health"
	varNow     = "now"
)

// Compiler compiles rules. It is safe for concurrent use.
type Compiler struct {
	env    *cel.Env
	limits Limits
}

// NewCompiler makes a compiler: the language and the libraries that expressions have in Kubernetes 1.37, and the variables of
// rules.
func NewCompiler(limits Limits) (*Compiler, error) {
	limits.setDefaults()
	since := version.MajorMinor(1, 37)
	set, err := environment.MustBaseEnvSet(since).Extend(environment.VersionedOptions{
		IntroducedVersion: since,
		EnvOptions: []cel.EnvOption{
			cel.Variable(varObject, cel.DynType),
			cel.Variable(varOld, cel.DynType),
			cel.Variable(varChanges, cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
			cel.Variable(varHealth, cel.MapType(cel.StringType, cel.StringType)),
			cel.Variable(varNow, cel.TimestampType),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("the language of rules: %w", err)
	}
	return &Compiler{env: set.StoredExpressionsEnv(), limits: limits}, nil
}

// Compile compiles a rule. With problems there is no rule, and the message of each names a field.
func (c *Compiler) Compile(from *slipwayv1alpha1.MonitorRule) (*Rule, []Problem) {
	spec := &from.Spec
	b := builder{compiler: c}
	r := &Rule{
		Name: from.Name, UID: from.UID, Generation: from.Generation,
		Severity: spec.Severity, Event: true, Suspended: spec.Suspend,
		kinds: spec.Kinds, namespaces: spec.Namespaces, notNamespaces: spec.ExcludeNamespaces,
	}
	if r.Severity == "" {
		r.Severity = slipwayv1alpha1.SeverityWarning
	}
	if out := spec.Outputs; out != nil {
		r.Event = out.Event == nil || *out.Event
		r.Webhooks = out.Webhooks
	}
	r.wait = b.duration("spec.for", spec.For, 0)
	b.selector(r, spec.Selector)
	b.conditions(r, spec)
	r.when = b.expression("spec.when", spec.When, cel.BoolType)
	r.message = b.expression("spec.message", spec.Message, cel.StringType)
	if len(b.problems) > 0 {
		return nil, b.problems
	}
	r.finish(spec)
	return r, nil
}

// builder gathers the problems of one rule.
type builder struct {
	compiler *Compiler
	problems []Problem
}

func (b *builder) refuse(field, message string, args ...any) {
	b.problems = append(b.problems, Problem{Field: field, Message: fmt.Sprintf(message, args...)})
}

const (
	maxDuration   = 24 * time.Hour
	defaultTurns  = 4
	defaultWindow = 10 * time.Minute
)

// duration reads a time. The schema has the same bounds; a rule from elsewhere has not been through it.
func (b *builder) duration(field string, text slipwayv1alpha1.Duration, fallback time.Duration) time.Duration {
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < time.Second || d > maxDuration {
		b.refuse(field, "%q is not a time from 1s to 24h", cut(string(text), 32))
	}
	return d
}

func (b *builder) selector(r *Rule, from *metav1.LabelSelector) {
	if from == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		b.refuse("spec.selector", "%s", cut(err.Error(), 200))
		return
	}
	if !selector.Empty() {
		r.labels = selector
	}
}

func (b *builder) conditions(r *Rule, spec *slipwayv1alpha1.MonitorRuleSpec) {
	if spec.When == "" && spec.Changes == nil && spec.Fight == nil && spec.StuckDeletion == nil {
		b.refuse("spec", "set at least one of when, changes, fight and stuckDeletion")
	}
	if spec.Changes != nil && spec.Fight != nil || spec.StuckDeletion != nil && (spec.Changes != nil || spec.Fight != nil) {
		b.refuse("spec", "set at most one of changes, fight and stuckDeletion")
	}
	b.changes(r, spec.Changes)
	if from := spec.Fight; from != nil {
		r.fight = &fightRule{turns: int(from.Turns), window: b.duration("spec.fight.within", from.Within, defaultWindow)}
		if from.Turns == 0 {
			r.fight.turns = defaultTurns
		} else if from.Turns < 3 || from.Turns > 100 {
			b.refuse("spec.fight.turns", "%d is not from 3 to 100", from.Turns)
		}
	}
	if from := spec.StuckDeletion; from != nil {
		r.stuck = &stuckRule{after: b.duration("spec.stuckDeletion.after", from.After, defaultWindow), finalizers: from.Finalizers}
	}
}

func (b *builder) changes(r *Rule, from *slipwayv1alpha1.MonitorChanges) {
	if from == nil {
		return
	}
	r.changes = &changesRule{count: int(from.Count), window: b.duration("spec.changes.within", from.Within, defaultWindow)}
	if from.Count < 2 || from.Count > 1000 {
		b.refuse("spec.changes.count", "%d is not from 2 to 1000", from.Count)
	}
	for _, path := range from.Paths {
		if !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "[") {
			path = "." + path
		}
		r.changes.paths = append(r.changes.paths, strings.TrimSuffix(path, "."))
	}
}

// matches reports whether labels are selected.
func matches(selector labels.Selector, object map[string]any) bool {
	if selector == nil {
		return true
	}
	meta, _ := object["metadata"].(map[string]any)
	from, _ := meta["labels"].(map[string]any)
	set := make(labels.Set, len(from))
	for key, value := range from {
		if text, ok := value.(string); ok {
			set[key] = text
		}
	}
	return selector.Matches(set)
}
