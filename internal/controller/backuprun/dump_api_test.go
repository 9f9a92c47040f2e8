//go:build apitest

package backuprun_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// dumps has a Backup dump what a StatefulSet has.
func dumps(change ...func(*slipwayv1alpha1.BackupDump)) func(*slipwayv1alpha1.Backup) {
	return func(b *slipwayv1alpha1.Backup) {
		b.Spec.Source = "statefulset/db"
		b.Spec.Dump = &slipwayv1alpha1.BackupDump{Command: []string{"pg_dump", "shop"}}
		for _, c := range change {
			c(b.Spec.Dump)
		}
	}
}

// database makes a StatefulSet with two containers, and a volume.
func (f *fixture) database() *appsv1.StatefulSet {
	f.Helper()
	user := int64(999)
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: f.namespace},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
					Containers: []corev1.Container{
						{Name: "metrics", Image: "metrics:1"},
						{
							Name: "postgres", Image: "postgres:15", SecurityContext: &corev1.SecurityContext{RunAsUser: &user},
							Env:          []corev1.EnvVar{{Name: "PGHOST", Value: "db"}},
							EnvFrom:      []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
							VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
						},
					},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shop-data"},
					}}},
				},
			},
		},
	}
	f.create(set)
	return set
}

func containerNamed(t *testing.T, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no container %q in %+v", name, pod)
	return corev1.Container{}
}

func TestADumpCompletesWhenItsCopyWasReadBack(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, dumps(func(d *slipwayv1alpha1.BackupDump) { d.Container, d.Name = "postgres", "shop.sql" }))
	f.database()
	f.run("shop-now")
	job := f.job("shop-now-0-1")
	pod := job.Spec.Template.Spec
	container := containerNamed(t, pod, "dump")
	if container.Image != "postgres:15" || container.RestartPolicy == nil || *container.RestartPolicy != corev1.ContainerRestartPolicyAlways ||
		len(container.EnvFrom) != 1 || container.Env[0].Value != "db" || *pod.SecurityContext.RunAsUser != 999 || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("the container is %+v of %+v", container, pod)
	}
	for _, volume := range pod.Volumes {
		if volume.PersistentVolumeClaim != nil {
			t.Errorf("the volume %q is mounted", volume.PersistentVolumeClaim.ClaimName)
		}
	}
	run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if diff := cmp.Diff([]slipwayv1alpha1.BackupVolume{{Claim: "dump", Dump: "shop.sql"}}, run.Status.Volumes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	run = f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	if v := run.Status.Volumes[0]; v.Claim != "dump" || v.Dump != "shop.sql" || !v.Verified || v.SnapshotID == "" {
		t.Errorf("status is %+v", run.Status)
	}
	if c := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); c != nil {
		t.Errorf("a dump is told to be %+v", c)
	}
	f.gone("shop-now-0-1")
}

func TestADumpThatFailsIsToldAtOnce(t *testing.T) {
	env.StartOperator(t, nil)
	for name, tc := range map[string]struct {
		kind, reason string
		retry        bool
	}{
		"the command failed":            {"DumpFailed", slipwayv1alpha1.ReasonDumpFailed, false},
		"it gave nothing":               {"SourceEmpty", slipwayv1alpha1.ReasonSourceEmpty, false},
		"its container was killed":      {"DumpLost", slipwayv1alpha1.ReasonPodLost, true},
		"the destination does not hear": {"Unreachable", slipwayv1alpha1.ReasonUnreachable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, dumps())
			f.database()
			f.run("shop-now")
			err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), func(_ mover.Step, r *mover.Result) *mover.Result {
				r.OK, r.Kind, r.Message = false, tc.kind, "the command ended with exit code 1: words"
				return r
			})
			if err != nil {
				t.Fatal(err)
			}
			if tc.retry {
				run := f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying)
				if run.Status.Attempt != 2 || !strings.Contains(run.Status.Message, tc.reason) {
					t.Errorf("attempt %d: %s", run.Status.Attempt, run.Status.Message)
				}
				return
			}
			run := f.wait("shop-now", slipwayv1alpha1.BackupFailed, tc.reason)
			if !strings.Contains(run.Status.Message, "exit code 1: words") || run.Status.Volumes[0].Verified || run.Status.Volumes[0].SnapshotID != "" {
				t.Errorf("status is %+v", run.Status)
			}
		})
	}
}

func TestWhatADumpNeedsOfItsSource(t *testing.T) {
	env.StartOperator(t, nil)
	t.Run("a container that there is not", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, dumps(func(d *slipwayv1alpha1.BackupDump) { d.Container = "redis" }))
		f.database()
		f.run("shop-now")
		run := f.wait("shop-now", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonInvalid)
		if !strings.Contains(run.Status.Message, `StatefulSet "db" has no container "redis" (spec.dump.container`) {
			t.Errorf("the message is %q", run.Status.Message)
		}
	})
	t.Run("a workload that is not there yet", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, dumps())
		f.run("shop-now")
		f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSourceNotFound)
		f.database()
		if c := containerNamed(t, f.job("shop-now-0-1").Spec.Template.Spec, "dump"); c.Image != "metrics:1" {
			t.Errorf("the image is %q, want that of the first container", c.Image)
		}
	})
	t.Run("a Deployment that is no WebApp", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, dumps(), func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "webapp/db" })
		labels := map[string]string{"app": "db"}
		f.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: f.namespace}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}}}},
		}})
		f.run("shop-now")
		f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSourceNotFound)
	})
	t.Run("an image of its own beside a claim", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, dumps(func(d *slipwayv1alpha1.BackupDump) { d.Image = "tools:1" }), func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "shop-data" })
		f.run("shop-now")
		pod := f.job("shop-now-0-1").Spec.Template.Spec
		if c := containerNamed(t, pod, "dump"); c.Image != "tools:1" || *pod.SecurityContext.RunAsUser != mover.NobodyUser {
			t.Errorf("the pod is %+v", pod)
		}
	})
	t.Run("a claim that there is not", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, dumps(func(d *slipwayv1alpha1.BackupDump) { d.Image = "tools:1" }), func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "mistaken" })
		f.run("shop-now")
		f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSourceNotFound)
	})
}

// The name of the user stands in the image, so only the kubelet knows who a container runs as.
func TestADumpRunsAsTheKubeletReports(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, dumps(), func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "statefulset/db" })
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: f.namespace, Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "metrics", Image: "metrics:1"}}},
	}
	f.create(pod)
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.namespace, Name: pod.Name}, pod); err != nil {
			return err
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "metrics", Image: "metrics:1", User: &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 70, GID: 71}}}}
		return env.Client.Status().Update(t.Context(), pod)
	})
	f.database()
	f.run("shop-now")
	if security := f.job("shop-now-0-1").Spec.Template.Spec.SecurityContext; *security.RunAsUser != 70 || *security.RunAsGroup != 71 {
		t.Errorf("the pod runs as %+v", security)
	}
}

// What a run has begun with stays, whatever becomes of the spec meanwhile.
func TestARunOfADumpStaysOne(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, dumps(func(d *slipwayv1alpha1.BackupDump) { d.Image = "tools:1" }), func(b *slipwayv1alpha1.Backup) {
		b.Spec.Source, b.Spec.Credentials = "shop-data", &slipwayv1alpha1.LocalReference{Name: "later"}
	})
	f.run("shop-now")
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSecretNotFound)
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.namespace, Name: "shop"}, f.backup); err != nil {
			return err
		}
		f.backup.Spec.Dump = nil
		return env.Client.Update(t.Context(), f.backup)
	})
	environment.Eventually(t, func() error { // the cache of Backups may be behind that of Secrets
		seen := &slipwayv1alpha1.Backup{}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f.backup), seen); err != nil {
			return err
		}
		if seen.Status.ObservedGeneration < f.backup.Generation {
			return fmt.Errorf("generation %d is observed, not %d", seen.Status.ObservedGeneration, f.backup.Generation)
		}
		return nil
	})
	f.create(f.secret("later", "accessKeyID", "secretAccessKey"))
	run := f.wait("shop-now", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonInvalid)
	if !strings.Contains(run.Status.Message, "spec.dump of the Backup was removed") {
		t.Errorf("the message is %q", run.Status.Message)
	}
}
