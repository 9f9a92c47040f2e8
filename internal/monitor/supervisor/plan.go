package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

// mode is what is wanted of a kind.
type mode int

const (
	// follow it.
	follow mode = iota
	// hold means that it cannot be followed yet. When it is followed already, it still is.
	hold
	// leaveOut means that it is not followed, though it is there.
	leaveOut
)

// want is what is wanted of one kind that is there.
type want struct {
	kind       change.Kind
	mode       mode
	state      State  // of a kind that is not followed: Pending or Excluded
	reason     string // why it is not
	schema     packed
	content    digest // of the schema
	noStatus   bool
	generation int64 // of the definition
	made       time.Time
}

// phase is how far a kind is with what is done for it.
type phase int

const (
	// stored: it was followed before, perhaps in an earlier life, and is not now.
	stored phase = iota
	// following: it has a follower.
	following
	// ending: its follower is about to end, or the kind is about to be closed.
	ending
)

// has is what is done for one kind.
type has struct {
	kind       change.Kind
	phase      phase
	content    digest
	generation int64
}

// verb is what is to be done for a kind.
type verb int

const (
	// start a follower.
	start verb = iota
	// update tells a follower that the definition has changed.
	update
	// stop a follower. The kind is still there.
	stop
	// closeKind ends a kind of which the definition is gone, with its follower if it has one.
	closeKind
)

type action struct {
	verb verb
	kind schema.GroupResource
}

// plan returns what is to be done now, so that what is done becomes what is wanted. complete reports whether the wanted kinds
// are all there are: otherwise a kind that is not among them is left as it is.
func plan(wanted map[schema.GroupResource]want, actual map[schema.GroupResource]has, complete bool) []action {
	var actions []action
	for key, w := range wanted {
		h, found := actual[key]
		switch {
		case found:
			if verb, needed := next(w, h); needed {
				actions = append(actions, action{verb, key})
			}
		case w.mode == follow:
			actions = append(actions, action{start, key})
		}
	}
	for key, h := range actual {
		// A kind that Kubernetes brings is always there. Nobody wants it any more, that is all.
		if _, found := wanted[key]; !found && complete && h.phase != ending && h.kind.Definition != "" {
			actions = append(actions, action{closeKind, key})
		}
	}
	slices.SortFunc(actions, func(a, b action) int {
		return cmp.Or(cmp.Compare(a.verb, b.verb), cmp.Compare(a.kind.Group, b.kind.Group), cmp.Compare(a.kind.Resource, b.kind.Resource))
	})
	return actions
}

// next returns what is to be done for a kind that is wanted and for which something is done already.
func next(w want, h has) (verb, bool) {
	switch {
	case h.phase == ending:
		return 0, false // what comes after is seen when it has ended
	case w.kind.Definition != h.kind.Definition:
		return closeKind, true // its definition was deleted, and another one was made
	case h.phase == stored:
		return start, w.mode == follow
	case w.mode == leaveOut:
		return stop, true
	case w.mode == hold:
		return 0, false
	case w.kind != h.kind:
		return stop, true // another version: the next follower goes on from where this one ends
	default:
		return update, w.content != h.content || w.generation != h.generation
	}
}

// desired returns what is wanted: of all definitions, and of the kinds that Kubernetes brings. No more than limit kinds are
// followed. When there are more, the oldest are: whoever adds definitions cannot end what is followed.
func desired(definitions []definition, builtin []change.Kind, chosen selection.Kinds, limit int) map[schema.GroupResource]want {
	wanted := make(map[schema.GroupResource]want, len(definitions)+len(builtin))
	for _, kind := range builtin {
		wanted[kind.GroupResource()] = want{kind: kind, mode: follow}
	}
	room := limit - len(wanted)
	sorted := slices.SortedFunc(slices.Values(definitions), func(a, b definition) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	for _, d := range sorted {
		if _, taken := wanted[d.groupResource()]; taken {
			continue // a kind that Kubernetes brings is what its name says
		}
		w := judgeDefinition(d, chosen)
		if w.mode != leaveOut && room <= 0 {
			w.mode, w.state, w.reason = leaveOut, Excluded, fmt.Sprintf("there are more than %d kinds", limit)
		}
		if w.mode != leaveOut {
			room--
		}
		wanted[d.groupResource()] = w
	}
	return wanted
}

// judgeDefinition returns what is wanted of a kind, whatever others there are.
func judgeDefinition(d definition, chosen selection.Kinds) want {
	picked, served := d.choose()
	w := want{
		kind: d.at(picked.name), schema: picked.schema, content: picked.content, noStatus: picked.noStatus, generation: d.generation,
		made: d.created,
	}
	if refusal := chosen.Refuses(d.groupResource()); refusal != "" {
		w.mode, w.state, w.reason = leaveOut, Excluded, refusal
		return w
	}
	switch {
	case d.problem != "":
		w.mode, w.state, w.reason = hold, Failing, d.problem
	case !served:
		w.mode, w.state, w.reason = leaveOut, Pending, "its definition serves no version"
	case !d.established:
		w.mode, w.state, w.reason = hold, Pending, "its definition is not established"
	}
	return w
}
