//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// command is one of the demo in its own container. See hack/demo/tree.go. The first word is where the image has it.
func command(words ...string) []string { return append([]string{"/slipway-demo", "tree"}, words...) }

// hooks asks for commands before a backup and after it.
func hooks(before, after []string) func(*slipwayv1alpha1.BackupSpec) {
	return func(s *slipwayv1alpha1.BackupSpec) {
		s.Hooks = &slipwayv1alpha1.BackupHooks{
			Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: slipwayv1alpha1.BackupHook{Command: before, Timeout: "30s"}},
			After:  &slipwayv1alpha1.BackupHook{Command: after, Timeout: "30s"},
		}
	}
}

// The application allows two commands. One marks its volume: the copy has the mark, and the volume does not keep it.
func testHooksRunInTheApplicationAroundItsBackup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.StartS3()
	mark, unmark, fails := command("mark", "/data"), command("unmark", "/data"), command("nonsense", "/data")
	var permits []map[string]any
	for _, words := range [][]string{mark, unmark, fails} {
		permits = append(permits, map[string]any{"container": "app", "command": words})
	}
	annotation, err := json.Marshal(permits)
	if err != nil {
		t.Fatal(err)
	}
	app := f.app(storage("1Gi", slipwayv1alpha1.DeletionPolicyDelete))
	app.Annotations = map[string]string{slipwayv1alpha1.AnnotationBackupHooks: string(annotation)}
	f.Create(app)
	f.ready()
	f.tree("make", dataName)

	f.backup(dataName, hooks(mark, unmark))
	run := f.backedUp(dataName, "held")
	live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
	if live == nil || live.Reason != slipwayv1alpha1.ReasonQuiesced {
		t.Errorf("LiveSource is %+v", live)
	}
	if h := run.Status.Hooks; h == nil || h.Phase != slipwayv1alpha1.HooksDone || !h.Quiesced || len(h.Pods) != 1 ||
		h.Pods[0].Before.Phase != slipwayv1alpha1.HookSucceeded || h.Pods[0].After.Phase != slipwayv1alpha1.HookSucceeded {
		t.Errorf("the hooks are %+v", h)
	}
	f.restore("again")
	f.Restored("again", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if !strings.Contains(f.listed("again"), `"marked"`) {
		t.Error("the copy was made without the mark of the before hook")
	}
	if strings.Contains(f.listed(dataName), `"marked"`) {
		t.Error("the after hook has not removed the mark")
	}

	f.backup("fails", hooks(fails, mark))
	f.backup("refused", hooks(append(mark, ""), unmark))
	f.StartRun("fails", "fails")
	f.StartRun("refused", "refused")
	refused := f.Ran("refused", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonHookNotAllowed)
	if !strings.Contains(refused.Status.Message, slipwayv1alpha1.AnnotationBackupHooks) || refused.Status.Hooks != nil {
		t.Errorf("the refusal is %q, the hooks %+v", refused.Status.Message, refused.Status.Hooks)
	}
	failed := f.Ran("fails", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonHookFailed)
	after := failed.Status.Hooks.Pods[0].After
	if !strings.Contains(failed.Status.Message, "exit code 1") || after == nil || after.Phase != slipwayv1alpha1.HookSucceeded {
		t.Errorf("the message is %q, after is %+v", failed.Status.Message, after)
	}
	if !strings.Contains(f.listed(dataName), `"marked"`) {
		t.Error("the before hook failed, and the after hook did not run")
	}
}
