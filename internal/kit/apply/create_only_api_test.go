//go:build apitest

package apply_test

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// job states a Job that runs an image.
func (f *fixture) job(image string) *batchv1ac.JobApplyConfiguration {
	return batchv1ac.Job("shop", f.owner.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion("slipway.dev/v1alpha1").WithKind("WebApp").WithName(f.owner.Name).WithUID(f.owner.UID).WithController(true)).
		WithSpec(batchv1ac.JobSpec().WithTemplate(corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().
			WithRestartPolicy(corev1.RestartPolicyNever).
			WithContainers(corev1ac.Container().WithName("run").WithImage(image)))))
}

// theJob is the Job as the API server has it, or empty.
func (f *fixture) theJob() *batchv1.Job {
	f.Helper()
	job := &batchv1.Job{}
	err := env.Client.Get(f.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "shop"}, job)
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	return job
}

func (f *fixture) createOnly(image string, current *batchv1.Job) (apply.Change, error) {
	return f.applier.CreateOnly(f.Context(), f.owner, apply.Child{Desired: f.job(image), Current: current})
}

func TestAJobIsMadeOnceAndNeverChanged(t *testing.T) {
	f := newFixture(t)
	current := &batchv1.Job{}
	if change, err := f.createOnly("run:1", current); err != nil || change != apply.Created || current.UID == "" {
		t.Fatalf("made: %s, %v, UID %q", change, err, current.UID)
	}
	made := f.theJob()
	for name, seen := range map[string]*batchv1.Job{"the cache shows it": made.DeepCopy(), "the cache does not": {}} {
		change, err := f.createOnly("run:2", seen)
		if err != nil || change != apply.Unchanged || seen.UID != made.UID {
			t.Errorf("%s: %s, %v, UID %q", name, change, err, seen.UID)
		}
	}
	if got := f.theJob(); got.ResourceVersion != made.ResourceVersion {
		t.Errorf("it was changed: image %q", got.Spec.Template.Spec.Containers[0].Image)
	}
}

func TestAJobThatHasGoneIsRecreated(t *testing.T) {
	f := newFixture(t)
	if _, err := f.createOnly("run:1", &batchv1.Job{}); err != nil {
		t.Fatal(err)
	}
	first := f.theJob()
	if err := env.Client.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		if f.theJob().UID != "" {
			return errors.New("it is still there")
		}
		return nil
	})
	change, err := f.createOnly("run:2", &batchv1.Job{})
	if got := f.theJob(); err != nil || change != apply.Created || got.UID == first.UID || got.Spec.Template.Spec.Containers[0].Image != "run:2" {
		t.Errorf("%s, %v", change, err)
	}
}

func TestAJobThatIsNotOursIsRefusedAndOneThatGoesIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(f *fixture, job *batchv1.Job)
		kind   outcome.Kind
		reason string
	}{
		"somebody else's": {func(*fixture, *batchv1.Job) {}, outcome.Blocked, slipwayv1alpha1.ReasonNameConflict},
		"going": {func(f *fixture, job *batchv1.Job) {
			job.Finalizers = []string{"example.com/hold"}
			job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.owner, slipwayv1alpha1.SchemeGroupVersion.WithKind("WebApp"))}
		}, outcome.Waiting, slipwayv1alpha1.ReasonTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.owner.Namespace}}
			job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "run", Image: "run:0"}}}
			tc.change(f, job)
			if err := env.Client.Create(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			if job.Finalizers != nil {
				if err := env.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					t.Fatal(err)
				}
			}
			before := f.theJob()
			for shown, current := range map[string]*batchv1.Job{"the cache shows it": before.DeepCopy(), "the cache does not": {}} {
				_, err := f.createOnly("run:1", current)
				var refusal *outcome.Error
				if !errors.As(err, &refusal) || refusal.Kind != tc.kind || refusal.Reason != tc.reason {
					t.Errorf("%s: the error is %v", shown, err)
				}
			}
			if after := f.theJob(); after.ResourceVersion != before.ResourceVersion {
				t.Error("it was changed")
			}
			if job.Finalizers != nil {
				environment.Eventually(t, func() error {
					after := f.theJob()
					after.Finalizers = nil
					return env.Client.Update(t.Context(), after)
				})
			}
		})
	}
}
