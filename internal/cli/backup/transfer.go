package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/text"
)

// transfer is what a BackupRun and a Restore have in common for who waits for one. It is also what is shown of them.
type transfer struct {
	// Object is kind/name.
	Object    string                      `json:"object"`
	Namespace string                      `json:"namespace"`
	Phase     slipwayv1alpha1.BackupPhase `json:"phase,omitempty"`
	Reason    string                      `json:"reason,omitempty"`
	Message   string                      `json:"message,omitempty"`
	Attempt   int32                       `json:"attempt,omitempty"`
	// Progress is absent before and after.
	Progress *slipwayv1alpha1.TransferProgress `json:"progress,omitempty"`

	uid string
	// outcome says what came of it, when it has completed.
	outcome string
}

func runTransfer(run *slipwayv1alpha1.BackupRun) transfer {
	status := run.Status
	t := transfer{
		Object: "backuprun/" + run.Name, Namespace: run.Namespace, uid: string(run.UID),
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, Attempt: status.Attempt, Progress: status.Progress,
	}
	t.outcome = fmt.Sprintf("%s, %s (%s added)", text.Count(status.Files, "file"), text.Bytes(status.Bytes), text.Bytes(status.AddedBytes))
	if status.Unreadable > 0 {
		t.outcome += fmt.Sprintf(", %s missing", text.Count(status.Unreadable, "path"))
	}
	if status.Vanished > 0 {
		t.outcome += fmt.Sprintf(", %s vanished", text.Count(status.Vanished, "path"))
	}
	if status.Changed > 0 {
		t.outcome += fmt.Sprintf(", %s changed while read", text.Count(status.Changed, "file"))
	}
	if v := status.Verification; v != nil {
		t.outcome += fmt.Sprintf(", verified (%s)", v.Mode)
	}
	t.outcome += took(status.StartTime, status.CompletionTime)
	return t
}

func restoreTransfer(restore *slipwayv1alpha1.Restore) transfer {
	status := restore.Status
	t := transfer{
		Object: "restore/" + restore.Name, Namespace: restore.Namespace, uid: string(restore.UID),
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, Attempt: status.Attempt, Progress: status.Progress,
	}
	t.outcome = fmt.Sprintf("%s, %s in pvc/%s", text.Count(status.Files, "file"), text.Bytes(status.Bytes), restore.Spec.Target.Claim)
	if status.SourceTime != nil {
		t.outcome += ", as of " + status.SourceTime.UTC().Format(time.RFC3339)
	}
	if status.OwnersNotKept > 0 {
		t.outcome += fmt.Sprintf(", %s not kept", text.Count(status.OwnersNotKept, "owner"))
	}
	if status.AttributesNotKept > 0 {
		t.outcome += fmt.Sprintf(", %s not kept", text.Count(status.AttributesNotKept, "attribute"))
	}
	t.outcome += took(status.StartTime, status.CompletionTime)
	return t
}

// took formats how long something took, after a comma. It is empty when that is not known.
func took(start, end *metav1.Time) string {
	if start == nil || end == nil {
		return ""
	}
	return ", in " + duration.HumanDuration(end.Sub(start.Time))
}

// transferOf is the transfer of an object. ok is false for an object of another kind.
func transferOf(object runtime.Object) (t transfer, ok bool) {
	switch o := object.(type) {
	case *slipwayv1alpha1.BackupRun:
		return runTransfer(o), true
	case *slipwayv1alpha1.Restore:
		return restoreTransfer(o), true
	default:
		return transfer{}, false
	}
}

// ended reports whether nothing changes any more.
func (t *transfer) ended() bool {
	return t.Phase == slipwayv1alpha1.BackupCompleted || t.Phase == slipwayv1alpha1.BackupFailed
}

// state says where it is, without how much is done.
func (t *transfer) state() string {
	if t.Phase == "" {
		return "waits for the operator"
	}
	state := fmt.Sprintf("%-9s  %s", t.Phase, command.Because(t.Reason, t.Message))
	if t.Attempt > 1 {
		state += fmt.Sprintf(" (attempt %d)", t.Attempt)
	}
	return state
}

// barWidth is how many characters show how much is done.
const barWidth = 24

// bar draws how much is done.
func bar(percent int32) string {
	done := int(min(max(percent, 0), 100)) * barWidth / 100
	return "[" + strings.Repeat("#", done) + strings.Repeat(".", barWidth-done) + "]"
}

// amount says how much is done. It is empty when that is not known.
func (t *transfer) amount(now time.Time) string {
	p := t.Progress
	if p == nil {
		return ""
	}
	amount := fmt.Sprintf("%3d%%  %s", p.Percent, text.Bytes(p.Bytes))
	if p.TotalBytes > 0 {
		amount += " of " + text.Bytes(p.TotalBytes)
	}
	if end := p.EstimatedCompletionTime; end != nil && end.After(now) {
		amount += fmt.Sprintf(", %s left", duration.HumanDuration(end.Sub(now)))
	}
	return amount
}

func runLister(c *command.Clients) command.Lister {
	return command.Lister{
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.BackupRuns().List(ctx, options)
		},
		Watch: c.BackupRuns().Watch,
	}
}

func restoreLister(c *command.Clients) command.Lister {
	return command.Lister{
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.Restores().List(ctx, options)
		},
		Watch: c.Restores().Watch,
	}
}
