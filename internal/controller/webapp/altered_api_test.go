//go:build apitest

package webapp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// altersDeployments has an admission policy give Deployments of the namespace another history of ReplicaSets.
func (f *fixture) altersDeployments() {
	f.Helper()
	fails := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fails, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "here", Expression: fmt.Sprintf("request.namespace == %q", f.namespace)}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[JSONPatch{op: 'add', path: '/spec/revisionHistoryLimit', value: 7}]"},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: f.namespace},
	}
	for _, object := range []client.Object{policy, binding} {
		f.create(object)
		f.Cleanup(func() { _ = env.Client.Delete(context.Background(), object) })
	}
	environment.Eventually(f, func() error { // the API server hears of the policy a moment later
		labels := map[string]string{"app": "probe"}
		probe := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: goodImage}}},
				},
			},
		}
		if err := env.Client.Create(f.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		return equal(int32(7), *probe.Spec.RevisionHistoryLimit)
	})
}

// What the cluster changes of the Deployment is reported. Its pods are judged all the same: a good revision is remembered, and a bad one
// rolled back.
func TestADeploymentThatTheClusterChangesIsJudgedLikeOthers(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.altersDeployments()
	f.create(f.app())
	f.deployed(runsImage(goodImage))
	environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
	app := f.wait(func(a *slipwayv1alpha1.WebApp) error {
		if a.Status.LastGoodRevision == "" {
			return errors.New("no revision is good")
		}
		return has(a, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonAltered)
	})
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = badImage })
	f.deployed(runsImage(badImage))
	f.stick(imageNotFound())
	f.deployed(runsImage(goodImage))
	f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, slipwayv1alpha1.ReasonImageNotFound)
}
