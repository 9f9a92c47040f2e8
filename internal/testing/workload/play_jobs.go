package workload

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// lookAtJobs has the Jobs that have not ended do what the script says of their steps.
func (p *Player) lookAtJobs(ctx context.Context) error {
	names, err := p.jobs(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		job := &batchv1.Job{}
		err := p.cluster.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, job)
		if err == nil && len(job.Status.Conditions) == 0 && job.DeletionTimestamp.IsZero() {
			err = p.play(ctx, job)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// play ends a Job, or has it go on with a step.
func (p *Player) play(ctx context.Context, job *batchv1.Job) error {
	step := p.running(job)
	if step == "" {
		return p.cluster.Move(ctx, job, p.moves)
	}
	if err := p.cluster.Work(ctx, job, step); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working[job.UID] = true
	return nil
}

// running is the first step of a Job that goes on by the script, or empty.
func (p *Player) running(job *batchv1.Job) mover.Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, step := range StepsOf(job) {
		if p.script[string(step)] == Running {
			return step
		}
	}
	return ""
}

// moves is what a step says by the script.
func (p *Player) moves(step mover.Step, result *mover.Result) *mover.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return moved(p.script[string(step)], step, result)
}

// moved is what a step says that behaves in a way. result is what a good one says.
func moved(behaviour Behaviour, step mover.Step, result *mover.Result) *mover.Result {
	switch behaviour {
	case SourceEmpty:
		return &mover.Result{Command: string(step), Kind: "SourceEmpty", Message: "read the source: it holds no file"}
	case ContentDiffers:
		return &mover.Result{Command: string(step), Kind: "ContentDiffers", Message: "compare with the source: a file holds something else"}
	case Unreachable:
		return &mover.Result{Command: string(step), Kind: "Unreachable", Message: "open the storage: it does not answer"}
	default:
		return result
	}
}

// jobs are the names of the Jobs that have not ended, but for those that are to go on.
func (p *Player) jobs(ctx context.Context) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("JobList"))
	if err := p.reader.List(ctx, list, client.InNamespace(p.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for i := range list.Items {
		if p.working[list.Items[i].GetUID()] {
			continue
		}
		conditions, _, err := unstructured.NestedFieldNoCopy(list.Items[i].Object, "status", "conditions")
		if err == nil && conditions == nil && list.Items[i].GetDeletionTimestamp() == nil {
			names = append(names, list.Items[i].GetName())
		}
	}
	return names, nil
}
