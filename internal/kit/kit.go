// Package kit is what the reconcilers of all kinds work with, and how each of them begins and ends. It is no base class: a
// reconciler holds Tools, and calls them. What a kind is about stays in its own room.
package kit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/podevents"
	"github.com/slipway-dev/slipway/internal/kit/refusal"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/workload"
)

// Memory bounds what a reconciler remembers of its objects: entries of about 200 bytes.
const Memory = 65536

// Tools are what a reconciler works with. They are those of one kind.
type Tools struct {
	// Client reads from the cache, seeing its own writes, and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Fresh knows which objects the cache shows as they are.
	Fresh *apply.Freshness
	// Applier applies and deletes children.
	Applier *apply.Applier
	// Blockers notices when an object in the way of a child has gone. Nil notices nothing.
	Blockers *blocker.Watches
	// Statuses writes what there is to say.
	Statuses *status.Writer
	// Events reads what the kubelet says of pods nowhere else.
	Events *podevents.Reader
	// Refusals looks again at what refuses pods.
	Refusals *refusal.Reader
	// Namespaces knows which namespaces are being deleted. Nil knows of none.
	Namespaces *going.Namespaces
	// Warn writes an event about something that has happened and that no condition tells.
	Warn func(owner client.Object, reason, message string)
	// Clock tells the time.
	Clock clock.PassiveClock

	// conflicts makes results, with backoff after conflicts.
	conflicts *outcome.ConflictBackoff
}

// Options are what tools differ in from kind to kind.
type Options struct {
	// FieldManager owns the fields that the controller states.
	FieldManager string
	// News says which conditions are worth an event.
	News status.News
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock
}

// New returns tools that read through the manager's cache. They watch no blockers yet.
func New(mgr ctrl.Manager, options Options) *Tools {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	fresh := apply.NewFreshness(mgr.GetClient(), mgr.GetAPIReader())
	recorder := status.Recorder(mgr.GetEventRecorder(options.FieldManager))
	return &Tools{
		Client: mgr.GetClient(),
		Live:   mgr.GetAPIReader(),
		Fresh:  fresh,
		Applier: &apply.Applier{
			Client:       mgr.GetClient(),
			Live:         mgr.GetAPIReader(),
			FieldManager: options.FieldManager,
			Fresh:        fresh,
			Repaired:     status.Repaired(recorder),
			Altered:      status.Altered(recorder),
			Clock:        options.Clock,
		},
		Statuses:  status.NewWriter(mgr.GetClient(), fresh, recorder, options.Clock, options.News),
		Events:    podevents.NewReader(mgr.GetAPIReader(), options.Clock),
		Refusals:  refusal.NewReader(mgr.GetAPIReader(), mgr.GetClient(), options.Clock),
		Warn:      status.Warn(recorder),
		Clock:     options.Clock,
		conflicts: outcome.NewConflictBackoff(options.Clock),
	}
}

// Get reads the object that is reconciled from the cache, and reports whether it is there.
func (t *Tools) Get(ctx context.Context, key types.NamespacedName, into client.Object) (found bool, err error) {
	err = t.Client.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the %s: %w", status.KindOf(t.Client, into), err)
	default:
		return true, nil
	}
}

// Abort ends a reconcile that could not read what it needs.
func (t *Tools) Abort(key types.NamespacedName, err error) (ctrl.Result, error) {
	return t.conflicts.Result(key, err, 0)
}

// Forget ends the reconcile of an object that has gone.
func (t *Tools) Forget(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	t.Blockers.Keep(ctx, key, nil)
	t.Refusals.Forget(ctx, key)
	return t.conflicts.Result(key, nil, 0)
}

// LookAgain finds what is left today of what refuses the pods of a Deployment, and whether it was looked for. It is not of a Deployment
// that is somebody else's, or that is left as it is: nothing of it is to be changed.
func (t *Tools) LookAgain(
	ctx context.Context, owner client.Object, w workload.Workload, asItIs bool, recheck *outcome.Recheck,
) (bool, *health.Refusal) {
	key := client.ObjectKeyFromObject(owner)
	if asItIs || !t.Applier.Ours(owner, w.Deployment) {
		t.Refusals.Forget(ctx, key)
		return false, nil
	}
	w, again := t.Refusals.Look(ctx, key, w)
	recheck.After(again.In())
	return w.Looked, w.Refusal
}

// Conclude ends a reconcile. It watches what is in the way, has the status written, and makes the result of what went wrong.
// recheck is when to look again though nothing changes; writeStatus may ask for it, too.
//
// Where conflicts and a stale cache are all that went wrong, no status is written: there is nothing true to say yet. Other
// trouble beside them is told, or a conflict that lasts would hide it. The Writer compares the objects that a status speaks
// of with the API server, so a status of a stale cache is refused there.
func (t *Tools) Conclude(
	ctx context.Context, key types.NamespacedName, phases error, recheck *outcome.Recheck, writeStatus func() error,
) (ctrl.Result, error) {
	t.Blockers.Keep(ctx, key, outcome.Blockers(phases))
	if phases != nil && outcome.Worst(phases) == nil {
		return t.conflicts.Result(key, phases, recheck.In())
	}
	err := errors.Join(phases, writeStatus())
	return t.conflicts.Result(key, err, recheck.In())
}
