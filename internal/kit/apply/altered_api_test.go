//go:build apitest

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// policy has the API server change what is written of some resources in the namespace, as patches in CEL say. What it returns
// takes the policy away.
func (f *fixture) policy(group, resource, patches string) (remove func()) {
	f.Helper()
	name := f.owner.Namespace
	fails := admissionregistrationv1.Fail
	always := admissionregistrationv1.NeverReinvocationPolicy
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fails, ReinvocationPolicy: always,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				rule("", "configmaps"), rule(group, resource),
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "here", Expression: fmt.Sprintf("request.namespace == %q", name)}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "object.kind == 'ConfigMap' ? [JSONPatch{op: 'add', path: '/immutable', value: true}] : " + patches},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := env.Client.Create(f.Context(), object); err != nil {
			f.Fatal(err)
		}
	}
	gone := false
	remove = func() {
		if gone {
			return
		}
		gone = true
		for _, object := range []client.Object{binding, policy} {
			if err := env.Client.Delete(context.Background(), object); err != nil {
				f.Error(err)
			}
		}
		f.isAtWork(false)
	}
	f.Cleanup(remove)
	f.isAtWork(true)
	return remove
}

func rule(group, resource string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}
}

// isAtWork waits until the API server has heard of the policy, or that it is gone.
func (f *fixture) isAtWork(want bool) {
	f.Helper()
	environment.Eventually(f, func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, GenerateName: "probe-"}}
		if err := env.Client.Create(context.Background(), probe, client.DryRunAll); err != nil {
			return err
		}
		if is := probe.Immutable != nil; is != want {
			return fmt.Errorf("the policy is at work: %v", is)
		}
		return nil
	})
}

func (f *fixture) reference() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion("slipway.dev/v1alpha1").WithKind("WebApp").WithName(f.owner.Name).WithUID(f.owner.UID).WithController(true)
}

func (f *fixture) deployment(image string) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "shop"}
	return appsv1ac.Deployment("shop", f.owner.Namespace).
		WithOwnerReferences(f.reference()).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
				corev1ac.Container().WithName("app").WithImage(image).
					WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"), corev1ac.EnvVar().WithName("B").WithValue("")).
					WithResources(corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1024Mi")}))))))
}

func TestWhatTheAPIServerChangesIsToldUntilItNoLongerDoes(t *testing.T) {
	tests := map[string]struct {
		patches string
		// want is what is said of the fields; empty: nothing is wrong.
		want string
	}{
		"the image":            {`[JSONPatch{op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'shop:3'}]`, "spec.template.spec.containers[app].image is"},
		"the number of pods":   {`[JSONPatch{op: 'replace', path: '/spec/replicas', value: 1}]`, "spec.replicas is"},
		"a field is taken out": {`[JSONPatch{op: 'remove', path: '/spec/template/spec/containers/0/resources'}]`, "spec.template.spec.containers[app].resources.requests.cpu, spec.template.spec.containers[app].resources.requests.memory are"},
		"an item is taken out": {`[JSONPatch{op: 'remove', path: '/spec/template/spec/containers/0/env/0'}]`, "spec.template.spec.containers[app].env[A].name, spec.template.spec.containers[app].env[A].value are"},
		"what is not stated":   {`[JSONPatch{op: 'add', path: '/spec/template/spec/priorityClassName', value: 'high'}, JSONPatch{op: 'add', path: '/spec/template/spec/containers/0/env/-', value: Object.spec.template.spec.containers.env{name: 'C', value: 'x'}}, JSONPatch{op: 'add', path: '/metadata/labels', value: {'their': 'own'}}]`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			clock := clocktesting.NewFakeClock(time.Now())
			counted := &counter{Client: env.Client}
			f.applier.Client, f.applier.Clock = counted, clock
			reported := f.repairs()
			apply := func(image string) error {
				current := &appsv1.Deployment{}
				err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.owner.Namespace, Name: "shop"}, current)
				if client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				_, err = f.applier.Apply(t.Context(), f.owner, apply.Child{Desired: f.deployment(image), Current: current})
				return err
			}
			is := func(when string, err error, writes int) {
				t.Helper()
				if (err != nil) != (tc.want != "") {
					t.Fatalf("%s: %v", when, err)
				}
				if e := (&outcome.Error{}); err != nil && (!errors.As(err, &e) || e.Kind != outcome.Blocked || e.Reason != slipwayv1alpha1.ReasonAltered ||
					!strings.Contains(e.Message, `Deployment "shop": `+tc.want+" not as it was applied") || e.After <= 0) {
					t.Errorf("%s: %+v", when, e)
				}
				if diff := cmp.Diff(writes, counted.patches); diff != "" {
					t.Errorf("%s: requests, -want +got:\n%s", when, diff)
				}
				counted.patches = 0
			}
			remove := f.policy("apps", "deployments", tc.patches)
			is("made", apply("shop:1"), 1)
			is("again", apply("shop:1"), 0)
			is("something else", apply("shop:2"), 1)
			is("that again", apply("shop:2"), 0)
			if tc.want == "" {
				return
			}
			clock.Step(5 * time.Second)
			is("after a pause", apply("shop:2"), 1)
			clock.Step(5 * time.Second)
			is("the pause has grown", apply("shop:2"), 0)
			f.forget()
			f.applier.Client, f.applier.Clock = counted, clock
			is("the operator has started anew", apply("shop:2"), 1)
			remove()
			is("nobody knows yet", apply("shop:2"), 0)
			clock.Step(5 * time.Minute)
			tc.want = ""
			is("it is gone", apply("shop:2"), 1)
			is("as desired", apply("shop:2"), 0)
			got := &appsv1.Deployment{}
			if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.owner.Namespace, Name: "shop"}, got); err != nil {
				t.Fatal(err)
			}
			if c := got.Spec.Template.Spec.Containers[0]; c.Image != "shop:2" || *got.Spec.Replicas != 2 || len(c.Resources.Requests) != 2 || len(c.Env) != 2 {
				t.Errorf("it is %+v", got.Spec)
			}
			if len(*reported) > 1 { // it is told that what had been changed was restored
				t.Errorf("repairs were told: %q", *reported)
			}
		})
	}
}

// What somebody else changes is restored, while the API server changes something else.
func TestAnAlteredChildIsRepairedAllTheSame(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy("", "services", `[JSONPatch{op: 'replace', path: '/metadata/labels/desired', value: 'no'}]`)
	f.applier.Clock = clocktesting.NewFakeClock(time.Now())
	for _, edit := range []func(*corev1.Service){func(*corev1.Service) {}, func(s *corev1.Service) { s.Spec.Selector["app"] = "other" }} {
		if current := f.current(); current.UID != "" {
			f.edit(edit)
		}
		if _, err := f.apply(80, f.current()); err == nil || !strings.Contains(err.Error(), `Service "shop": metadata.labels.desired is not`) {
			t.Errorf("it is said: %v", err)
		}
		if got := f.current(); got.Spec.Selector["app"] != "shop" {
			t.Errorf("it is %+v", got.Spec)
		}
	}
}

// What is only made once is never applied again, so that it was changed is reported once.
func TestAnAlteredJobIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy("batch", "jobs", `[JSONPatch{op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'evil:1'}]`)
	var reported []string
	f.applier.Altered = func(_ client.Object, what string) { reported = append(reported, what) }
	job := batchv1ac.Job("shop", f.owner.Namespace).WithOwnerReferences(f.reference()).WithSpec(batchv1ac.JobSpec().WithTemplate(
		corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().WithRestartPolicy(corev1.RestartPolicyNever).
			WithContainers(corev1ac.Container().WithName("app").WithImage("shop:1")))))
	current := &batchv1.Job{}
	for range 2 {
		if _, err := f.applier.CreateOnly(t.Context(), f.owner, apply.Child{Desired: job, Current: current}); err != nil {
			t.Fatal(err)
		}
	}
	if len(reported) != 1 || !strings.Contains(reported[0], `Job "shop": spec.template.spec.containers[app].image is not as it was applied`) {
		t.Errorf("told %q", reported)
	}
}

// counter counts applies.
type counter struct {
	client.Client
	patches int
}

func (c *counter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.patches++
	return c.Client.Patch(ctx, object, patch, options...)
}
