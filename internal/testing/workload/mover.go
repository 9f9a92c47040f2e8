package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// RepositoryID is the ID of every repository that Move makes.
const RepositoryID = "5f2c0000000000000000000000000000"

// manifestDigest is that of every snapshot that Move makes.
const manifestDigest = "ab00000000000000000000000000000000000000000000000000000000000000"

// Move plays what becomes of a Job that runs slipway-backup: its steps end one after the other, as change says. change gets
// the good result of each step, and may make another one of it. Without a result the container ends with exit code 137, as
// one that was killed.
func (c *Cluster) Move(ctx context.Context, job *batchv1.Job, change func(step mover.Step, result *mover.Result) *mover.Result) error {
	config, err := configOf(job)
	if err != nil {
		return err
	}
	pod, err := c.moverPod(ctx, job)
	if err != nil {
		return err
	}
	steps, failed := StepsOf(job), false
	for i, step := range steps {
		result := goodResult(step, config)
		if change != nil {
			result = change(step, result)
		}
		status := endedStep(step, job, result)
		if i < len(steps)-1 {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
		} else {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		if failed = status.State.Terminated.ExitCode != 0; failed {
			break
		}
	}
	pod.Status.Phase = corev1.PodSucceeded
	if failed {
		pod.Status.Phase = corev1.PodFailed
	}
	if err := c.Client.Status().Update(ctx, pod); err != nil {
		return err
	}
	return c.endJob(ctx, job, failed)
}

// Work plays that a step of a Job runs.
func (c *Cluster) Work(ctx context.Context, job *batchv1.Job, step mover.Step) error {
	config, err := configOf(job)
	if err != nil {
		return err
	}
	pod, err := c.moverPod(ctx, job)
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodPending
	steps := StepsOf(job)
	for i, s := range steps {
		status := endedStep(s, job, goodResult(s, config))
		if s == step {
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		}
		if i < len(steps)-1 {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
		} else {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
			pod.Status.Phase = corev1.PodRunning
		}
		if s == step {
			break
		}
	}
	return c.Client.Status().Update(ctx, pod)
}

// StepsOf are the steps of a Job that runs slipway-backup, in order.
func StepsOf(job *batchv1.Job) []mover.Step {
	var steps []mover.Step
	for i := range job.Spec.Template.Spec.InitContainers {
		if name := job.Spec.Template.Spec.InitContainers[i].Name; name == mover.ContainerInstall || name == mover.ContainerDump {
			continue // it is there beside the steps
		}
		steps = append(steps, mover.Step(job.Spec.Template.Spec.InitContainers[i].Name))
	}
	for i := range job.Spec.Template.Spec.Containers {
		steps = append(steps, mover.Step(job.Spec.Template.Spec.Containers[i].Name))
	}
	return steps
}

func configOf(job *batchv1.Job) (mover.Config, error) {
	for _, value := range job.Spec.Template.Annotations {
		var config mover.Config
		if json.Unmarshal([]byte(value), &config) == nil && config.Repository.EncryptionFolder != "" {
			return config, nil
		}
	}
	return mover.Config{}, fmt.Errorf("the Job %q has no configuration of slipway-backup", job.Name)
}

// Pod makes the pod of a Job, which has not started, changed as asked.
func (c *Cluster) Pod(ctx context.Context, job *batchv1.Job, change func(*corev1.Pod)) (*corev1.Pod, error) {
	pod := podOf(job)
	pod.Name, pod.GenerateName = "", job.Name+"-"
	change(pod)
	status := pod.Status
	if err := c.Client.Create(ctx, pod); err != nil {
		return nil, err
	}
	pod.Status = status
	pod.Status.Phase = corev1.PodPending
	return pod, c.Client.Status().Update(ctx, pod)
}

// moverPod makes the pod of a Job, unless it is there. It has no statuses.
func (c *Cluster) moverPod(ctx context.Context, job *batchv1.Job) (*corev1.Pod, error) {
	pod := podOf(job)
	err := c.Client.Create(ctx, pod)
	if client.IgnoreAlreadyExists(err) != nil {
		return nil, err
	}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return nil, err
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return pod, nil
}

// podOf is the pod of a Job.
func podOf(job *batchv1.Job) *corev1.Pod {
	labels := map[string]string{batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)}
	for name, value := range job.Spec.Template.Labels {
		labels[name] = value
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// The pod of an earlier Job of the name may be left: nothing collects garbage.
			Name: job.Name + "-" + string(job.UID[:8]), Namespace: job.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
}

// endedStep is the status of a step that has said this.
func endedStep(step mover.Step, job *batchv1.Job, result *mover.Result) corev1.ContainerStatus {
	ended := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", FinishedAt: metav1.Now(), StartedAt: metav1.Now()}
	if result != nil {
		raw, err := json.Marshal(result)
		if err != nil {
			panic(err)
		}
		ended.Message, ended.ExitCode = string(raw), 1
		if result.OK {
			ended.ExitCode, ended.Reason = 0, "Completed"
		}
	}
	return corev1.ContainerStatus{
		Name: string(step), Image: job.Spec.Template.Spec.Containers[0].Image,
		State: corev1.ContainerState{Terminated: ended},
	}
}

// goodResult is what a step says when all goes well: three files of a thousand bytes, in a repository that grew by 500.
func goodResult(step mover.Step, config mover.Config) *mover.Result {
	result := &mover.Result{Command: string(step), OK: true, RepositoryID: RepositoryID}
	id := fmt.Sprintf("%032x", len(config.Snapshot.Run))
	switch step {
	case mover.StepSnapshot:
		start := time.Now().UTC()
		source := config.Snapshot.SourceTime
		if source.IsZero() {
			source = start
		}
		result.Snapshot = &mover.SnapshotResult{
			ID: id, Run: config.Snapshot.Run, SourceTime: source, Start: start, Stats: mover.Stats{Files: 3, Bytes: 1000}, AddedBytes: 500,
			Manifest: manifestDigest,
		}
	case mover.StepVerify:
		result.Verify = &mover.VerifyResult{Files: 3, Bytes: 1000, ReadFiles: 1, ReadBytes: 300}
		result.Snapshots = []mover.SnapshotLine{{ID: id, Run: config.Verify.Run, Manifest: manifestDigest}}
	case mover.StepCompare:
		volumes := len(config.Drill.Volumes)
		result.Drill = &mover.DrillResult{
			Volumes: volumes, Files: int64(3 * volumes), Bytes: int64(1000 * volumes), Entries: int64(4 * volumes),
		}
	case mover.StepRestore:
		if volumes := len(config.Drill.Volumes); volumes > 0 {
			result.Drill = &mover.DrillResult{Volumes: volumes, Files: int64(3 * volumes), Bytes: int64(1000 * volumes)}
			return result
		}
		snapshot := config.Restore.Snapshot
		if snapshot == "" {
			snapshot = id
		}
		result.Restore = &mover.RestoreResult{
			Snapshot: mover.SnapshotResult{ID: snapshot, SourceTime: time.Now().UTC(), Start: time.Now().UTC()}, Files: 3, Bytes: 1000,
		}
	case mover.StepExpire:
		result.Expire = &mover.ExpireResult{Removed: 1, Kept: 7}
	case mover.StepMaintain:
		result.Maintain = &mover.MaintainResult{BytesAfter: 1 << 20}
	}
	return result
}

// endJob gives a Job the conditions of its controller, unless its owner has deleted it already: the pod has told all.
func (c *Cluster) endJob(ctx context.Context, job *batchv1.Job, failed bool) error {
	now := metav1.Now()
	decided, ended, reason := batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobReasonCompletionsReached
	if failed {
		decided, ended, reason = batchv1.JobFailureTarget, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded
	}
	current := &batchv1.Job{}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(job), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	current.Status.StartTime = &now
	if failed {
		current.Status.Failed = 1
	} else {
		current.Status.Succeeded, current.Status.CompletionTime = 1, &now
	}
	for _, t := range []batchv1.JobConditionType{decided, ended} {
		current.Status.Conditions = append(current.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, Reason: reason, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	return client.IgnoreNotFound(c.Client.Status().Update(ctx, current))
}
