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
	findings
	object command.Declared
	// name is kind/name, observed the generation that the status has observed.
	name     string
	observed int64
	// run is the newest run of a Backup. Nil: there is none, or it is another kind.
	run  *slipwayv1alpha1.BackupRun
	jobs []batchv1.Job
}

// loadBackup reads everything that the tree of a Backup needs.
func loadBackup(ctx context.Context, all *command.AnyClients, asked named) (explained, error) {
	backup, err := all.GetBackup(ctx, asked.name)
	if err != nil {
		return nil, err
	}
	b := &backupFindings{object: backup, name: command.BackupKind.Ref(asked.name), observed: backup.Status.ObservedGeneration}
	return b.load(ctx, all.Clients, slipwayv1alpha1.LabelBackup)
}

// loadRun reads everything that the tree of a BackupRun needs.
func loadRun(ctx context.Context, all *command.AnyClients, asked named) (explained, error) {
	run, err := all.BackupRuns().Get(ctx, asked.name, metav1.GetOptions{})
	if err != nil {
		return nil, all.NotGot(err, command.RunKind, asked.name)
	}
	b := &backupFindings{object: run, name: command.RunKind.Ref(asked.name), observed: run.Status.ObservedGeneration}
	return b.load(ctx, all.Clients, slipwayv1alpha1.LabelBackupRun)
}

// loadRestore reads everything that the tree of a Restore needs.
func loadRestore(ctx context.Context, all *command.AnyClients, asked named) (explained, error) {
	restore, err := all.Restores().Get(ctx, asked.name, metav1.GetOptions{})
	if err != nil {
		return nil, all.NotGot(err, command.RestoreKind, asked.name)
	}
	b := &backupFindings{object: restore, name: command.RestoreKind.Ref(asked.name), observed: restore.Status.ObservedGeneration}
	return b.load(ctx, all.Clients, slipwayv1alpha1.LabelRestore)
}

// load reads what has a label with the name of the object, and the events.
func (b *backupFindings) load(ctx context.Context, c *command.Clients, label string) (explained, error) {
	b.clients = c
	if err := b.read(b.name, append(moverSteps(ctx, c, b, label), eventsStep(ctx, c, b.facts()))); err != nil {
		return nil, err
	}
	return b, nil
}

// moverSteps read the Jobs and pods with a label, and the newest run where it is that of a Backup.
func moverSteps(ctx context.Context, c *command.Clients, b *backupFindings, label string) []step {
	selected := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(map[string]string{label: b.object.GetName()}).String()}
	return []step{
		{"BackupRuns", func() error {
			backup, ok := b.object.(*slipwayv1alpha1.Backup)
			if !ok {
				return nil
			}
			list, err := c.BackupRuns().List(ctx, metav1.ListOptions{})
			if err == nil {
				b.run = newestRun(list.Items, backup)
			}
			return err
		}},
		{"Jobs", func() error {
			list, err := c.Kube.BatchV1().Jobs(c.Namespace).List(ctx, selected)
			if err == nil {
				b.jobs = list.Items
			}
			return err
		}},
		{"pods", func() error {
			list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, selected)
			if err == nil {
				b.pods = list.Items
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

// verdict is command.VerdictOf, but a Backup without a copy that is new enough has failed, although the next run may repair it.
func (b *backupFindings) verdict() health.Verdict {
	v := command.VerdictOf(b.object, b.name, b.observed, b.object.GetGeneration())
	if v.Reason == slipwayv1alpha1.ReasonRunFailed || v.Reason == slipwayv1alpha1.ReasonCopyTooOld {
		v.State = health.Failed
	}
	return v
}

func (b *backupFindings) explain() whyView {
	v := b.verdict()
	root := node{Object: b.name, State: v.State, Reason: v.Reason, Message: v.Message, Causes: keptNodes(b)}
	return whyView{
		node: ownRoot(b.facts(), b.object, root), Name: b.object.GetName(), Namespace: b.object.GetNamespace(), Unreadable: b.unreadable,
	}
}

// keptNodes are the newest run of a Backup that is not ready, what keeps old copies from being removed, and Jobs with a
// problem. An attempt that failed is no problem of what has completed.
func keptNodes(b *backupFindings) []node {
	var nodes []node
	healthy := b.verdict().State == health.Healthy
	if run := b.run; run != nil && run.Status.Phase != slipwayv1alpha1.BackupCompleted && !healthy {
		n := node{
			Object: "backuprun/" + run.Name, State: health.Progressing, Reason: run.Status.Reason, Message: run.Status.Message,
			Events: without(warnings(b.facts(), run.UID), run.Status.Message), Causes: jobNodes(b, run.UID),
		}
		if run.Status.Phase == slipwayv1alpha1.BackupFailed {
			n.State = health.Failed
		}
		if n.Reason == "" {
			n.Message = "waits for the operator"
		}
		nodes = append(nodes, n)
	}
	retention := meta.FindStatusCondition(b.object.GetConditions(), slipwayv1alpha1.ConditionRetentionApplied)
	if retention != nil && retention.Status == metav1.ConditionFalse && retention.Reason != slipwayv1alpha1.ReasonRetentionPending {
		// The copies are not in danger: it is no reason not to be ready.
		nodes = append(nodes, node{Object: "retention", State: health.Progressing, Reason: retention.Reason, Message: retention.Message})
	}
	if _, isBackup := b.object.(*slipwayv1alpha1.Backup); isBackup || !healthy {
		nodes = append(nodes, jobNodes(b, b.object.GetUID())...)
	}
	return nodes
}

// jobNodes lists the Jobs of an owner that failed, or whose pod has a problem.
func jobNodes(b *backupFindings, owner types.UID) []node {
	var nodes []node
	for i := range b.jobs {
		job := &b.jobs[i]
		if controller := metav1.GetControllerOf(job); controller == nil || controller.UID != owner {
			continue
		}
		v := health.Job(job)
		pods, events := podNodes(b.facts(), job.UID), warnings(b.facts(), job.UID)
		if v.State == health.Healthy || v.State == health.Progressing && len(pods) == 0 && len(events) == 0 {
			continue
		}
		for j := range pods {
			// A pod that moves data ends with a result in JSON, which status tells in words.
			pods[j].Message, _, _ = strings.Cut(pods[j].Message, ": {")
		}
		nodes = append(nodes, node{
			Object: "job/" + job.Name, State: v.State, Reason: v.Reason, Message: shorten(v.Message, "Job", job.Name), Events: events,
			Causes: pods,
		})
	}
	return nodes
}
