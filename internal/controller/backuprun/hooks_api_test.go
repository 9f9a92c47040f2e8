//go:build apitest

package backuprun_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/podexec"
	"github.com/slipway-dev/slipway/internal/controller/backuprun"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// hooksLeft is how many runs have gone before their after hook had run, of all tests of this process.
func hooksLeft(t *testing.T) float64 {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == backuprun.HooksLeft.Name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no %s", backuprun.HooksLeft.Name)
	return 0
}

var errBroken = errors.New("the connection broke")

// containers plays the containers of all pods: it notes what runs in them, and answers as a test says.
type containers struct {
	mu    sync.Mutex
	ran   []string
	plays map[string]func(ctx context.Context) error
}

func (c *containers) Exec(ctx context.Context, namespace, pod, container string, command []string) error {
	c.mu.Lock()
	c.ran = append(c.ran, strings.Join(append([]string{namespace, pod, container}, command...), " "))
	play := c.plays[namespace+" "+pod+" "+command[0]]
	c.mu.Unlock()
	if play == nil {
		return nil
	}
	return play(ctx)
}

// play says how a command ends in a pod of a test.
func (c *containers) play(f *fixture, pod, command string, play func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plays == nil {
		c.plays = map[string]func(context.Context) error{}
	}
	c.plays[f.namespace+" "+pod+" "+command] = play
}

// in is what has run in the namespace of a test, without its name.
func (c *containers) in(f *fixture) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ran []string
	for _, line := range c.ran {
		if rest, ok := strings.CutPrefix(line, f.namespace+" "); ok {
			ran = append(ran, rest)
		}
	}
	return ran
}

// exits returns an exit code.
func exits(code int) func(context.Context) error {
	return func(context.Context) error { return &podexec.ExitError{Code: code} }
}

// until waits for a gate, or the end of the operator.
func until(gate chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func startWithHooks(t *testing.T, exec *containers) *environment.Operator {
	t.Helper()
	return env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
		options.BackupHooks, options.BackupExec = true, exec
	})
}

// withHooks asks for both hooks.
func withHooks(b *slipwayv1alpha1.Backup) {
	b.Spec.Hooks = &slipwayv1alpha1.BackupHooks{
		Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: slipwayv1alpha1.BackupHook{Command: []string{"/freeze", "now"}}},
		After:  &slipwayv1alpha1.BackupHook{Command: []string{"/thaw"}},
	}
}

const allowed = `[{"container":"db","command":["/freeze","now"]},{"container":"db","command":["/thaw"]}]`

// workload makes a running pod that mounts the volume.
func (f *fixture) workload(name, annotation string) *corev1.Pod {
	f.Helper()
	return f.workloadOf(name, annotation, "shop-data")
}

// workloadOf makes a running pod that mounts a claim.
func (f *fixture) workloadOf(name, annotation, claim string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Annotations: map[string]string{slipwayv1alpha1.AnnotationBackupHooks: annotation}},
		Spec: corev1.PodSpec{
			NodeName:   "node-7",
			Containers: []corev1.Container{{Name: "db", Image: "db:1", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	if annotation == "" {
		pod.Annotations = nil
	}
	f.create(pod)
	pod.Status.Phase = corev1.PodRunning
	if err := env.Client.Status().Update(f.Context(), pod); err != nil {
		f.Fatal(err)
	}
	return pod
}

// deletePod deletes a pod at once.
func (f *fixture) deletePod(pod *corev1.Pod) {
	f.Helper()
	if err := env.Client.Delete(f.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		f.Fatal(err)
	}
}

// hooks waits until the hooks of a run are in a phase.
func (f *fixture) hooks(name string, phase slipwayv1alpha1.HookPhase) *slipwayv1alpha1.BackupRun {
	f.Helper()
	run := &slipwayv1alpha1.BackupRun{}
	environment.Eventually(f, func() error {
		if err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, run); err != nil {
			return err
		}
		if run.Status.Hooks == nil || run.Status.Hooks.Phase != phase {
			return fmt.Errorf("the hooks are %+v, want %s", run.Status.Hooks, phase)
		}
		return nil
	})
	return run
}

// deleteRun deletes a run, unless it has gone, and what was made of it.
func (f *fixture) deleteRun(name string) {
	f.Helper()
	run := &slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}}
	if err := client.IgnoreNotFound(env.Client.Delete(f.Context(), run, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) runGone(name string) {
	f.Helper()
	environment.Eventually(f, func() error {
		err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, &slipwayv1alpha1.BackupRun{})
		if err == nil {
			return errStillThere
		}
		return client.IgnoreNotFound(err)
	})
}

// ran waits until commands have run, these and no others.
func (f *fixture) ran(exec *containers, want ...string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if got := exec.in(f); !slices.Equal(got, want) {
			return fmt.Errorf("ran %q, want %q", got, want)
		}
		return nil
	})
}

func TestAVolumeIsHeldWhileItIsReadAndNoLonger(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	f := newFixture(t, withHooks)
	// What is pending is stored, and the run is held, before a command is sent.
	exec.play(f, "db-0", "/freeze", func(ctx context.Context) error {
		run := &slipwayv1alpha1.BackupRun{}
		if err := env.Client.Get(ctx, types.NamespacedName{Namespace: f.namespace, Name: "shop-now"}, run); err != nil {
			return err
		}
		if h := run.Status.Hooks; h == nil || h.Phase != slipwayv1alpha1.HooksBefore || h.After == nil || len(run.Finalizers) == 0 {
			t.Errorf("the command is sent, and the hooks are %+v, the finalizers %v", h, run.Finalizers)
		}
		return nil
	})
	f.workload("db-1", allowed)
	f.workload("db-0", allowed)
	f.run("shop-now")
	job := f.job("shop-now-0-1")
	f.ran(exec, "db-0 db /freeze now", "db-1 db /freeze now")
	run := f.hooks("shop-now", slipwayv1alpha1.HooksHeld)
	if !slices.Contains(run.Finalizers, "slipway.dev/backup-hooks") {
		t.Error("nothing keeps the run from going")
	}
	// It is being verified: nobody need wait for that.
	if err := f.cluster.Work(t.Context(), job, mover.StepVerify); err != nil {
		t.Fatal(err)
	}
	run = f.hooks("shop-now", slipwayv1alpha1.HooksDone)
	if run.Ended() || !run.Status.Hooks.Captured || !run.Status.Hooks.Quiesced {
		t.Errorf("the status is %+v", run.Status)
	}
	got := exec.in(f)
	slices.Sort(got[2:])
	if want := []string{"db-0 db /freeze now", "db-1 db /freeze now", "db-0 db /thaw", "db-1 db /thaw"}; !slices.Equal(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	run = f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
	if live == nil || live.Reason != slipwayv1alpha1.ReasonQuiesced {
		t.Errorf("LiveSource is %+v", live)
	}
	if meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionHookAfterFailed) != nil {
		t.Error("HookAfterFailed is there, and nothing failed")
	}
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil || len(run.Finalizers) > 0 {
			return fmt.Errorf("the finalizers are %v (%w)", run.Finalizers, err)
		}
		return nil
	})
}

// A copy is not called quiesced where it is not.
func TestACopyOfWhatNobodyHeldSaysSo(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	goOn := func(b *slipwayv1alpha1.Backup) { b.Spec.Hooks.Before.OnError = slipwayv1alpha1.HookContinue }
	tests := map[string]struct {
		change    func(*slipwayv1alpha1.Backup)
		play      func(*fixture)
		meanwhile func(f *fixture, pod *corev1.Pod)
	}{
		"before fails, and that does not matter": {change: goOn, play: func(f *fixture) { exec.play(f, "db-0", "/freeze", exits(1)) }},
		"a pod comes meanwhile":                  {meanwhile: func(f *fixture, _ *corev1.Pod) { f.workload("late", "") }},
		"the pod is replaced meanwhile": {meanwhile: func(f *fixture, pod *corev1.Pod) {
			f.deletePod(pod)
			f.workload("db-0", allowed)
		}},
		"there is only a hook after": {change: func(b *slipwayv1alpha1.Backup) { b.Spec.Hooks.Before = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := []func(*slipwayv1alpha1.Backup){withHooks}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			f := newFixture(t, change...)
			if tc.play != nil {
				tc.play(f)
			}
			pod := f.workload("db-0", allowed)
			f.run("shop-now")
			job := f.job("shop-now-0-1")
			if tc.meanwhile != nil {
				tc.meanwhile(f, pod)
			}
			if err := f.cluster.Move(t.Context(), job, nil); err != nil {
				t.Fatal(err)
			}
			run := f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
			live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
			if live == nil || live.Reason != slipwayv1alpha1.ReasonNoVolumeSnapshot || run.Status.Hooks.Quiesced {
				t.Errorf("LiveSource is %+v, the hooks %+v", live, run.Status.Hooks)
			}
		})
	}
}

// However an attempt ends, what was held is released, and only then it ends.
func TestAnAttemptThatFailsReleasesWhatItHeld(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	unreachable := func(f *fixture) {
		err := f.cluster.Move(f.Context(), f.job("shop-now-0-1"), func(step mover.Step, r *mover.Result) *mover.Result {
			return &mover.Result{Command: string(step), Kind: "SourceEmpty", Message: "empty"}
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	const freeze, thaw = "db-0 db /freeze now", "db-0 db /thaw"
	tests := map[string]struct {
		play   func(*fixture)
		then   func(*fixture)
		phase  slipwayv1alpha1.BackupPhase
		reason string
		ran    []string
	}{
		"before exits with 1": {
			play:  func(f *fixture) { exec.play(f, "db-0", "/freeze", exits(1)) },
			phase: slipwayv1alpha1.BackupFailed, reason: slipwayv1alpha1.ReasonHookFailed, ran: []string{freeze, thaw},
		},
		"nobody knows how before ended": {
			play:  func(f *fixture) { exec.play(f, "db-0", "/freeze", func(context.Context) error { return errBroken }) },
			phase: slipwayv1alpha1.BackupPending, reason: slipwayv1alpha1.ReasonRetrying, ran: []string{freeze, thaw},
		},
		"before takes too long": {
			play:  func(f *fixture) { exec.play(f, "db-0", "/freeze", until(nil)) },
			phase: slipwayv1alpha1.BackupFailed, reason: slipwayv1alpha1.ReasonHookFailed, ran: []string{freeze, thaw},
		},
		"the command panics": {
			play:  func(f *fixture) { exec.play(f, "db-0", "/freeze", func(context.Context) error { panic("boom") }) },
			phase: slipwayv1alpha1.BackupPending, reason: slipwayv1alpha1.ReasonRetrying, ran: []string{freeze, thaw},
		},
		"the volume is empty": {
			then: unreachable, phase: slipwayv1alpha1.BackupFailed, reason: slipwayv1alpha1.ReasonSourceEmpty, ran: []string{freeze, thaw},
		},
		"the Job is deleted, and made again": {
			then: func(f *fixture) {
				job := f.job("shop-now-0-1")
				if err := env.Client.Delete(f.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					f.Fatal(err)
				}
			},
			phase: slipwayv1alpha1.BackupRunning, reason: slipwayv1alpha1.ReasonTransferring, ran: []string{freeze},
		},
		"the Backup is deleted": {
			then: func(f *fixture) {
				f.job("shop-now-0-1")
				if err := env.Client.Delete(f.Context(), f.backup); err != nil {
					f.Fatal(err)
				}
			},
			phase: slipwayv1alpha1.BackupRunning, reason: slipwayv1alpha1.ReasonBackupNotFound, ran: []string{freeze, thaw},
		},
		"the pod is replaced before it was asked": {
			play: func(f *fixture) {
				exec.play(f, "db-0", "/freeze", func(context.Context) error {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: f.namespace}}
					f.deletePod(pod)
					f.workload("db-0", "")
					return nil
				})
			},
			phase: slipwayv1alpha1.BackupPending, reason: slipwayv1alpha1.ReasonRetrying, ran: []string{freeze},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withHooks, func(b *slipwayv1alpha1.Backup) { b.Spec.Hooks.Before.Timeout = "1s" })
			if tc.play != nil {
				tc.play(f)
			}
			f.workload("db-0", allowed)
			f.run("shop-now")
			if tc.then != nil {
				tc.then(f)
			}
			f.ran(exec, tc.ran...)
			run := f.wait("shop-now", tc.phase, tc.reason)
			if tc.phase != slipwayv1alpha1.BackupRunning && run.Status.Hooks.Phase != slipwayv1alpha1.HooksDone {
				t.Errorf("it has ended, and the hooks are %+v", run.Status.Hooks)
			}
			if tc.phase == slipwayv1alpha1.BackupCompleted || run.Status.Volumes[0].Verified {
				t.Errorf("there is a copy: %+v", run.Status)
			}
		})
	}
}

// Who may write a Backup runs nothing that the workload does not allow.
func TestWhatAWorkloadDoesNotAllowIsNotRun(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	tests := map[string]struct {
		change func(*slipwayv1alpha1.BackupHooks)
		pods   map[string]string
	}{
		"no annotation":               {nil, map[string]string{"db-0": ""}},
		"another command":             {func(h *slipwayv1alpha1.BackupHooks) { h.Before.Command = []string{"/freeze", "now", "--all"} }, map[string]string{"db-0": allowed}},
		"another after":               {func(h *slipwayv1alpha1.BackupHooks) { h.After.Command = []string{"sh", "-c", "/thaw"} }, map[string]string{"db-0": allowed}},
		"another container":           {func(h *slipwayv1alpha1.BackupHooks) { h.Before.Container = "other" }, map[string]string{"db-0": allowed}},
		"an annotation that is none":  {nil, map[string]string{"db-0": allowed + "x"}},
		"one pod of two allows it":    {nil, map[string]string{"db-0": allowed, "db-1": ""}},
		"the later pod does not":      {nil, map[string]string{"db-0": allowed, "db-1": `[]`}},
		"not even where it may fail":  {func(h *slipwayv1alpha1.BackupHooks) { h.Before.OnError = slipwayv1alpha1.HookContinue }, map[string]string{"db-0": ""}},
		"nor is only the after of it": {func(h *slipwayv1alpha1.BackupHooks) { h.Before = nil }, map[string]string{"db-0": ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withHooks, func(b *slipwayv1alpha1.Backup) {
				if tc.change != nil {
					tc.change(b.Spec.Hooks)
				}
			})
			for pod, annotation := range tc.pods {
				f.workload(pod, annotation)
			}
			f.run("shop-now")
			run := f.wait("shop-now", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonHookNotAllowed)
			if ran := exec.in(f); len(ran) > 0 {
				t.Errorf("ran %q", ran)
			}
			if !strings.Contains(run.Status.Message, "spec.hooks.") {
				t.Errorf("the message is %q", run.Status.Message)
			}
		})
	}
}

// A pod is asked again just before each command: what it allowed when the run began does not count.
func TestWhatAWorkloadDoesNotAllowAnyMoreIsNotRun(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	f := newFixture(t, withHooks)
	pod := f.workload("db-0", allowed)
	gate := make(chan struct{})
	exec.play(f, "db-0", "/freeze", until(gate))
	f.run("shop-now")
	f.ran(exec, "db-0 db /freeze now")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+slipwayv1alpha1.AnnotationBackupHooks+`":"[]"}}}`))
	if err := env.Client.Patch(t.Context(), pod, patch); err != nil {
		t.Fatal(err)
	}
	close(gate)
	if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), nil); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		run := f.hooks("shop-now", slipwayv1alpha1.HooksAfter)
		if after := run.Status.Hooks.Pods[0].After; after == nil || after.Phase != slipwayv1alpha1.HookRetrying || after.Reason != slipwayv1alpha1.ReasonHookNotAllowed {
			return fmt.Errorf("after is %+v", after)
		}
		return nil
	})
	f.ran(exec, "db-0 db /freeze now")
}

// The operator ends at every point of a run. What is pending is done by the next one.
func TestACrashLeavesNothingHeld(t *testing.T) {
	const freeze, thaw = "db-0 db /freeze now", "db-0 db /thaw"
	tests := map[string]struct {
		// hang is the command during which the operator ends, and again what has run after the next one did.
		hang string
		// job tells that the Job works when it ends.
		held bool
		want []string
	}{
		"while before runs":    {hang: "/freeze", want: []string{freeze, freeze, thaw}},
		"while after runs":     {hang: "/thaw", want: []string{freeze, thaw, thaw}},
		"while the Job works":  {held: true, want: []string{freeze, thaw}},
		"before it has begun":  {want: []string{freeze, thaw}},
		"when it is all known": {want: []string{freeze, thaw}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exec := &containers{}
			f := newFixture(t, withHooks)
			f.workload("db-0", allowed)
			started := make(chan struct{})
			var once sync.Once
			first := true
			if tc.hang != "" {
				exec.play(f, "db-0", tc.hang, func(ctx context.Context) error {
					if !first {
						return nil
					}
					first = false
					once.Do(func() { close(started) })
					<-ctx.Done() // the operator ends, and the answer with it
					return ctx.Err()
				})
			}
			crashed := startWithHooks(t, exec)
			if name == "before it has begun" {
				crashed.Stop(t)
			}
			f.run("shop-now")
			switch {
			case tc.hang == "/freeze":
				<-started
			case tc.hang == "/thaw":
				if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), nil); err != nil {
					t.Fatal(err)
				}
				<-started
			case tc.held:
				f.job("shop-now-0-1")
			case name == "when it is all known":
				if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), nil); err != nil {
					t.Fatal(err)
				}
				f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
			}
			crashed.Stop(t)
			startWithHooks(t, exec)
			if tc.hang != "/thaw" && name != "when it is all known" {
				if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), nil); err != nil {
					t.Fatal(err)
				}
			}
			run := f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
			if run.Status.Hooks.Phase != slipwayv1alpha1.HooksDone {
				t.Errorf("the hooks are %+v", run.Status.Hooks)
			}
			f.ran(exec, tc.want...)
		})
	}
}

func TestARunThatIsDeletedReleasesWhatItHeld(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	t.Run("while it is held", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withHooks)
		f.workload("db-0", allowed)
		f.run("shop-now")
		f.job("shop-now-0-1")
		f.deleteRun("shop-now")
		f.runGone("shop-now")
		f.ran(exec, "db-0 db /freeze now", "db-0 db /thaw")
	})
	t.Run("while before runs: that is ended first", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withHooks)
		f.workload("db-0", allowed)
		ended := make(chan struct{})
		exec.play(f, "db-0", "/freeze", func(ctx context.Context) error {
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		})
		exec.play(f, "db-0", "/thaw", func(context.Context) error {
			select {
			case <-ended:
			default:
				t.Error("after runs while before does")
			}
			return nil
		})
		f.run("shop-now")
		f.ran(exec, "db-0 db /freeze now")
		f.deleteRun("shop-now")
		f.runGone("shop-now")
		f.ran(exec, "db-0 db /freeze now", "db-0 db /thaw")
	})
	t.Run("with the pod gone there is nothing to release", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withHooks)
		pod := f.workload("db-0", allowed)
		f.run("shop-now")
		f.job("shop-now-0-1")
		f.deletePod(pod)
		f.deleteRun("shop-now")
		f.runGone("shop-now")
		f.ran(exec, "db-0 db /freeze now")
	})
	t.Run("a user lets it go, and is told", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withHooks)
		f.workload("db-0", allowed)
		exec.play(f, "db-0", "/thaw", func(context.Context) error { return errBroken })
		run := f.run("shop-now")
		f.job("shop-now-0-1")
		before := hooksLeft(t)
		f.deleteRun("shop-now")
		environment.Eventually(t, func() error {
			run := f.hooks("shop-now", slipwayv1alpha1.HooksAfter)
			if run.Status.Hooks.Pods[0].After == nil {
				return errStillThere
			}
			return nil
		})
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+slipwayv1alpha1.AnnotationLeaveHooks+`":"yes"}}}`))
		if err := env.Client.Patch(t.Context(), run, patch); err != nil {
			t.Fatal(err)
		}
		f.runGone("shop-now")
		environment.Eventually(t, func() error { return f.event(slipwayv1alpha1.ReasonHookLeft, "BackupRun") })
		if after := hooksLeft(t); after <= before {
			t.Errorf("%s was %v, and is %v", backuprun.HooksLeft.Name, before, after)
		}
	})
}

// A pod that one run holds is not held by another one: the first would release it.
func TestTwoRunsDoNotHoldAPodAtATime(t *testing.T) {
	exec := &containers{}
	startWithHooks(t, exec)
	f := newFixture(t, withHooks)
	other := f.backup.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "other", Namespace: f.namespace}
	f.create(other)
	f.workload("db-0", allowed)
	f.run("shop-now")
	f.job("shop-now-0-1")
	f.create(&slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: "other-now", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "other"},
	})
	run := f.wait("other-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonQueued)
	if !strings.Contains(run.Status.Message, `"shop-now"`) {
		t.Errorf("the message is %q", run.Status.Message)
	}
	f.ran(exec, "db-0 db /freeze now")
}

// Another operator takes over that may not release what the first one has held.
func TestWhatCannotBeReleasedIsTold(t *testing.T) {
	exec := &containers{}
	first := startWithHooks(t, exec)
	f := newFixture(t, withHooks)
	f.workload("db-0", allowed)
	f.run("shop-now")
	job := f.job("shop-now-0-1")
	first.Stop(t)
	env.StartOperator(t, nil)
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	run := f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	reported := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionHookAfterFailed)
	if reported == nil || reported.Status != metav1.ConditionTrue || reported.Reason != slipwayv1alpha1.ReasonHooksDisabled {
		t.Errorf("HookAfterFailed is %+v", reported)
	}
	environment.Eventually(t, func() error {
		backup := &slipwayv1alpha1.Backup{}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f.backup), backup); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(backup.Status.Conditions, slipwayv1alpha1.ConditionHookAfterFailed) {
			return fmt.Errorf("the conditions of the Backup are %+v", backup.Status.Conditions)
		}
		return f.event(slipwayv1alpha1.ReasonHooksDisabled, "BackupRun")
	})
}

// event tells whether there is a warning of a reason about an object of a kind.
func (f *fixture) event(reason, kind string) error {
	events := &eventsv1.EventList{}
	if err := env.Client.List(f.Context(), events, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == reason && e.Regarding.Kind == kind && e.Type == corev1.EventTypeWarning {
			return nil
		}
	}
	return fmt.Errorf("no event says %s: %d others do not", reason, len(events.Items))
}

func TestAnOperatorThatRunsNoHooksSaysSo(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, withHooks)
	f.workload("db-0", allowed)
	f.run("shop-now")
	f.wait("shop-now", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonHooksDisabled)
	environment.Eventually(t, func() error {
		backup := &slipwayv1alpha1.Backup{}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f.backup), backup); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(backup.Status.Conditions, slipwayv1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != slipwayv1alpha1.ReasonHooksDisabled {
			return fmt.Errorf("Ready of the Backup is %+v", ready)
		}
		return nil
	})
}

func TestTheSchemaOfHooks(t *testing.T) {
	f := newFixture(t)
	long := make([]string, 33)
	for name, tc := range map[string]struct {
		hooks   slipwayv1alpha1.BackupHooks
		refused string
	}{
		"none":               {slipwayv1alpha1.BackupHooks{}, "spec.hooks"},
		"no command":         {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{}}}, "spec.hooks.after.command"},
		"too many words":     {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: long}}, "spec.hooks.after.command"},
		"a word too long":    {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{strings.Repeat("x", 513)}}}, "spec.hooks.after.command"},
		"too short a time":   {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{"x"}, Timeout: "999ms"}}, "from 1s to 15m"},
		"too long a time":    {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{"x"}, Timeout: "901s"}}, "from 1s to 15m"},
		"no time":            {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{"x"}, Timeout: "soon"}}, "spec.hooks.after.timeout"},
		"another policy":     {slipwayv1alpha1.BackupHooks{Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: slipwayv1alpha1.BackupHook{Command: []string{"x"}}, OnError: "Ignore"}}, "onError"},
		"the longest time":   {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{"x"}, Timeout: "15m"}}, ""},
		"the most of a word": {slipwayv1alpha1.BackupHooks{After: &slipwayv1alpha1.BackupHook{Command: []string{strings.Repeat("x", 512)}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			backup := f.backup.DeepCopy()
			backup.ObjectMeta = metav1.ObjectMeta{GenerateName: "schema-", Namespace: f.namespace}
			backup.Spec.Hooks = &tc.hooks
			err := env.Client.Create(t.Context(), backup)
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("error %v, want one with %q", err, tc.refused)
			}
		})
	}
}
