package apply

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/text"
)

// An answer to an apply that differs from what was applied tells that something in the API server has its own opinion: an
// admission policy or a webhook. The child is not as desired then, and the error says so. No watch tells when that ends, so the
// same is applied again after a pause, which grows. Meanwhile nothing is written, unless another field differs.
const (
	// alteredPause is the first pause, and alteredPauseMax the longest. In the long run an altered child costs a request that
	// changes nothing every five minutes.
	alteredPause    = 5 * time.Second
	alteredPauseMax = 5 * time.Minute
	// alteredChildren bounds how many altered children are remembered: entries of less than 1 KiB. Forgetting costs a request.
	alteredChildren = 16384
)

// alteration is how a child came back from an apply.
type alteration struct {
	// desired and fields identify what was applied, and what of it came back otherwise.
	desired, fields uint64
	// message is what is said of the fields.
	message string
	// again is when the same is applied again, and pause how long it is until then.
	again time.Time
	pause time.Duration
}

// conclude compares the API server's answer to a write with what was written.
func (a *Applier) conclude(child Child, desired []byte) error {
	altered, err := a.compare(child.Desired, child.Current)
	if err != nil {
		return err
	}
	known := a.settled.load().altered
	if !altered {
		a.settled.add(child, desired)
		known.Remove(keyOf(child.Desired))
		return nil
	}
	a.settled.want(child, desired)
	next := a.alterationOf(child, desired)
	next.pause = alteredPause
	if before, ok := known.Get(keyOf(child.Desired)); ok && before.(alteration).is(next) {
		next.pause = min(2*before.(alteration).pause, alteredPauseMax)
	}
	next.again = a.now().Add(next.pause)
	known.Add(keyOf(child.Desired), next)
	return nil
}

// altered is an error where the API server has changed what was applied last, and nothing else differs. It is the same
// until it is time to apply it again.
func (a *Applier) altered(child Child, desired []byte) error {
	known, ok := a.settled.load().altered.Get(keyOf(child.Desired))
	if !ok || !known.(alteration).is(a.alterationOf(child, desired)) {
		return nil
	}
	left := known.(alteration).again.Sub(a.now())
	if left <= 0 {
		return nil
	}
	return &outcome.Error{
		Kind: outcome.Blocked, Reason: slipwayv1alpha1.ReasonAltered, After: left,
		Message: fmt.Sprintf("%s: %s not as it was applied: an admission policy or webhook of the cluster changes that: exclude the "+
			"object there, or ask for what comes of it",
			subject(child.Desired), known.(alteration).message),
	}
}

func (n alteration) is(other alteration) bool {
	return n.desired == other.desired && n.fields == other.fields
}

// alterationOf looks for what of the current child is not as desired.
func (a *Applier) alterationOf(child Child, desired []byte) alteration {
	names := a.differing(child.Desired, child.Current)
	sum := &maphash.Hash{}
	sum.SetSeed(a.settled.load().seed)
	if entry := a.ownEntry(child.Current); entry != nil {
		// A field that somebody else has taken differs in its owner.
		_, _ = sum.WriteString(entry.FieldsV1.GetRawString())
	}
	for _, name := range names {
		_, _ = sum.WriteString(name)
		_ = sum.WriteByte(0)
	}
	message := "its fields are"
	switch more := len(names) - maxRepairedFields; {
	case len(names) == 1:
		message = names[0] + " is"
	case more > 0:
		message = fmt.Sprintf("%s and %d more are", strings.Join(names[:maxRepairedFields], ", "), more)
	case len(names) > 1:
		message = strings.Join(names, ", ") + " are"
	}
	return alteration{desired: a.settled.sumsOf(child.Current, desired).desired, fields: sum.Sum64(), message: text.Cut(message, maxRepair)}
}

// differing names the desired fields that have another value, or none. It names no value.
func (a *Applier) differing(desired Configuration, current client.Object) []string {
	owned := a.ownedFields(current)
	if owned == nil {
		return []string{"metadata.managedFields"}
	}
	want, err := value.NewValueReflect(desired)
	if err != nil {
		return nil
	}
	live, err := value.NewValueReflect(current)
	if err != nil {
		return nil
	}
	search := comparison{allocator: value.NewFreelistAllocator()}
	var names []string
	owned.Leaves().Iterate(func(path fieldpath.Path) {
		if !search.sameAt(path, want, live) {
			names = append(names, FieldName(path))
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// sameAt compares one owned field. One that is not desired is none of those that are not as desired.
func (c comparison) sameAt(path fieldpath.Path, desired, live value.Value) bool {
	for _, element := range path {
		var wanted, there bool
		if desired, wanted = c.below(desired, element, true); !wanted {
			return true
		}
		if live, there = c.below(live, element, false); !there {
			return isEmptyString(desired)
		}
	}
	return c.sameLeaf(desired, live)
}

// below is what an element of a path leads to.
func (c comparison) below(of value.Value, element fieldpath.PathElement, mayOmit bool) (value.Value, bool) {
	switch {
	case element.FieldName != nil && of.IsMap():
		return of.AsMap().Get(*element.FieldName)
	case element.FieldName == nil && of.IsList():
		if at := c.find(of.AsList(), element, mayOmit); at >= 0 {
			return of.AsList().At(at), true
		}
	}
	return nil, false
}

// reportAltered reports a child that is never applied again.
func (a *Applier) reportAltered(owner client.Object, child Child, desired []byte) {
	if err := a.altered(child, desired); err != nil && a.Altered != nil {
		a.Altered(owner, err.Error())
	}
}

func (a *Applier) now() time.Time {
	if a.Clock == nil {
		return clock.RealClock{}.Now()
	}
	return a.Clock.Now()
}

func newAltered() *lru.Cache { return lru.New(alteredChildren) }
