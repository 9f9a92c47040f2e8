package hook

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/text"
)

// The states follow one another: Before, Held, After, Done. Each is written to status before what it says is done. So
// whoever begins anew, after a crash at any point, finds in the status all that is pending, and does it again rather than not.

const (
	// DefaultTimeout is how long a command may take where the spec says nothing.
	DefaultTimeout = time.Minute
	// MaxTimeout is the longest that a command may take.
	MaxTimeout = 15 * time.Minute
	// MaxTries is how often an after hook is tried.
	MaxTries = 5
	// retryAfter is the pause after the first try. Each further one is twice as long.
	retryAfter = 5 * time.Second
)

// Call is a command that is due in a pod. It is comparable: two calls that are equal are the same one.
type Call struct {
	// Claim, Attempt and Round say which hooks it is of.
	Claim   string
	Attempt int32
	Round   int32
	// Before tells the before hook from the after hook.
	Before bool
	// Pod and UID are the pod.
	Pod string
	UID types.UID
	// Try counts from 1.
	Try int32
}

// Field is the field of the hook, for messages.
func (c Call) Field() string {
	if c.Before {
		return FieldBefore
	}
	return FieldAfter
}

// Ended is how a call has ended.
type Ended struct {
	// Phase is HookSucceeded, HookFailed or HookSkipped.
	Phase slipwayv1alpha1.HookResultPhase
	// Reason and Message say why it failed.
	Reason, Message string
	// Final reports whether another try cannot end otherwise.
	Final bool
}

// Command is the hook of a call.
func Command(state *slipwayv1alpha1.BackupRunHooks, before bool) *slipwayv1alpha1.BackupHook {
	if !before {
		return state.After
	}
	if state.Before == nil {
		return nil
	}
	return &state.Before.BackupHook
}

// Timeout is how long a hook may take.
func Timeout(hook *slipwayv1alpha1.BackupHook) time.Duration {
	allowed, err := time.ParseDuration(string(hook.Timeout))
	if err != nil || allowed <= 0 {
		return DefaultTimeout
	}
	return min(allowed, MaxTimeout)
}

// Begin is the state in which the hooks of a claim begin in some pods. The first before hook is due once it is written.
func Begin(
	previous *slipwayv1alpha1.BackupRunHooks, claim string, attempt int32, hooks *slipwayv1alpha1.BackupHooks, targets []Target,
	now time.Time,
) *slipwayv1alpha1.BackupRunHooks {
	state := &slipwayv1alpha1.BackupRunHooks{
		Claim: claim, Attempt: attempt, Round: 1, Phase: slipwayv1alpha1.HooksBefore,
		Before: hooks.Before.DeepCopy(), After: hooks.After.DeepCopy(),
	}
	if IsOf(previous, claim, attempt) {
		state.Round = previous.Round + 1
	}
	for _, target := range targets {
		state.Pods = append(state.Pods, slipwayv1alpha1.BackupRunHookPod{Pod: target.Pod, UID: target.UID})
	}
	goOn(state, now)
	return state
}

// goOn begins the next before hook, or holds when there is none.
func goOn(state *slipwayv1alpha1.BackupRunHooks, now time.Time) {
	if state.Before == nil {
		state.Phase = slipwayv1alpha1.HooksHeld
		return
	}
	for i := range state.Pods {
		if state.Pods[i].Before == nil {
			state.Pods[i].Before = &slipwayv1alpha1.BackupHookResult{Phase: slipwayv1alpha1.HookRunning, Time: at(now)}
			return
		}
	}
	state.Phase = slipwayv1alpha1.HooksHeld
}

// IsOf reports whether a state is that of a claim and an attempt.
func IsOf(state *slipwayv1alpha1.BackupRunHooks, claim string, attempt int32) bool {
	return state != nil && state.Claim == claim && state.Attempt == attempt
}

// Pending reports whether hooks are still to run.
func Pending(state *slipwayv1alpha1.BackupRunHooks) bool {
	return state != nil && state.Phase != slipwayv1alpha1.HooksDone
}

// Due are the calls that a state asks for, and when to look again for those whose time has not come.
func Due(state *slipwayv1alpha1.BackupRunHooks, now time.Time) (calls []Call, wait time.Duration) {
	if state == nil {
		return nil, 0
	}
	for i := range state.Pods {
		pod := &state.Pods[i]
		call := Call{Claim: state.Claim, Attempt: state.Attempt, Round: state.Round, Pod: pod.Pod, UID: pod.UID}
		switch {
		case state.Phase == slipwayv1alpha1.HooksBefore && pod.Before != nil && pod.Before.Phase == slipwayv1alpha1.HookRunning:
			call.Before, call.Try = true, 1
		case state.Phase == slipwayv1alpha1.HooksAfter && afterPending(state, pod):
			left := time.Duration(0)
			if pod.After != nil {
				call.Try = pod.After.Tries
				left = pod.After.Time.Add(retryAfter << max(0, call.Try-1)).Sub(now)
			}
			if left > 0 {
				wait = sooner(wait, left)
				continue
			}
			call.Try++
		default:
			continue
		}
		calls = append(calls, call)
	}
	return calls, wait
}

func sooner(a, b time.Duration) time.Duration {
	if a <= 0 {
		return b
	}
	return min(a, b)
}

// afterPending reports whether the after hook of a pod has not ended for good. Nothing is pending in a pod in which before was never begun.
func afterPending(state *slipwayv1alpha1.BackupRunHooks, pod *slipwayv1alpha1.BackupRunHookPod) bool {
	if state.After == nil || state.Before != nil && pod.Before == nil {
		return false
	}
	return pod.After == nil || pod.After.Phase == slipwayv1alpha1.HookRetrying
}

// Asks reports whether a state still asks for a call, whenever that is due.
func Asks(state *slipwayv1alpha1.BackupRunHooks, call Call) bool {
	if state == nil {
		return false
	}
	latest := time.Time{}
	for i := range state.Pods {
		if after := state.Pods[i].After; after != nil && after.Time.After(latest) {
			latest = after.Time.Time
		}
	}
	calls, _ := Due(state, latest.Add(time.Hour)) // longer than any pause
	return slices.Contains(calls, call)
}

// Note writes into a state how a call has ended. What the state does not ask for changes nothing.
func Note(state *slipwayv1alpha1.BackupRunHooks, call Call, ended Ended, now time.Time) {
	if !Asks(state, call) {
		return
	}
	for i := range state.Pods {
		pod := &state.Pods[i]
		if pod.Pod != call.Pod {
			continue
		}
		result := &slipwayv1alpha1.BackupHookResult{
			Phase: ended.Phase, Reason: ended.Reason, Message: text.Cut(ended.Message, maxMessage), Time: at(now), Tries: call.Try,
		}
		if call.Before {
			pod.Before = result
			if result.Phase == slipwayv1alpha1.HookSucceeded || continues(state) {
				goOn(state, now)
			}
			return
		}
		if ended.Phase == slipwayv1alpha1.HookFailed && !ended.Final && call.Try < MaxTries {
			result.Phase = slipwayv1alpha1.HookRetrying
		}
		pod.After = result
	}
	finish(state)
}

// continues reports whether a before hook that fails does not matter. One that is not allowed does.
func continues(state *slipwayv1alpha1.BackupRunHooks) bool {
	return state.Before != nil && state.Before.OnError == slipwayv1alpha1.HookContinue && BeforeTrouble(state) == nil
}

// BeforeTrouble is why a before hook failed, where that fails the run, or nil.
func BeforeTrouble(state *slipwayv1alpha1.BackupRunHooks) *health.Trouble {
	if state == nil || state.Before == nil {
		return nil
	}
	for i := range state.Pods {
		before := state.Pods[i].Before
		if before == nil || before.Phase != slipwayv1alpha1.HookFailed && before.Phase != slipwayv1alpha1.HookSkipped {
			continue
		}
		if state.Before.OnError != slipwayv1alpha1.HookContinue || before.Reason == slipwayv1alpha1.ReasonHookNotAllowed {
			return &health.Trouble{Reason: before.Reason, Message: before.Message}
		}
	}
	return nil
}

// Release begins the after hooks. captured reports whether the volume has been read, and quiesced whether it was held all the time.
// What is being released stays as it is.
func Release(state *slipwayv1alpha1.BackupRunHooks, captured, quiesced bool, now time.Time) {
	if state == nil || state.Phase != slipwayv1alpha1.HooksBefore && state.Phase != slipwayv1alpha1.HooksHeld {
		return
	}
	state.Captured = captured && state.Phase == slipwayv1alpha1.HooksHeld
	state.Quiesced = state.Captured && quiesced
	state.Phase = slipwayv1alpha1.HooksAfter
	for i := range state.Pods {
		if before := state.Pods[i].Before; before != nil && before.Phase == slipwayv1alpha1.HookRunning {
			*before = slipwayv1alpha1.BackupHookResult{
				Phase: slipwayv1alpha1.HookFailed, Reason: slipwayv1alpha1.ReasonHookInterrupted,
				Message: "the attempt ended before the command did", Time: at(now),
			}
		}
	}
	finish(state)
}

// finish is Done once nothing is pending in any pod.
func finish(state *slipwayv1alpha1.BackupRunHooks) {
	if state.Phase != slipwayv1alpha1.HooksAfter {
		return
	}
	for i := range state.Pods {
		if afterPending(state, &state.Pods[i]) {
			return
		}
	}
	state.Phase = slipwayv1alpha1.HooksDone
}

// Quiet reports whether the copy that is made under a state is of a volume that is held. It is true too while the attempt has ended
// without one: nothing is said of a copy that there is not.
func Quiet(state *slipwayv1alpha1.BackupRunHooks) bool {
	switch {
	case state == nil || state.Before == nil:
		return false
	case state.Captured:
		return state.Quiesced
	case state.Phase == slipwayv1alpha1.HooksAfter, state.Phase == slipwayv1alpha1.HooksDone:
		return true
	}
	return !slices.ContainsFunc(state.Pods, func(pod slipwayv1alpha1.BackupRunHookPod) bool {
		return pod.Before != nil && pod.Before.Phase != slipwayv1alpha1.HookRunning && pod.Before.Phase != slipwayv1alpha1.HookSucceeded
	})
}

// AfterTrouble is why an after hook did not run in a pod, or nil.
func AfterTrouble(state *slipwayv1alpha1.BackupRunHooks) *health.Trouble {
	if state == nil {
		return nil
	}
	for i := range state.Pods {
		if after := state.Pods[i].After; after != nil && after.Phase == slipwayv1alpha1.HookFailed {
			return &health.Trouble{Reason: after.Reason, Message: fmt.Sprintf(
				"the hook spec.hooks.after of the Backup did not succeed, so the workload may still be held (%s)", after.Message)}
		}
	}
	return nil
}

// at is a time as status has it, in whole seconds.
func at(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }
