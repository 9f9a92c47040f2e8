package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// Outcome is what a run leads to, and how.
type Outcome struct {
	// States are those after each step, nil where the next one followed at once.
	States []map[string]any
	// Writes are the operator's.
	Writes []fault.Write
	// Steps are the numbers of the steps, from 0, that the writes belong to.
	Steps []int
	// Moved are the kinds of which something had changed since the beginning of the step,
	// at each write.
	Moved []map[string]bool
	// Injected is how many faults were injected, by the first step of the stage.
	Injected map[int]int
	// Seen is when the operator was shown events of each kind, if it saw through a cache delay.
	Seen map[string][]time.Time
	// ways are what each object asked for, one after the other.
	ways map[string][]string
	// claims are the moments at which an object said that it was ready.
	claims []claim
}

// InjectedInAll is how many faults were injected in all stages.
func (o *Outcome) InjectedInAll() int {
	all := 0
	for _, n := range o.Injected {
		all += n
	}
	return all
}

// stepsOf returns for each write the number of its step, from 0.
func stepsOf(writes []fault.Write, starts []time.Time) []int {
	steps := make([]int, len(writes))
	for i, w := range writes {
		for number, start := range starts {
			if !start.After(w.At) {
				steps[i] = number
			}
		}
	}
	return steps
}

// moved returns for each write the kinds of which the operator was shown a change since
// the beginning of its step. The write itself counts, and what follows from it at once:
// it is committed when the operator crashes after it.
func moved(outcome *Outcome, starts []time.Time) []map[string]bool {
	all := make([]map[string]bool, len(outcome.Writes))
	for i, w := range outcome.Writes {
		all[i] = map[string]bool{}
		for kind, times := range outcome.Seen {
			all[i][kind] = slices.ContainsFunc(times, func(at time.Time) bool {
				return at.After(starts[outcome.Steps[i]]) && at.Before(w.At.Add(unseen))
			})
		}
	}
	return all
}

// unseen is how late the operator may be shown a write, and what follows from it.
const unseen = 200 * time.Millisecond

// Unsafe is an error that a busy machine does not excuse: something was done that nobody asked
// for, or status said something that was not true.
type Unsafe struct{ error }

// Unwrap returns what it was.
func (u Unsafe) Unwrap() error { return u.error }

// checkSafety finds what must never happen, however long anything takes. Claims are checked
// only in a run that reached its end: a recorder that is behind may have seen a claim, but not
// yet the objects that the claim is about. Ways are always checked: a way whose end is missing
// is still a right one.
func checkSafety(reference, got *Outcome, history []Version, ended bool, operators int) error {
	problems := append(checkWays(reference.ways, got.ways, operators), checkGood(history)...)
	if len(problems) > 0 {
		problems = append(problems, fmt.Errorf("seen: %s", seen(history)))
	}
	if ended {
		problems = append(problems, checkClaims(reference, got)...)
	}
	if len(problems) == 0 {
		return nil
	}
	return Unsafe{errors.Join(problems...)}
}

// gone marks in a way that the object was deleted.
const gone = "(deleted)"

// waysOf returns for each object what it asked for, one after the other.
func waysOf(history []Version) map[string][]string {
	ways := map[string][]string{}
	for _, version := range history {
		asks := version.Asks
		if version.Deleted {
			asks = gone
		}
		way := ways[version.Object]
		if len(way) == 0 || way[len(way)-1] != asks {
			ways[version.Object] = append(way, asks)
		}
	}
	return ways
}

// checkWays finds objects that went another way than without the fault: they were deleted,
// scaled, given another template, or made, though nobody asked for it. A value may be left
// out: a state that is overtaken need not be reached. If two operators act at once, one may
// undo for a moment what the other has done, because its write was under way already. So what is deleted in the end may be made
// once more by the other, and goes again.
func checkWays(reference, got map[string][]string, operators int) []error {
	var problems []error
	for _, object := range slices.Sorted(maps.Keys(got)) {
		want, known := reference[object]
		if !known {
			problems = append(problems, fmt.Errorf("%s was made, which does not exist without the fault", object))
			continue
		}
		if at := strays(want, got[object]); at >= 0 && (operators < 2 || !onlyGoesBack(want, got[object])) {
			before := "(nothing)"
			if at > 0 {
				before = got[object][at-1]
			}
			problems = append(problems, fmt.Errorf("%s went a way that it does not go without the fault, at change %d (-before +then):\n%s",
				object, at, cmp.Diff(before, got[object][at])))
		}
	}
	return problems
}

// seen lists versions in a line.
func seen(history []Version) string {
	var list []string
	for _, version := range history {
		what := ""
		if version.Deleted {
			what = " " + gone
		}
		list = append(list, fmt.Sprintf("%s %s %d%s", version.At.Format(time.StampMilli), version.Object, version.Number, what))
	}
	return strings.Join(list, ", ")
}

// onlyGoesBack reports whether got takes only values of want, and no deletion more, but for one where both end with a deletion.
func onlyGoesBack(want, got []string) bool {
	deletions := 0
	if len(want) > 0 && want[len(want)-1] == gone && got[len(got)-1] == gone {
		deletions++
	}
	for _, state := range want {
		if state == gone {
			deletions++
		}
	}
	for _, state := range got {
		if !slices.Contains(want, state) {
			return false
		}
		if state == gone {
			deletions--
		}
	}
	return deletions >= 0
}

// strays returns where got stops being a part of want in the same order, or -1.
func strays(want, got []string) int {
	for i, state := range got {
		at := slices.Index(want, state)
		if at < 0 {
			return i
		}
		want = want[at:]
	}
	return -1
}

// claim is a moment at which an object said that it was ready.
type claim struct {
	object     string
	generation int64
	// others is what the other objects asked for then.
	others map[string]string
}

// claimsOf finds the moments at which a status began to say that the object is ready
// as its spec is.
func claimsOf(history []Version) []claim {
	asks := map[string]string{}
	ready := map[string]bool{}
	var claims []claim
	for _, version := range inOrder(history) {
		if version.Deleted {
			delete(asks, version.Object)
			delete(ready, version.Object)
			continue
		}
		asks[version.Object] = claimed(version)
		object := &unstructured.Unstructured{Object: version.Fields}
		declared := Declared(object)
		if declared == nil {
			continue
		}
		now := truth.Ready(declared)
		if now && !ready[version.Object] {
			claims = append(claims, claim{object: version.Object, generation: object.GetGeneration(), others: maps.Clone(asks)})
		}
		ready[version.Object] = now
	}
	return claims
}

// scheme knows the declared kinds. It is only read.
var scheme = operator.Scheme()

// Declared returns the object with its type when it is one that has conditions.
func Declared(object *unstructured.Unstructured) truth.Object {
	typed, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil
	}
	declared, ok := typed.(truth.Object)
	if !ok {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, declared); err != nil {
		return nil
	}
	return declared
}

// checkClaims finds objects that said they were ready while their children were not as they
// are at such a moment without the fault.
func checkClaims(reference, got *Outcome) []error {
	allowed := allowedClaims(reference)
	var problems []error
	for _, c := range got.claims {
		known, ok := allowed[claimKey{c.object, c.generation}]
		if !ok {
			problems = append(problems,
				fmt.Errorf("%s said it was ready as of generation %d, which it is not without the fault", c.object, c.generation))
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(known.asks)) {
			asks, exists := c.others[other]
			switch {
			case !exists && known.claims == known.with[other] && !passes(reference, other):
				problems = append(problems,
					fmt.Errorf("%s said it was ready as of generation %d while there was no %s", c.object, c.generation, other))
			case exists && !known.asks[other][asks]:
				problems = append(problems,
					fmt.Errorf("%s said it was ready as of generation %d while %s asked for %s", c.object, c.generation, other, asks))
			}
		}
	}
	return problems
}

// passes tells of an object that is deleted once its work is done, as a Job is, or that is gone at the end of the reference too,
// as history is. Another controller, or another try, may delete it before or after somebody says that he is ready.
func passes(reference *Outcome, object string) bool {
	if strings.HasPrefix(object, "Job/") {
		return true
	}
	if len(reference.States) == 0 {
		return false
	}
	_, stays := reference.States[len(reference.States)-1][object]
	return !stays
}

// claimKey is what a claim is about.
type claimKey struct {
	object     string
	generation int64
}

// truths are the claims of the reference about the same.
type truths struct {
	// claims is how many there were, with at how many of them each object existed.
	claims int
	with   map[string]int
	// asks is what each object asked for at one of them.
	asks map[string]map[string]bool
}

func allowedClaims(reference *Outcome) map[claimKey]*truths {
	allowed := map[claimKey]*truths{}
	for _, c := range reference.claims {
		k := claimKey{c.object, c.generation}
		known := allowed[k]
		if known == nil {
			known = &truths{with: map[string]int{}, asks: map[string]map[string]bool{}}
			allowed[k] = known
		}
		known.claims++
		for other, asks := range c.others {
			known.with[other]++
			if known.asks[other] == nil {
				known.asks[other] = map[string]bool{}
			}
			known.asks[other][asks] = true
		}
	}
	return allowed
}

// refusals is how many writes of an object may be refused in a step, beside the allowance. The
// pause between tries grows. So many tries fit into the time for which an operator may be
// mistaken.
const refusals = 8

// checkWrites finds objects that were written more often than without the fault, and
// more than allowed. A status may be written twice as often besides: how much of a
// rollout is seen on the way is a matter of time. Writes that the API server refused
// change nothing and are counted apart.
func checkWrites(reference, got []fault.Write, allowance, refusals int) []error {
	want, _ := countWrites(reference)
	accepted, refused := countWrites(got)
	var problems []error
	for target, n := range accepted {
		limit := want[target] + allowance
		if strings.HasSuffix(target, "/status") {
			limit += want[target]
		}
		if n > limit {
			problems = append(problems, fmt.Errorf("%d writes of %s, at most %d are fine: %s", n, target, limit, Writes(got)))
		}
	}
	for target, n := range refused {
		if limit := allowance + refusals; n > limit {
			problems = append(problems, fmt.Errorf("%d refused writes of %s, at most %d are fine: %s", n, target, limit, Writes(got)))
		}
	}
	return problems
}

// countWrites counts writes by target.
func countWrites(writes []fault.Write) (accepted, refused map[string]int) {
	accepted, refused = map[string]int{}, map[string]int{}
	for _, w := range writes {
		if w.Refused() {
			refused[w.Target()]++
			continue
		}
		accepted[w.Target()]++
	}
	return accepted, refused
}

// Writes lists writes in a line.
func Writes(writes []fault.Write) string {
	var list []string
	for _, w := range writes {
		list = append(list, w.String())
	}
	return strings.Join(list, ", ")
}
