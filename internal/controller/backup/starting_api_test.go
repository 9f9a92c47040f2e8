//go:build apitest

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// asker is what asks for a Job.
type asker struct {
	// whose is added to the fields of the Backup that messages name.
	whose string
	// ask makes it, and returns its Job.
	ask func(f *fixture) *batchv1.Job
	// reported is the reason and the message by which it tells of its Job.
	reported func(f *fixture) (reason, message string, err error)
}

// ofBackup tells of a Job of the Backup itself.
func ofBackup(tell func(*slipwayv1alpha1.Backup) (string, string)) func(*fixture) (string, string, error) {
	return func(f *fixture) (string, string, error) {
		backup := &slipwayv1alpha1.Backup{}
		if err := f.get("shop", backup); err != nil {
			return "", "", err
		}
		reason, message := tell(backup)
		return reason, message, nil
	}
}

// askers are all that have Jobs.
var askers = map[string]asker{
	"a run": {
		whose: " of the Backup",
		ask: func(f *fixture) *batchv1.Job {
			f.backup(byRoot)
			return f.job(copying...)
		},
		reported: func(f *fixture) (string, string, error) {
			run := f.runs()[0]
			return run.Status.Reason, run.Status.Message, nil
		},
	},
	"a Restore": {
		ask: func(f *fixture) *batchv1.Job {
			f.copied()
			f.create(&slipwayv1alpha1.Restore{
				ObjectMeta: metav1.ObjectMeta{Name: "again", Namespace: f.namespace},
				Spec: slipwayv1alpha1.RestoreSpec{
					Backup: &slipwayv1alpha1.LocalReference{Name: "shop"},
					Target: slipwayv1alpha1.RestoreTarget{Claim: "restored", Create: &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse("1Gi")}},
					Mover:  &slipwayv1alpha1.BackupMover{RunAs: slipwayv1alpha1.MoverRoot},
				},
			})
			return f.job(mover.StepRestore)
		},
		reported: func(f *fixture) (string, string, error) {
			restore := &slipwayv1alpha1.Restore{}
			err := f.get("again", restore)
			return restore.Status.Reason, restore.Status.Message, err
		},
	},
	"a drill": {
		ask: func(f *fixture) *batchv1.Job {
			f.copied(byRoot)
			f.ask("one")
			return f.job(drilling...)
		},
		reported: ofBackup(func(b *slipwayv1alpha1.Backup) (string, string) {
			c := meta.FindStatusCondition(b.Status.Conditions, slipwayv1alpha1.ConditionDrillPassed)
			if d := b.Status.Drill; d == nil || c == nil || d.Reason != c.Reason || !strings.HasSuffix(c.Message, d.Message) {
				return "", fmt.Sprintf("the status of the drill is %+v, and the condition %+v", d, c)
			}
			return c.Reason, c.Message
		}),
	},
	"the removal of old copies": {
		ask: func(f *fixture) *batchv1.Job {
			f.backup(byRoot, func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "30d" })
			f.move(f.job(copying...), nil)
			return f.job(keeping...)
		},
		reported: ofBackup(func(b *slipwayv1alpha1.Backup) (string, string) {
			c := meta.FindStatusCondition(b.Status.Conditions, slipwayv1alpha1.ConditionRetentionApplied)
			if c == nil {
				return "", "there is no condition"
			}
			return c.Reason, c.Message
		}),
	},
	"the deletion of the repository": {
		ask: func(f *fixture) *batchv1.Job {
			backup := f.backup(byRoot, withDeletion)
			f.move(f.job(copying...), nil)
			f.move(f.job(mover.StepMaintain), nil)
			f.delete(backup)
			return f.jobNamed("shop-delete")
		},
		// Its reason says that it is being deleted, and the message why it is still there.
		reported: ofBackup(func(b *slipwayv1alpha1.Backup) (string, string) { return "", b.Status.Message }),
	},
}

func byRoot(b *slipwayv1alpha1.Backup) {
	b.Spec.Mover = &slipwayv1alpha1.BackupMover{RunAs: slipwayv1alpha1.MoverRoot}
}

// obstacle is what keeps the pod of a Job from starting.
type obstacle struct {
	// said is what the controller of Jobs says in an event. Empty: there is a pod, and put puts the obstacle in its way.
	said string
	put  func(*corev1.Pod)
	// mounted is what the kubelet says of the pod in an event.
	mounted string
	// suspended reports whether somebody suspends the Job.
	suspended    bool
	reason, want string
	// unlessRoot is what is told instead of want of a Job whose pod does not run as root. Empty: the same.
	unlessRoot string
}

func pods(answer string) string { return `Error creating: pods "shop-x-abcde" is forbidden: ` + answer }

func unschedulable(why string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
		}}
	}
}

func waitsFor(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		first := firstOf(pod)
		status := corev1.ContainerStatus{Name: first.Name, Image: first.Image, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}
		if len(pod.Spec.InitContainers) > 0 {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{status}
		} else {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		}
	}
}

func firstOf(pod *corev1.Pod) corev1.Container {
	if len(pod.Spec.InitContainers) > 0 {
		return pod.Spec.InitContainers[0]
	}
	return pod.Spec.Containers[0]
}

// obstacles are in the order in which they come: those without a pod first. WHOSE stands for whose the fields are.
var obstacles = []struct {
	name string
	obstacle
}{
	{"a quota", obstacle{
		said:   pods("exceeded quota: few, requested: limits.memory=1Gi,pods=1, used: limits.memory=1Gi,pods=1, limited: limits.memory=1Gi,pods=1"),
		reason: slipwayv1alpha1.ReasonQuotaExceeded,
		want:   `ResourceQuota "few" does not allow it: limits.memory=1Gi is asked for (spec.mover.resources.limits.memoryWHOSE) and 1Gi of 1Gi is used, pods=1 is asked for and 1 of 1`,
	}},
	{"a quota, told many times", obstacle{
		said:   "(combined from similar events): " + pods("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"),
		reason: slipwayv1alpha1.ReasonQuotaExceeded, want: `ResourceQuota "few" does not allow it`,
	}},
	{"a LimitRange", obstacle{
		said:   pods("maximum memory usage per Container is 64Mi, but limit is 1Gi"),
		reason: slipwayv1alpha1.ReasonPodsForbidden, want: "(spec.mover.resources.limits.memoryWHOSE)",
	}},
	{"Pod Security", obstacle{
		said:   pods(`violates PodSecurity "restricted:latest": runAsNonRoot != true`),
		reason: slipwayv1alpha1.ReasonPodsForbidden, want: "(spec.mover.runAsWHOSE is Root, which the namespace has to allow)",
		unlessRoot: `violates PodSecurity "restricted:latest": runAsNonRoot != true`,
	}},
	{"a missing ServiceAccount", obstacle{
		said:   pods(`error looking up service account team/default: serviceaccount "default" not found`),
		reason: slipwayv1alpha1.ReasonPodsNotCreated, want: `serviceaccount "default" not found`,
	}},
	{"an admission policy", obstacle{
		said:   pods(`ValidatingAdmissionPolicy 'strict' with binding 'all' denied request: exceeded quota: mine`),
		reason: slipwayv1alpha1.ReasonPodsForbidden, want: "ValidatingAdmissionPolicy 'strict'",
	}},
	{"a webhook", obstacle{
		said:   `Error creating: admission webhook "no.example.com" denied the request: (spec.resources.limits is not set)`,
		reason: slipwayv1alpha1.ReasonPodsForbidden, want: `admission webhook "no.example.com" denied the request: (spec.resources.limits is not set)`,
	}},
	{"a missing PriorityClass", obstacle{
		said:   pods("no PriorityClass with name high was found"),
		reason: slipwayv1alpha1.ReasonPodsForbidden, want: "no PriorityClass with name high was found (spec.mover.priorityClassNameWHOSE)",
	}},
	{"a suspension", obstacle{suspended: true, reason: slipwayv1alpha1.ReasonPodsNotCreated, want: "is suspended (its spec.suspend)"}},
	{"no room on a node", obstacle{
		put:    unschedulable("0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint {a: b}."),
		reason: slipwayv1alpha1.ReasonUnschedulable, want: "(spec.mover.resources.requests.memoryWHOSE)",
	}},
	{"a volume that is not bound", obstacle{
		put:    unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
		reason: slipwayv1alpha1.ReasonUnschedulable, want: "it waits for PersistentVolumeClaim ",
	}},
	{"a gate", obstacle{
		put: func(pod *corev1.Pod) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
		},
		reason: slipwayv1alpha1.ReasonUnschedulable, want: `its schedulingGates "example.com/queue"`,
	}},
	{"a missing image", obstacle{
		put:    waitsFor("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "x": failed to resolve reference "x": x: not found`),
		reason: slipwayv1alpha1.ReasonImageNotFound, want: "does not exist: check --backup-image of the operator",
	}},
	{"a Secret without a key", obstacle{
		put:    waitsFor("CreateContainerConfigError", `secret "shop-db" not found`),
		reason: slipwayv1alpha1.ReasonContainerConfigError, want: `secret "shop-db" not found`,
	}},
	{"a volume that cannot be mounted", obstacle{
		put: func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-3 * time.Second)),
			}}
		},
		mounted: `MountVolume.SetUp failed for volume "encryption" : secret "shop-encryption" not found`,
		reason:  slipwayv1alpha1.ReasonMountFailed, want: `secret "shop-encryption" not found`,
	}},
}

// Whatever keeps the pod of a Job from starting is reported by what has asked for the Job.
func TestWhatKeepsThePodOfAJobFromStartingIsTold(t *testing.T) {
	env.StartOperator(t, nil)
	for name, asker := range askers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			job := asker.ask(f)
			for _, o := range obstacles {
				f.meets(job, asker, o.name, o.obstacle)
			}
		})
	}
}

// meets puts an obstacle in the way of a Job, waits until it is told, and takes it away again.
func (f *fixture) meets(job *batchv1.Job, asker asker, name string, o obstacle) {
	f.Helper()
	var put []client.Object
	switch {
	case o.suspended:
		f.suspend(job, true)
		defer f.suspend(job, false)
	case o.said != "":
		put = append(put, f.says("Job", "batch/v1", job.Name, job.UID, "FailedCreate", o.said))
	default:
		pod, err := f.cluster.Pod(f.Context(), job, o.put)
		if err != nil {
			f.Fatal(err)
		}
		if put = append(put, pod); o.mounted != "" {
			put = append(put, f.says("Pod", "v1", pod.Name, pod.UID, "FailedMount", o.mounted))
		}
	}
	if security := job.Spec.Template.Spec.SecurityContext; o.unlessRoot != "" && *security.RunAsUser != 0 {
		o.want = o.unlessRoot
	}
	// A refusal is looked at after half of the time that the Job has waited. Only the first one came soon after it was made.
	f.touch(job)
	environment.Eventually(f, func() error {
		reason, message, err := asker.reported(f)
		want := strings.ReplaceAll(o.want, "WHOSE", asker.whose)
		if err == nil && (!strings.Contains(message, want) || reason != "" && reason != o.reason) {
			err = fmt.Errorf("%s: it says %s: %q, want %s: %q", name, reason, message, o.reason, want)
		}
		return err
	})
	for _, object := range put {
		if err := env.Client.Delete(f.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			f.Fatal(err)
		}
	}
}

// says makes a warning about an object.
func (f *fixture) says(kind, version, name string, uid types.UID, reason, message string) client.Object {
	f.Helper()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "said-", Namespace: f.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: kind, APIVersion: version, Namespace: f.namespace, Name: name, UID: uid},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
	f.create(event)
	return event
}

func (f *fixture) touch(job *batchv1.Job) {
	f.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano())
	if err := env.Client.Patch(f.Context(), job.DeepCopy(), client.RawPatch(types.MergePatchType, body)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) suspend(job *batchv1.Job, suspend bool) {
	body := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	if err := env.Client.Patch(context.WithoutCancel(f.Context()), job.DeepCopy(), client.RawPatch(types.MergePatchType, body)); err != nil {
		f.Error(err)
	}
}

// Whoever looks for what is wrong looks a moment after he has asked. The first look is 1 s after the Job was made.
func TestARefusalIsToldSoonAfterTheJobWasMade(t *testing.T) {
	env.StartOperator(t, nil)
	for name, asker := range askers {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			job := asker.ask(f)
			f.says("Job", "batch/v1", job.Name, job.UID, "FailedCreate", pods("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"))
			began := time.Now()
			environment.Eventually(f, func() error {
				_, message, err := asker.reported(f)
				if err == nil && !strings.Contains(message, `ResourceQuota "few"`) {
					err = errors.New(message)
				}
				return err
			})
			// What a machine with much to do takes for a reconcile is not counted to the second.
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
