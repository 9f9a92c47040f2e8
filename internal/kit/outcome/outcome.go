package outcome

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/redact"
)

// Kind is the policy of an error.
type Kind int

// The policies, mildest first.
const (
	// Quiet errors are retried, or dropped when the object is going away, and never
	// reach conditions or events.
	Quiet Kind = iota
	// Waiting is not a failure: the reconcile ended early and looks again after a while.
	Waiting
	// Transient errors are retried with backoff and reported.
	Transient
	// Blocked errors are in the way until a user acts on something that no watch shows, such
	// as an object that is not ours or an admission webhook. They are reported as Invalid ones
	// are, and tried again.
	Blocked
	// Invalid errors are not tried again: a user must change what is watched.
	Invalid
)

// Error is an error with a policy and with what status says about it.
type Error struct {
	// Kind is the policy.
	Kind Kind
	// Reason is a condition reason.
	Reason string
	// Message is the condition message: it names the object and the field, and is the
	// same at every retry.
	Message string
	// After is when to look again. Zero: when a watch says so (Waiting), soon (Quiet) or by
	// backoff (Transient, Blocked). An Invalid error has none.
	After time.Duration
	// Blocker is the object that has to go first, or to get another owner, with its kind
	// and as it was seen. It is set where no cache shows it. See package blocker.
	Blocker *metav1.PartialObjectMetadata
	// Err is the cause, for the log. It may be nil.
	Err error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Trouble is what status says of the error.
func (e *Error) Trouble() *health.Trouble {
	return &health.Trouble{Reason: e.Reason, Message: e.Message}
}

// Stalls reports whether nothing gets better until a user acts, so that status says Stalled. Nil
// stalls nothing.
func (e *Error) Stalls() bool { return e != nil && e.Kind >= Blocked }

// Blockedf returns a Blocked error that is looked at again after the given time, or with
// backoff if it is zero.
func Blockedf(after time.Duration, reason, format string, args ...any) *Error {
	return &Error{Kind: Blocked, Reason: reason, Message: fmt.Sprintf(format, args...), After: after}
}

// Invalidf returns an Invalid error.
func Invalidf(reason, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Waitingf returns a Waiting error that is looked at again after the given time,
// or when a watch reports a change if it is zero.
func Waitingf(after time.Duration, reason, format string, args ...any) *Error {
	return &Error{Kind: Waiting, Reason: reason, Message: fmt.Sprintf(format, args...), After: after}
}

// When to look again without a word to the user.
const (
	// raceRecheck is short enough to be unnoticed and long enough for the cache to catch up,
	// most of the time. Where it is not, the pause grows up to raceRecheckMax.
	raceRecheck    = 50 * time.Millisecond
	raceRecheckMax = 5 * time.Second
	// goneRecheck is for an object whose namespace is going: soon it is gone itself.
	goneRecheck = 5 * time.Second
)

// Classify gives an error of the API server its policy. subject names what the
// request was about, for example `Deployment "shop"`. An error that already has a
// policy keeps it.
//
// err must not be nil.
func Classify(subject string, err error) *Error {
	if own := (&Error{}); errors.As(err, &own) {
		return own
	}
	switch {
	case errors.Is(err, context.Canceled), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), isReplaced(err):
		return &Error{Kind: Quiet, Message: subject + ": conflict", Err: err}
	case namespaceIsGoing(err):
		return &Error{
			Kind: Waiting, Reason: slipwayv1alpha1.ReasonNamespaceTerminating,
			Message: subject + " cannot be made: its namespace is being deleted", After: goneRecheck, Err: err,
		}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		// What refuses need not be the schema, and what changes its mind, such as an admission
		// policy, need not be watched.
		return &Error{Kind: Blocked, Reason: slipwayv1alpha1.ReasonInvalid, Message: subject + " is refused: " + Answer(err), Err: err}
	case apierrors.IsForbidden(err):
		if quota, ok := health.Quota(text(err)); ok {
			return &Error{
				Kind: Transient, Reason: slipwayv1alpha1.ReasonQuotaExceeded,
				Message: subject + " exceeds a quota of the namespace: " + quota, Err: err,
			}
		}
		return &Error{Kind: Transient, Reason: slipwayv1alpha1.ReasonForbidden, Message: subject + " is forbidden: " + text(err), Err: err}
	default:
		after := time.Duration(0)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			after = time.Duration(seconds) * time.Second
		}
		return &Error{
			Kind: Transient, Reason: slipwayv1alpha1.ReasonAPIError, Message: subject + ": the API server answered " + reasonOf(err),
			After: after, Err: err,
		}
	}
}

// StaleCache returns a Quiet error: the cache shows less of subject than is known, so there
// is nothing true to do or to say until it has caught up.
func StaleCache(subject string) *Error {
	return &Error{Kind: Quiet, Message: subject + ": the cache is stale"}
}

// Worst returns the error of a reconcile that status speaks of: an Invalid one before a Blocked
// one before a Transient one before a Waiting one, the first of its kind. It returns nil when
// there is nothing to report.
func Worst(err error) *Error {
	var worst *Error
	for _, e := range flatten(err) {
		if e.Kind != Quiet && (worst == nil || e.Kind > worst.Kind) {
			worst = e
		}
	}
	return worst
}

// Only reports whether there is an error, and that each has this reason.
func Only(err error, reason string) bool {
	all := flatten(err)
	return len(all) > 0 && !slices.ContainsFunc(all, func(e *Error) bool { return e.Reason != reason })
}

// Blockers are the objects that are in the way, of all errors of a reconcile.
func Blockers(err error) []*metav1.PartialObjectMetadata {
	var blockers []*metav1.PartialObjectMetadata
	for _, e := range flatten(err) {
		if e.Blocker != nil {
			blockers = append(blockers, e.Blocker)
		}
	}
	return blockers
}

// Recheck is when to look at an object again though nothing changes. Zero: never.
type Recheck time.Duration

// After asks for another look after d at the latest. Zero or less asks for nothing.
func (r *Recheck) After(d time.Duration) {
	if d > 0 {
		*r = Recheck(sooner(time.Duration(*r), d))
	}
}

// In is how long it is until then.
func (r Recheck) In() time.Duration { return time.Duration(r) }

// Rest is the result of a reconcile that did nothing yet. It counts as neither a success nor a failure.
func Rest(left time.Duration) ctrl.Result { return ctrl.Result{RequeueAfter: left} }

// Result turns the errors of one reconcile into its result. recheck, when positive, is
// when to look again even if nothing changes. An Invalid error asks for no other look, and
// keeps no other error of the reconcile from being tried again.
func Result(err error, recheck time.Duration) (ctrl.Result, error) {
	return result(err, recheck, raceRecheck)
}

// ConflictBackoff is Result for a controller that may meet conflicts: the longer an object goes on
// meeting them, because the cache is stale, the longer the requeue waits.
type ConflictBackoff struct {
	races workqueue.TypedRateLimiter[types.NamespacedName]
}

// NewConflictBackoff returns a backoff for which no object has met a conflict yet. The clock tells when a pause
// is over.
func NewConflictBackoff(clock clock.PassiveClock) *ConflictBackoff {
	return &ConflictBackoff{races: newBackoff[types.NamespacedName](clock, raceRecheck, raceRecheckMax)}
}

// Result turns the errors of a reconcile for an object into its result.
func (p *ConflictBackoff) Result(object types.NamespacedName, err error, recheck time.Duration) (ctrl.Result, error) {
	if !slices.ContainsFunc(flatten(err), lostRace) {
		p.races.Forget(object)
		return Result(err, recheck)
	}
	return result(err, recheck, p.races.When(object))
}

// lostRace reports whether there is nothing to say, and no better time to look again than soon.
func lostRace(e *Error) bool { return e.Kind == Quiet && e.After == 0 }

// result is Result with the pause after a conflict.
func result(err error, recheck, race time.Duration) (ctrl.Result, error) {
	var retry, final error
	for _, e := range flatten(err) {
		switch e.Kind {
		case Invalid:
			final = errors.Join(final, e)
		case Waiting:
			recheck = sooner(recheck, e.After)
		case Transient, Blocked:
			if e.After > 0 {
				recheck = sooner(recheck, e.After)
				continue
			}
			retry = errors.Join(retry, e)
		case Quiet:
			if lostRace(e) {
				recheck = sooner(recheck, race)
				continue
			}
			recheck = sooner(recheck, e.After)
		}
	}
	switch {
	case retry != nil:
		return ctrl.Result{}, retry
	case recheck > 0:
		return ctrl.Result{RequeueAfter: recheck}, nil
	case final != nil:
		return ctrl.Result{}, reconcile.TerminalError(final)
	default:
		return ctrl.Result{}, nil
	}
}

// flatten lists the errors of a reconcile, those without a policy classified. Each counts,
// wherever they were joined; what is behind one with a policy is its cause.
func flatten(err error) []*Error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if _, ok := e.(*Error); ok { //nolint:errorlint // the chain is walked here
			break
		}
		joined, ok := e.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		var all []*Error
		for _, part := range joined.Unwrap() {
			all = append(all, flatten(part)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []*Error{Classify("request", err)}
}

func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// namespaceIsGoing tells an object that cannot be created because its namespace is
// being deleted, or is gone.
func namespaceIsGoing(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}

// isReplaced reports whether a request named the UID of an object, and another one has its name
// by now. Where there is none, the API server answers with a conflict.
func isReplaced(err error) bool {
	return slices.ContainsFunc(causes(err), func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// causes are what an answer of the API server says field by field, if it does.
func causes(err error) []metav1.StatusCause {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// Answer is what the API server said, in the words that a user can act on: field and
// message of each cause of an Invalid answer, otherwise its text.
func Answer(err error) string {
	return AnswerNaming(err, func(field string) string { return field })
}

// AnswerNaming is Answer with the fields called otherwise: what is refused may be made from
// an object whose user knows other fields.
func AnswerNaming(err error, name func(field string) string) string {
	all := causes(err)
	if len(all) == 0 {
		return text(err)
	}
	var parts []string
	for _, cause := range all {
		parts = append(parts, causeText(cause, name))
	}
	return strings.Join(parts, "; ")
}

func causeText(cause metav1.StatusCause, name func(field string) string) string {
	said := cause.Message
	if cause.Type == metav1.CauseTypeForbidden {
		// What the API server does not let change it shows below as a comparison of Go values.
		said, _, _ = strings.Cut(said, "\n")
	}
	said = oneLine(said)
	if cause.Field == "" || cause.Field == "<nil>" {
		return said
	}
	return name(cause.Field) + ": " + said
}

// oneLine has a message of several lines in one, as conditions have it. A webhook may quote what it refuses: what of that is a
// secret is known only as long as it has its lines.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\n\r\t") {
		return text
	}
	return strings.Join(strings.Fields(redact.Clean(text)), " ")
}

func text(err error) string {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return oneLine(status.Status().Message)
	}
	return oneLine(err.Error())
}

// reasonOf returns the machine-readable reason of an answer, which unlike its text
// is the same at every retry.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "not at all"
}
