package lock

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
)

const (
	// recheck is when to look again for a Job or a pod that no watch may show.
	recheck = 10 * time.Second
	// recheckHolder is the same for who has the Lease. Two that take it from each other at the same time both wait. The one that
	// has it in the end comes back first, and so they do not meet again and again.
	recheckHolder = time.Second
)

// Writers lets one Job at a time write to something that bears only one: the repository of a Backup, or another Subject.
type Writers struct {
	// Applier makes Jobs, and its client writes Leases.
	Applier *apply.Applier
	// Live reads from the API server.
	Live client.Reader
	// Clock tells since when a Job is named. Nothing is decided by it.
	Clock clock.PassiveClock
	// Serial keeps two reconciles of this process from making Jobs for a subject at the same time, of which one would have to be
	// deleted again. Controllers that make Jobs for the same subjects have to share them. Nil: they may.
	Serial *Serial
}

// Create makes a Job that writes to the repository of a Backup, as CreateAlone does.
func (w Writers) Create(ctx context.Context, backup *slipwayv1alpha1.Backup, owner client.Object, child apply.Child) error {
	return w.CreateAlone(ctx, Repository(backup), owner, child)
}

// CreateAlone makes a Job that writes to a subject, as Applier.CreateOnly does. While another one writes, the error is Waiting
// with the reason of the subject. The owner of the Job need not be that of the subject.
func (w Writers) CreateAlone(ctx context.Context, subject Subject, owner client.Object, child apply.Child) error {
	leave, err := w.Serial.enter(subject)
	if err != nil {
		return err
	}
	defer leave()
	holder := fmt.Sprintf("%s/%s", *child.Desired.GetName(), owner.GetUID())
	if err := w.take(ctx, subject, holder); err != nil {
		return err
	}
	if err := w.busy(ctx, subject, *child.Desired.GetName(), recheckHolder); err != nil {
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
	if lost := w.confirm(ctx, subject, holder); lost != nil {
		return errors.Join(lost, w.Applier.Delete(ctx, owner, child.Current))
	}
	return nil
}

// Taken reports whether the Lease of the repository of a Backup was taken. That is the first step of making a Job: where it was never
// taken, there was no Job, whatever became of its owner meanwhile.
func (w Writers) Taken(ctx context.Context, backup *slipwayv1alpha1.Backup) (bool, error) {
	subject := Repository(backup)
	found := &coordinationv1.Lease{}
	err := w.Live.Get(ctx, types.NamespacedName{Namespace: subject.Namespace, Name: subject.Lease}, found)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, outcome.Classify(subject.called(), err)
	default:
		return ownedBy(found, subject.Owner.UID), nil
	}
}

// take writes a holder into the Lease, unless it is there or another Job still writes: who waits writes nothing.
func (w Writers) take(ctx context.Context, subject Subject, holder string) error {
	found, err := w.read(ctx, subject)
	if err != nil {
		return err
	}
	if holderOf(found) == holder && ownedBy(found, subject.Owner.UID) {
		return nil
	}
	name, _, _ := strings.Cut(holder, "/")
	if err := w.busy(ctx, subject, name, recheck); err != nil {
		return err
	}
	now := metav1.NewMicroTime(w.Clock.Now())
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions = *found.Spec.LeaseTransitions + 1
	}
	found.OwnerReferences = []metav1.OwnerReference{subject.Owner}
	found.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, LeaseTransitions: &transitions}
	// The cache has no Leases, so it never shows what was written.
	if found.UID == "" {
		err = w.Applier.Client.Create(ctx, found, client.FieldOwner(w.Applier.FieldManager), client.DisableReadYourWritesConsistency)
	} else {
		err = w.Applier.Client.Update(ctx, found, client.FieldOwner(w.Applier.FieldManager), client.DisableReadYourWritesConsistency)
	}
	switch {
	case apierrors.IsNotFound(err):
		return outcome.StaleCache(subject.called()) // somebody has just deleted it
	case err != nil:
		return outcome.Classify(subject.called(), err)
	default:
		return nil
	}
}

// read returns the Lease of a subject, or one to be made.
func (w Writers) read(ctx context.Context, subject Subject) (*coordinationv1.Lease, error) {
	found := &coordinationv1.Lease{}
	err := w.Live.Get(ctx, types.NamespacedName{Namespace: subject.Namespace, Name: subject.Lease}, found)
	switch {
	case apierrors.IsNotFound(err):
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: subject.Lease, Namespace: subject.Namespace, Labels: subject.labels(),
		}}, nil
	case err != nil:
		return nil, outcome.Classify(subject.called(), err)
	case found.Labels[subject.Label] != subject.Value:
		return nil, outcome.Blockedf(recheck, slipwayv1alpha1.ReasonNameConflict, "%s exists and was not made by Slipway: delete it, or %s",
			subject.called(), subject.Instead)
	default:
		return found, nil
	}
}

// confirm returns an error unless the Lease still names a holder.
func (w Writers) confirm(ctx context.Context, subject Subject, holder string) error {
	found, err := w.read(ctx, subject)
	if err != nil {
		return err
	}
	if now := holderOf(found); now != holder {
		name, _, _ := strings.Cut(now, "/")
		return subject.isBusy("Job", name, recheck)
	}
	return nil
}

// busy returns an error while a Job or a pod may write to the subject, other than the Job of that name. Jobs are read before
// pods: a Job that goes meanwhile leaves its pod.
func (w Writers) busy(ctx context.Context, subject Subject, name string, after time.Duration) error {
	writers := []client.ListOption{client.InNamespace(subject.Namespace), subject.Writers}
	jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
	if err := w.Live.List(ctx, jobs, writers...); err != nil {
		return outcome.Classify("the Jobs that write to "+subject.What, err)
	}
	var own types.UID
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.Name == name {
			own = job.UID
			continue
		}
		if subject.Writes(&job.Spec.Template.Spec) && !health.Job(job).Terminal {
			return subject.isBusy("Job", job.Name, after)
		}
	}
	if err := w.Live.List(ctx, pods, writers...); err != nil {
		return outcome.Classify("the pods that write to "+subject.What, err)
	}
	writing := subject.writing(pods.Items, own)
	if writing != nil && own == "" && writing.Labels[batchv1.JobNameLabel] == name {
		var err error
		if own, err = w.unlabelled(ctx, subject.Namespace, name); err != nil {
			return err
		}
		writing = subject.writing(pods.Items, own)
	}
	if writing == nil {
		return nil
	}
	return subject.isBusy("a pod of Job", writing.Labels[batchv1.JobNameLabel], after)
}

// unlabelled is the UID of a Job that may be there although no label selects it, because somebody has taken that away. It is
// empty where there is none.
func (w Writers) unlabelled(ctx context.Context, namespace, name string) (types.UID, error) {
	job := &batchv1.Job{}
	err := w.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, job)
	if client.IgnoreNotFound(err) != nil {
		return "", outcome.Classify(fmt.Sprintf("Job %q", name), err)
	}
	return job.UID, nil
}

func holderOf(of *coordinationv1.Lease) string {
	if of.Spec.HolderIdentity == nil {
		return ""
	}
	return *of.Spec.HolderIdentity
}

func ownedBy(of *coordinationv1.Lease, owner types.UID) bool {
	return len(of.OwnerReferences) == 1 && of.OwnerReferences[0].UID == owner
}
