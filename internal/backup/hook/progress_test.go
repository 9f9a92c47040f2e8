package hook_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
)

var (
	start   = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	two     = []hook.Target{{Pod: "a", UID: "1"}, {Pod: "b", UID: "2"}}
	well    = hook.Ended{Phase: slipwayv1alpha1.HookSucceeded}
	badly   = hook.Ended{Phase: slipwayv1alpha1.HookFailed, Reason: slipwayv1alpha1.ReasonHookFailed, Message: "exit code 1"}
	refused = hook.Ended{Phase: slipwayv1alpha1.HookFailed, Reason: slipwayv1alpha1.ReasonHookNotAllowed, Message: "no"}
	gone    = hook.Ended{Phase: slipwayv1alpha1.HookSkipped, Reason: slipwayv1alpha1.ReasonPodGone, Message: "gone"}
)

// due says in words what a state asks for.
func due(state *slipwayv1alpha1.BackupRunHooks, now time.Time) string {
	calls, wait := hook.Due(state, now)
	words := string(state.Phase) + ":"
	for _, c := range calls {
		words += fmt.Sprintf(" %s in %s (%d)", map[bool]string{true: "before", false: "after"}[c.Before], c.Pod, c.Try)
	}
	if wait > 0 {
		words += fmt.Sprintf(" wait %v", wait)
	}
	return words
}

// end notes the same end for everything that is due.
func end(state *slipwayv1alpha1.BackupRunHooks, ended hook.Ended, now time.Time) {
	calls, _ := hook.Due(state, now)
	for _, c := range calls {
		hook.Note(state, c, ended, now)
	}
}

func TestHowHooksFollowOneAnother(t *testing.T) {
	noAfter := func(h *slipwayv1alpha1.BackupHooks) { h.After = nil }
	noBefore := func(h *slipwayv1alpha1.BackupHooks) { h.Before = nil }
	goOn := func(h *slipwayv1alpha1.BackupHooks) { h.Before.OnError = slipwayv1alpha1.HookContinue }
	tests := map[string]struct {
		change []func(*slipwayv1alpha1.BackupHooks)
		do     []any // hook.Ended: everything due ends so; a bool: the source is released, captured or not; a Duration goes by
		want   []string
		before string // why before failed
		after  string // why after failed
		quiet  bool
	}{
		"all is well": {
			do:    []any{well, well, true, well},
			want:  []string{"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)", "Done:"},
			quiet: true,
		},
		"before fails in the first pod, which alone is released": {
			do:     []any{badly, false, well},
			want:   []string{"Before: before in a (1)", "Before:", "After: after in a (1)", "Done:"},
			before: slipwayv1alpha1.ReasonHookFailed, quiet: true,
		},
		"before fails in the second pod, and both are released": {
			do:     []any{well, badly, false, well},
			want:   []string{"Before: before in a (1)", "Before: before in b (1)", "Before:", "After: after in a (1) after in b (1)", "Done:"},
			before: slipwayv1alpha1.ReasonHookFailed, quiet: true,
		},
		"before fails, and that does not matter": {
			change: []func(*slipwayv1alpha1.BackupHooks){goOn},
			do:     []any{badly, well, true, well},
			want:   []string{"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)", "Done:"},
		},
		"before is not allowed, which matters in any case": {
			change: []func(*slipwayv1alpha1.BackupHooks){goOn},
			do:     []any{refused, false, well},
			want:   []string{"Before: before in a (1)", "Before:", "After: after in a (1)", "Done:"},
			before: slipwayv1alpha1.ReasonHookNotAllowed, quiet: true,
		},
		"the pod goes while before runs": {
			do:     []any{gone, false, gone},
			want:   []string{"Before: before in a (1)", "Before:", "After: after in a (1)", "Done:"},
			before: slipwayv1alpha1.ReasonPodGone, quiet: true,
		},
		"the run ends while before runs": {
			do:     []any{false, well},
			want:   []string{"Before: before in a (1)", "After: after in a (1)", "Done:"},
			before: slipwayv1alpha1.ReasonHookInterrupted, quiet: true,
		},
		"the run ends while it is held": {
			do:    []any{well, well, false, well},
			want:  []string{"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)", "Done:"},
			quiet: true,
		},
		"a capture while before runs is none": {
			do:     []any{true, well},
			want:   []string{"Before: before in a (1)", "After: after in a (1)", "Done:"},
			before: slipwayv1alpha1.ReasonHookInterrupted, quiet: true,
		},
		"after fails, and is tried again": {
			do: []any{well, well, true, badly, 5 * time.Second, well},
			want: []string{
				"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)",
				"After: wait 5s", "After: after in a (2) after in b (2)", "Done:",
			},
			quiet: true,
		},
		"after fails for good": {
			do: []any{well, well, true, badly, 5 * time.Second, badly, 10 * time.Second, badly, 20 * time.Second, badly, 40 * time.Second, badly},
			want: []string{
				"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)",
				"After: wait 5s", "After: after in a (2) after in b (2)", "After: wait 10s", "After: after in a (3) after in b (3)",
				"After: wait 20s", "After: after in a (4) after in b (4)", "After: wait 40s", "After: after in a (5) after in b (5)", "Done:",
			},
			after: slipwayv1alpha1.ReasonHookFailed, quiet: true,
		},
		"the pods go before after runs": {
			do:    []any{well, well, true, gone},
			want:  []string{"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)", "Done:"},
			quiet: true,
		},
		"no after hook": {
			change: []func(*slipwayv1alpha1.BackupHooks){noAfter},
			do:     []any{well, well, true},
			want:   []string{"Before: before in a (1)", "Before: before in b (1)", "Held:", "Done:"},
			quiet:  true,
		},
		"no before hook: after runs in all pods, and nothing was held": {
			change: []func(*slipwayv1alpha1.BackupHooks){noBefore},
			do:     []any{true, well},
			want:   []string{"Held:", "After: after in a (1) after in b (1)", "Done:"},
		},
		"a release twice": {
			do:    []any{well, well, true, false, well},
			want:  []string{"Before: before in a (1)", "Before: before in b (1)", "Held:", "After: after in a (1) after in b (1)", "After: after in a (1) after in b (1)", "Done:"},
			quiet: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := start
			state := hook.Begin(nil, "data", 1, spec(tc.change...), two, now)
			got := []string{due(state, now)}
			for _, step := range tc.do {
				switch step := step.(type) {
				case hook.Ended:
					end(state, step, now)
				case bool:
					hook.Release(state, step, step && hook.Quiet(state), now)
				case time.Duration:
					now = now.Add(step)
				}
				got = append(got, due(state, now))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			reason := func(trouble any, of string) {
				if trouble != of {
					t.Errorf("the reason is %q, want %q", trouble, of)
				}
			}
			before, after := "", ""
			if trouble := hook.BeforeTrouble(state); trouble != nil {
				before = trouble.Reason
			}
			if trouble := hook.AfterTrouble(state); trouble != nil {
				after = trouble.Reason
			}
			reason(before, tc.before)
			reason(after, tc.after)
			if hook.Quiet(state) != tc.quiet {
				t.Errorf("quiet is %v", hook.Quiet(state))
			}
		})
	}
}

func TestHooksThatBeginAnewInAnAttemptAreOthers(t *testing.T) {
	first := hook.Begin(nil, "data", 1, spec(), two, start)
	calls, _ := hook.Due(first, start)
	again := hook.Begin(first, "data", 1, spec(), two, start)
	if again.Round != 2 || hook.Asks(again, calls[0]) || !hook.Asks(first, calls[0]) {
		t.Errorf("the second round is %+v", again)
	}
	if next := hook.Begin(again, "data", 2, spec(), two, start); next.Round != 1 || hook.Asks(next, calls[0]) {
		t.Errorf("the next attempt is %+v", next)
	}
	hook.Note(again, calls[0], badly, start)
	if hook.BeforeTrouble(again) != nil {
		t.Error("the end of a command of the first round counts in the second")
	}
}

// Whatever happens in whatever order: a pod in which before was begun is released, by an after that ended well, or that was
// tried as often as it is, or because the pod has gone. A pod in which it was not begun is left alone. After never begins
// while before may still run, as far as the state says. And it ends.
func TestWhatIsHeldIsReleased(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		hooks := spec()
		if random.IntN(3) == 0 {
			hooks.Before.OnError = slipwayv1alpha1.HookContinue
		}
		var targets []hook.Target
		for i := range 1 + random.IntN(4) {
			targets = append(targets, hook.Target{Pod: fmt.Sprint("pod-", i), UID: "1"})
		}
		now := start
		state := hook.Begin(nil, "data", 1, hooks, targets, now)
		begun, released := map[string]bool{}, map[string]int{}
		for step := 0; hook.Pending(state); step++ {
			if step > 500 {
				t.Fatalf("seed %d does not end: %+v", seed, state)
			}
			calls, wait := hook.Due(state, now)
			for _, p := range state.Pods {
				begun[p.Pod] = p.Before != nil // from here on the command may run, whether or not anybody hears of its end
			}
			for _, c := range calls {
				if !c.Before && state.Phase != slipwayv1alpha1.HooksAfter || c.Before && state.Phase != slipwayv1alpha1.HooksBefore {
					t.Fatalf("seed %d: %+v is due in %s", seed, c, state.Phase)
				}
				if random.IntN(3) == 0 {
					continue // a crash: the result is lost
				}
				ended := []hook.Ended{well, badly, gone, refused}[random.IntN(4)]
				if !c.Before {
					released[c.Pod]++
					if ended.Phase != slipwayv1alpha1.HookFailed {
						released[c.Pod] = hook.MaxTries
					}
				}
				hook.Note(state, c, ended, now)
			}
			if random.IntN(4) == 0 || step > 50 {
				hook.Release(state, random.IntN(2) == 0, random.IntN(2) == 0, now)
			}
			now = now.Add(wait + time.Duration(random.IntN(3))*time.Second)
		}
		for _, target := range targets {
			if begun[target.Pod] && released[target.Pod] < hook.MaxTries {
				t.Fatalf("seed %d: %s was begun, and released %d times: %+v", seed, target.Pod, released[target.Pod], state)
			}
		}
		for _, p := range state.Pods {
			if p.Before == nil && released[p.Pod] > 0 {
				t.Fatalf("seed %d: %s was released, and never begun", seed, p.Pod)
			}
		}
		if state.Quiesced && (!state.Captured || hook.BeforeTrouble(state) != nil) {
			t.Fatalf("seed %d: quiesced, and %+v", seed, state)
		}
	}
}

func TestAVolumeWasHeldOnlyWhenEveryWriterWas(t *testing.T) {
	held := hook.Begin(nil, "data-db-0", 1, spec(), []hook.Target{{Pod: "db-0", UID: "uid-0"}}, start)
	end(held, well, start)
	failed := hook.Begin(nil, "data-db-0", 1, spec(func(h *slipwayv1alpha1.BackupHooks) { h.Before.OnError = slipwayv1alpha1.HookContinue }),
		[]hook.Target{{Pod: "db-0", UID: "uid-0"}}, start)
	end(failed, badly, start)
	tests := map[string]struct {
		state *slipwayv1alpha1.BackupRunHooks
		pods  []corev1.Pod
		want  bool
	}{
		"the same pod":                  {held, []corev1.Pod{pod(permits)}, true},
		"the pod has gone":              {held, nil, true},
		"before had failed in it":       {failed, []corev1.Pod{pod(permits)}, false},
		"another pod of the name":       {held, []corev1.Pod{pod(permits, func(p *corev1.Pod) { p.UID = "other" })}, false},
		"a pod that came meanwhile":     {held, []corev1.Pod{pod(permits), pod("", named("new"))}, false},
		"one that has not started":      {held, []corev1.Pod{pod(permits), pod("", named("new"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}, false},
		"one that came and only reads":  {held, []corev1.Pod{pod(permits), pod("", named("new"), func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true })}, true},
		"one that has ended by now":     {held, []corev1.Pod{pod(permits), pod("", named("new"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, true},
		"one of another volume came":    {held, []corev1.Pod{pod(permits), pod("", named("new"), func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "x" })}, true},
		"the pod of the run's own Job":  {held, []corev1.Pod{pod(permits), pod("", named("run"), owned("Job", true), mounts(corev1.VolumeMount{Name: "data", ReadOnly: true}))}, true},
		"one that looks like that came": {held, []corev1.Pod{pod(permits), pod("", named("run"), owned("Job", true), labelled(slipwayv1alpha1.LabelBackupRun))}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hook.AllHeld(tc.state, tc.pods); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheTimeOfAHookIsBounded(t *testing.T) {
	for text, want := range map[slipwayv1alpha1.Duration]time.Duration{"": time.Minute, "2s": 2 * time.Second, "20h": 15 * time.Minute, "words": time.Minute, "-1s": time.Minute} {
		if got := hook.Timeout(&slipwayv1alpha1.BackupHook{Timeout: text}); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}
