package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/mover"
)

const (
	// recheck is when to look again for a Job or a pod that no watch may show.
	recheck = 10 * time.Second
	// recheckHolder is the same for who has the Lease. Two that take it from each other at the same time both wait. The one that
	// has it in the end comes back first, and so they do not meet again and again.
	recheckHolder = time.Second
)

// Writers lets one Job at a time write to the repository of a Backup.
type Writers struct {
	// Applier makes Jobs, and its client writes Leases.
	Applier *apply.Applier
	// Live reads from the API server.
	Live client.Reader
	// Clock tells since when a Job is named. Nothing is decided by it.
	Clock clock.PassiveClock
}

// Name is the name of the Lease of a Backup.
func Name(backup *slipwayv1alpha1.Backup) string { return backup.Name + "-repository" }

// Create makes a Job that writes to the repository of a Backup, as Applier.CreateOnly does. While another one writes, the error
// is Waiting with reason RepositoryBusy. The Backup may be the owner of the Job, or another object.
func (w Writers) Create(ctx context.Context, backup *slipwayv1alpha1.Backup, owner client.Object, child apply.Child) error {
	holder := fmt.Sprintf("%s/%s", *child.Desired.GetName(), owner.GetUID())
	if err := w.take(ctx, backup, holder); err != nil {
		return err
	}
	if err := w.busy(ctx, backup, *child.Desired.GetName(), recheckHolder); err != nil {
		return err
	}
	if w.Applier.Fresh != nil {
		// A Job that has ended is deleted when its result stands in the status of the owner. Of a leader that has not heard that
		// it leads no more, the cache may show the deletion first: the owner tells that the Job is not to be made again.
		w.Applier.Fresh.Invalidate(owner)
	}
	change, err := w.Applier.CreateOnly(ctx, owner, child)
	if err != nil || change != apply.Created {
		return err
	}
	if lost := w.confirm(ctx, backup, holder); lost != nil {
		return errors.Join(lost, w.Applier.Delete(ctx, owner, child.Current))
	}
	return nil
}

// take writes a holder into the Lease, unless it is there or another Job still writes: who waits writes nothing.
func (w Writers) take(ctx context.Context, backup *slipwayv1alpha1.Backup, holder string) error {
	found, err := w.read(ctx, backup)
	if err != nil {
		return err
	}
	if holderOf(found) == holder && ownedBy(found, backup) {
		return nil
	}
	name, _, _ := strings.Cut(holder, "/")
	if err := w.busy(ctx, backup, name, recheck); err != nil {
		return err
	}
	now := metav1.NewMicroTime(w.Clock.Now())
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions = *found.Spec.LeaseTransitions + 1
	}
	found.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: slipwayv1alpha1.SchemeGroupVersion.String(), Kind: "Backup", Name: backup.Name, UID: backup.UID,
	}}
	found.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, LeaseTransitions: &transitions}
	// The cache has no Leases, so it never shows what was written.
	if found.UID == "" {
		err = w.Applier.Client.Create(ctx, found, client.FieldOwner(w.Applier.FieldManager), client.DisableReadYourWritesConsistency)
	} else {
		err = w.Applier.Client.Update(ctx, found, client.FieldOwner(w.Applier.FieldManager), client.DisableReadYourWritesConsistency)
	}
	switch {
	case apierrors.IsNotFound(err):
		return outcome.StaleCache(subject(backup)) // somebody has just deleted it
	case err != nil:
		return outcome.Classify(subject(backup), err)
	default:
		return nil
	}
}

// read returns the Lease of a Backup, or one to be made.
func (w Writers) read(ctx context.Context, backup *slipwayv1alpha1.Backup) (*coordinationv1.Lease, error) {
	found := &coordinationv1.Lease{}
	err := w.Live.Get(ctx, types.NamespacedName{Namespace: backup.Namespace, Name: Name(backup)}, found)
	switch {
	case apierrors.IsNotFound(err):
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: Name(backup), Namespace: backup.Namespace,
			Labels: map[string]string{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway, slipwayv1alpha1.LabelBackup: backup.Name},
		}}, nil
	case err != nil:
		return nil, outcome.Classify(subject(backup), err)
	case found.Labels[slipwayv1alpha1.LabelBackup] != backup.Name:
		return nil, outcome.Blockedf(recheck, slipwayv1alpha1.ReasonNameConflict, "%s exists and was not made by Slipway: delete it, or rename the Backup", subject(backup))
	default:
		return found, nil
	}
}

// confirm returns an error unless the Lease still names a holder.
func (w Writers) confirm(ctx context.Context, backup *slipwayv1alpha1.Backup, holder string) error {
	found, err := w.read(ctx, backup)
	if err != nil {
		return err
	}
	if now := holderOf(found); now != holder {
		name, _, _ := strings.Cut(now, "/")
		return isBusy("Job", name, recheck)
	}
	return nil
}

// busy returns an error while a Job or a pod of the Backup may write, other than the Job of that name. Jobs are read before
// pods: a Job that goes meanwhile leaves its pod.
func (w Writers) busy(ctx context.Context, backup *slipwayv1alpha1.Backup, name string, after time.Duration) error {
	ofBackup := []client.ListOption{client.InNamespace(backup.Namespace), client.MatchingLabels{slipwayv1alpha1.LabelBackup: backup.Name}}
	jobs := &batchv1.JobList{}
	if err := w.Live.List(ctx, jobs, ofBackup...); err != nil {
		return outcome.Classify("the Jobs of the Backup", err)
	}
	var own types.UID
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.Name == name {
			own = job.UID
			continue
		}
		if mover.Writes(&job.Spec.Template.Spec) && !health.Job(job).Terminal {
			return isBusy("Job", job.Name, after)
		}
	}
	pods := &corev1.PodList{}
	if err := w.Live.List(ctx, pods, ofBackup...); err != nil {
		return outcome.Classify("the pods of the Backup", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if ended || !mover.Writes(&pod.Spec) || (own != "" && pod.Labels[batchv1.ControllerUidLabel] == string(own)) {
			continue
		}
		return isBusy("a pod of Job", pod.Labels[batchv1.JobNameLabel], after)
	}
	return nil
}

func isBusy(what, name string, after time.Duration) error {
	return outcome.Waitingf(after, slipwayv1alpha1.ReasonRepositoryBusy,
		"%s %q may still write to the repository, and one at a time may", what, name)
}

func holderOf(of *coordinationv1.Lease) string {
	if of.Spec.HolderIdentity == nil {
		return ""
	}
	return *of.Spec.HolderIdentity
}

func ownedBy(of *coordinationv1.Lease, backup *slipwayv1alpha1.Backup) bool {
	return len(of.OwnerReferences) == 1 && of.OwnerReferences[0].UID == backup.UID
}

func subject(backup *slipwayv1alpha1.Backup) string { return fmt.Sprintf("Lease %q", Name(backup)) }
