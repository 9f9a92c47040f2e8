package why

import (
	"cmp"
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

// backupFindings are the findings of a Backup, a BackupRun or a Restore.
type backupFindings struct {
	object command.Declared
	// ref is kind/name, observed the generation that the status has observed.
	ref      string
	observed int64
	// run is the newest run of a Backup. Nil: there is none, or it is another kind.
	run  *slipwayv1alpha1.BackupRun
	jobs []batchv1.Job
}

// loadKept reads everything that the tree of a Backup, a BackupRun or a Restore needs.
func loadKept(ctx context.Context, c *command.Clients, kind *command.OurKind, name string) (*findings, error) {
	b := &backupFindings{ref: kind.Ref(name)}
	f := &findings{backup: b}
	var label string
	switch kind {
	case command.BackupKind:
		backup, err := c.GetBackup(ctx, name)
		if err != nil {
			return nil, err
		}
		label, b.object, b.observed = slipwayv1alpha1.LabelBackup, backup, backup.Status.ObservedGeneration
	case command.RunKind:
		run, err := c.BackupRuns().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, c.NotGot(err, command.RunKind, name)
		}
		label, b.object, b.observed = slipwayv1alpha1.LabelBackupRun, run, run.Status.ObservedGeneration
	default:
		restore, err := c.Restores().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, c.NotGot(err, command.RestoreKind, name)
		}
		label, b.object, b.observed = slipwayv1alpha1.LabelRestore, restore, restore.Status.ObservedGeneration
	}
	return f, f.read(append(moverSteps(ctx, c, f, label, name), eventsStep(ctx, c, f)))
}

// moverSteps read the Jobs and pods with a label, and the newest run where it is that of a Backup.
func moverSteps(ctx context.Context, c *command.Clients, f *findings, label, name string) []step {
	selected := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(map[string]string{label: name}).String()}
	return []step{
		{"BackupRuns", func() error {
			backup, ok := f.backup.object.(*slipwayv1alpha1.Backup)
			if !ok {
				return nil
			}
			list, err := c.BackupRuns().List(ctx, metav1.ListOptions{})
			if err == nil {
				f.backup.run = newestRun(list.Items, backup)
			}
			return err
		}},
		{"Jobs", func() error {
			list, err := c.Kube.BatchV1().Jobs(c.Namespace).List(ctx, selected)
			if err == nil {
				f.backup.jobs = list.Items
			}
			return err
		}},
		{"pods", func() error {
			list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, selected)
			if err == nil {
				f.pods = list.Items
			}
			return err
		}},
	}
}

func newestRun(runs []slipwayv1alpha1.BackupRun, backup *slipwayv1alpha1.Backup) *slipwayv1alpha1.BackupRun {
	runs = slices.DeleteFunc(runs, func(run slipwayv1alpha1.BackupRun) bool { return !run.IsOf(backup) })
	if len(runs) == 0 {
		return nil
	}
	newest := slices.MaxFunc(runs, func(a, b slipwayv1alpha1.BackupRun) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &newest
}

// verdict is verdictOf, but a Backup without a copy that is new enough has failed, although the next run may repair it.
func (b *backupFindings) verdict() health.Verdict {
	v := command.VerdictOf(b.object, b.ref, b.observed, b.object.GetGeneration())
	if v.Reason == slipwayv1alpha1.ReasonRunFailed || v.Reason == slipwayv1alpha1.ReasonCopyTooOld {
		v.State = health.Failed
	}
	return v
}

// keptNodes are the newest run of a Backup that is not ready, what keeps old copies from being removed, and Jobs with a
// problem. An attempt that failed is no problem of what has completed.
func keptNodes(f *findings) []node {
	var nodes []node
	healthy := f.verdict().State == health.Healthy
	if run := f.backup.run; run != nil && run.Status.Phase != slipwayv1alpha1.BackupCompleted && !healthy {
		n := node{
			Object: "backuprun/" + run.Name, State: health.Progressing, Reason: run.Status.Reason, Message: run.Status.Message,
			Events: without(warnings(f, run.UID), run.Status.Message), Causes: jobNodes(f, run.UID),
		}
		if run.Status.Phase == slipwayv1alpha1.BackupFailed {
			n.State = health.Failed
		}
		if n.Reason == "" {
			n.Message = "waits for the operator"
		}
		nodes = append(nodes, n)
	}
	retention := meta.FindStatusCondition(f.backup.object.GetConditions(), slipwayv1alpha1.ConditionRetentionApplied)
	if retention != nil && retention.Status == metav1.ConditionFalse && retention.Reason != slipwayv1alpha1.ReasonRetentionPending {
		// The copies are not in danger: it is no reason not to be ready.
		nodes = append(nodes, node{Object: "retention", State: health.Progressing, Reason: retention.Reason, Message: retention.Message})
	}
	if _, isBackup := f.backup.object.(*slipwayv1alpha1.Backup); isBackup || !healthy {
		nodes = append(nodes, jobNodes(f, f.backup.object.GetUID())...)
	}
	return nodes
}

// jobNodes lists the Jobs of an owner that failed, or whose pod has a problem.
func jobNodes(f *findings, owner types.UID) []node {
	var nodes []node
	for i := range f.backup.jobs {
		job := &f.backup.jobs[i]
		if controller := metav1.GetControllerOf(job); controller == nil || controller.UID != owner {
			continue
		}
		v := health.Job(job)
		pods, events := podNodes(f, job.UID), warnings(f, job.UID)
		if v.State == health.Healthy || v.State == health.Progressing && len(pods) == 0 && len(events) == 0 {
			continue
		}
		for j := range pods {
			// A pod that moves data ends with a result in JSON, which status tells in words.
			pods[j].Message, _, _ = strings.Cut(pods[j].Message, ": {")
		}
		nodes = append(nodes, node{
			Object: "job/" + job.Name, State: v.State, Reason: v.Reason, Message: shorten(v.Message, "Job", job.Name), Events: events, Causes: pods,
		})
	}
	return nodes
}
