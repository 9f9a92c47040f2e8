package mover

import (
	"fmt"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

const (
	// PendingLimit is how long a pod, or what is waited for, may take to be there. A pod that cannot start holds its volumes,
	// and a workload may need them.
	PendingLimit = 10 * time.Minute
	// DefaultDeadline is how long a run or a restore may take where the spec says nothing.
	DefaultDeadline = 12 * time.Hour
)

// RunProgress is how a run or a restore has gone so far, as its status has it.
type RunProgress struct {
	// Phase, Reason and Message are those of the status.
	Phase           slipwayv1alpha1.BackupPhase
	Reason, Message string
	// ReasonSince is since when Reason is this one. Zero: nobody knows.
	ReasonSince time.Time
	// Attempt is the present one, from 1.
	Attempt int32
	// Began is when the first attempt began, or zero, and AttemptBegan when the present one began or will, or zero.
	Began, AttemptBegan time.Time
	// Created is when the object was made.
	Created time.Time
	// Allowed is how long it may take. Zero: DefaultDeadline.
	Allowed time.Duration
}

// Deadline is when it has to be done.
func (p RunProgress) Deadline() time.Time {
	began, allowed := p.Began, p.Allowed
	if began.IsZero() {
		began = p.Created
	}
	if allowed <= 0 {
		allowed = DefaultDeadline
	}
	return began.Add(allowed)
}

// Next is what follows.
type Next struct {
	Phase           slipwayv1alpha1.BackupPhase
	Reason, Message string
	// Attempt is the present one, and Begins when it began, or will.
	Attempt int32
	Begins  time.Time
	// Recheck is when to look again though nothing changes. Zero: never.
	Recheck time.Duration
}

// Ended reports whether nothing follows any more.
func (n Next) Ended() bool {
	return n.Phase == slipwayv1alpha1.BackupCompleted || n.Phase == slipwayv1alpha1.BackupFailed
}

// stay is that everything goes on as it is.
func (p RunProgress) stay(now time.Time) Next {
	begins := p.AttemptBegan
	if begins.IsZero() {
		begins = now
	}
	return Next{
		Phase: p.Phase, Reason: p.Reason, Message: p.Message, Attempt: p.Attempt, Begins: begins, Recheck: max(0, p.Deadline().Sub(now)),
	}
}

// Fail ends it.
func (p RunProgress) Fail(reason, message string, now time.Time) Next {
	next := p.stay(now)
	next.Phase, next.Reason, next.Message, next.Recheck = slipwayv1alpha1.BackupFailed, reason, message, 0
	return next
}

// FailAttempt ends the attempt, and all of it when no other attempt is worth while.
func (p RunProgress) FailAttempt(trouble *health.Trouble, now time.Time) Next {
	begins := now.Add(RetryAfter(p.Attempt))
	if p.Attempt >= MaxAttempts || !WorthRetry(trouble.Reason) || !begins.Before(p.Deadline()) {
		return p.Fail(trouble.Reason, trouble.Message, now)
	}
	return Next{
		Phase: slipwayv1alpha1.BackupPending, Reason: slipwayv1alpha1.ReasonRetrying,
		Message: fmt.Sprintf(
			"attempt %d of %d failed (%s: %s); another one follows", p.Attempt, MaxAttempts, trouble.Reason, trouble.Message,
		),
		Attempt: p.Attempt + 1, Begins: begins, Recheck: begins.Sub(now),
	}
}

// Wait says what it waits for. Where nobody mends that within PendingLimit, it fails. A turn in a queue comes by itself, and
// so does the time of another attempt. Who writes to the repository, or to the target, may do so until the deadline.
func (p RunProgress) Wait(trouble *health.Trouble, now time.Time) Next {
	next := p.stay(now)
	if next.Phase != slipwayv1alpha1.BackupRunning {
		next.Phase = slipwayv1alpha1.BackupPending
	}
	if trouble == nil {
		return next
	}
	switch trouble.Reason {
	case slipwayv1alpha1.ReasonRetrying:
		return next
	case slipwayv1alpha1.ReasonQueued:
		next.Reason, next.Message = trouble.Reason, trouble.Message
		return next
	}
	left := p.Deadline().Sub(now)
	switch trouble.Reason {
	case slipwayv1alpha1.ReasonRepositoryBusy, slipwayv1alpha1.ReasonTargetBusy:
	default:
		left = min(left, p.since(trouble.Reason, now).Add(PendingLimit).Sub(now))
	}
	if left <= 0 {
		return p.Fail(trouble.Reason, trouble.Message, now)
	}
	next.Reason, next.Message, next.Recheck = trouble.Reason, trouble.Message, min(left, next.Recheck)
	return next
}

// since is since when it waits for a reason. Time in a queue, or with another reason, does not count. An older operator did not note
// it: then all the time counts.
func (p RunProgress) since(reason string, now time.Time) time.Time {
	switch {
	case p.Reason != reason:
		return now
	case !p.ReasonSince.IsZero():
		return p.ReasonSince
	case !p.AttemptBegan.IsZero():
		return p.AttemptBegan
	default:
		return p.Created
	}
}

// Retry says that a request failed that is sent again. That tells nothing about the Job, which may go on, or may have ended well.
// So only the deadline ends it.
func (p RunProgress) Retry(trouble *health.Trouble, now time.Time) Next {
	left := p.Deadline().Sub(now)
	if left <= 0 {
		return p.Fail(trouble.Reason, trouble.Message, now)
	}
	next := p.Hold(trouble, now)
	next.Recheck = left
	return next
}

// Follow says what follows from what a Job has come to. ok reports whether it does: a Job that has succeeded is for the caller to
// judge. does says in a sentence what each step does.
func (p RunProgress) Follow(seen Observation, does map[Step]string, now time.Time) (next Next, ok bool) {
	next = p.stay(now)
	switch {
	case seen.State == Succeeded:
		return next, false
	case seen.State == Failed:
		return p.FailAttempt(seen.Trouble, now), true
	case !now.Before(p.Deadline()):
		return p.Fail(slipwayv1alpha1.ReasonDeadlineExceeded, "it was not done within spec.deadline", now), true
	}
	next.Phase, next.Reason, next.Message = slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring, does[seen.Step]
	if seen.Step == StepVerify {
		next.Reason = slipwayv1alpha1.ReasonVerifying
	}
	if seen.State == Working {
		if seen.Trouble != nil {
			next.Reason, next.Message = seen.Trouble.Reason, seen.Trouble.Message
		}
		return next, true
	}
	next.Message = "the pod starts"
	late, left := seen.Late(now)
	if late != nil {
		return p.Fail(late.Reason, late.Message, now), true
	}
	if seen.Trouble != nil {
		next.Reason, next.Message = seen.Trouble.Reason, seen.Trouble.Message
	}
	next.Recheck = min(left, next.Recheck)
	return next, true
}
