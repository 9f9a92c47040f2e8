//go:build e2e

package truth

import (
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// policyName is what the admission policy of a trial is called. It is for one namespace
// only.
const policyName = "no-demo"

// admissionFaults are rules of the cluster that do not allow the pods.
func admissionFaults() map[string]fault {
	return map[string]fault{
		"a quota without pods": {
			subject: theApp, usual: true,
			cause: func(f *trial) {
				f.Create(quota(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}))
				creating()(f)
			},
			known: notCreated,
			says:  trouble(slipwayv1alpha1.ReasonQuotaExceeded, servesNobody), warns: slipwayv1alpha1.ReasonQuotaExceeded,
			names: []string{`Deployment "shop"`, `ResourceQuota "small"`, "pods=1", "spec.replicas"},
			// The ReplicaSet's controller backs off for minutes, unless the operator has it look again.
			mend: func(f *trial) { f.Kubectl("delete", "resourcequota", "small") }, good: rolledOut,
		},
		"a quota with too little memory": {
			subject: theApp,
			cause: func(f *trial) {
				f.Create(quota(corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("100Mi")}))
				creating(requests(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")}))(f)
			},
			known: notCreated,
			says:  trouble(slipwayv1alpha1.ReasonQuotaExceeded, servesNobody),
			names: []string{`ResourceQuota "small"`, "spec.resources.requests.memory", "100Mi"},
			mend:  restoringWith(requests(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("50Mi")})), good: rolledOut,
		},
		"a range of limits": {
			subject: theApp, usual: true,
			cause: func(f *trial) {
				f.Create(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
					Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
				}}}})
				creating(limits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}))(f)
			},
			known: notCreated,
			says:  trouble(slipwayv1alpha1.ReasonPodsForbidden, servesNobody),
			names: []string{`Deployment "shop"`, "64Mi", "128Mi"},
			// The new pods are slow: meanwhile nobody hears of the limit of the old ones.
			mend: restoringWith(limits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}), env("START_DELAY", "4s")), good: rolledOut,
			forgets: "128Mi",
		},
		"an admission policy": {
			subject: theApp, usual: true,
			cause: func(f *trial) { f.forbidPods(); creating(env("FORBIDDEN", "yes"))(f) },
			known: notCreated,
			says:  trouble(slipwayv1alpha1.ReasonPodsForbidden, servesNobody),
			names: []string{`Deployment "shop"`, policyName, "nothing is forbidden here"},
			mend:  restoring, good: rolledOut,
		},
		"an admission policy that changes the Deployment": {
			subject: theApp, usual: true,
			prepare: (*trial).alterDeployments, cause: creating(),
			says: []claim{
				{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonAltered, named: true},
			},
			names: []string{`Deployment "shop"`, "revisionHistoryLimit", "admission policy"},
		},
		"a ServiceAccount that does not exist": {
			subject: theApp,
			cause:   creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.ServiceAccountName = "nobody" }),
			known:   notCreated,
			says:    trouble(slipwayv1alpha1.ReasonPodsNotCreated, servesNobody),
			names:   []string{`Deployment "shop"`, "nobody", "spec.serviceAccountName"},
			mend:    restoring, good: rolledOut,
		},
	}
}

func quota(hard corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
}

func restoringWith(edits ...specEdit) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, appName, &slipwayv1alpha1.WebApp{}, func(app *slipwayv1alpha1.WebApp) { app.Spec = f.app(edits...).Spec })
	}
}

// forbidPods has a policy refuse, in the trial's namespace, pods with the variable
// FORBIDDEN, and waits until it does.
func (f *trial) forbidPods() {
	f.Helper()
	name := policyName + "-" + f.Namespace
	here := &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: f.Namespace},
	}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: `object.spec.containers.all(c, !has(c.env) || !c.env.exists(e, e.name == "FORBIDDEN"))`,
				Message:    "nothing is forbidden here",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, MatchResources: here, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := f.Cluster.Create(f.Context(), object); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = f.Cluster.Delete(cleanup(), object) })
	}
	f.Eventually(func() error { return f.refused("FORBIDDEN") })
}

// alterDeployments has a policy give Deployments of the trial's namespace another history of ReplicaSets, and waits until it does.
func (f *trial) alterDeployments() {
	f.Helper()
	name := "alter-" + f.Namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: ptr(admissionregistrationv1.Fail), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "here", Expression: fmt.Sprintf("request.namespace == %q", f.Namespace)}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[JSONPatch{op: 'add', path: '/spec/revisionHistoryLimit', value: 7}]"},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := f.Cluster.Create(f.Context(), object); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = f.Cluster.Delete(cleanup(), object) })
	}
	f.Eventually(func() error { // the API server hears of the policy a moment later
		labels := map[string]string{"app": "probe"}
		probe := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "probe"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: cluster.DemoImage}}},
				},
			},
		}
		if err := f.Cluster.Create(f.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if *probe.Spec.RevisionHistoryLimit != 7 {
			return errors.New("no Deployment is changed yet")
		}
		return nil
	})
}

// servingFaults keep pods that run from serving.
func servingFaults() map[string]fault {
	return map[string]fault{
		"a port that nothing listens on": {
			subject: theApp, usual: true,
			cause: creating(port(9090), deadline(10)), known: overdue,
			says:  trouble(slipwayv1alpha1.ReasonProbeFailing, servesNobody),
			names: []string{`pod "shop-`, "9090", "refused", "spec.port"},
			mend:  restoring, good: rolledOut,
		},
		"a path of the probe that is answered with an error": {
			subject: theApp,
			cause:   creating(healthPath("/never"), deadline(10)), known: overdue,
			says:  trouble(slipwayv1alpha1.ReasonProbeFailing, servesNobody),
			names: []string{`pod "shop-`, "/never", "503", "spec.health.path"},
			mend:  restoring, good: rolledOut,
		},
		"pods that stop answering with success": {
			subject: theApp, usual: true,
			start: creating(), cause: failing("1h"), known: notReadyAndProbed(),
			says: trouble(slipwayv1alpha1.ReasonProbeFailing, servesNobody), warns: slipwayv1alpha1.ReasonProbeFailing,
			names: []string{`pod "shop-`, "8080", "/healthz"}, answer: "500",
			mend: failing("0s"), good: rolledOut,
		},
		"a new port that nothing listens on, after one that works": {
			subject: theApp, usual: true,
			start: creating(), cause: editing(port(9090), deadline(10)), known: overdue,
			says: trouble(slipwayv1alpha1.ReasonProbeFailing, serves),
			ends: rolledBack(slipwayv1alpha1.ReasonProbeFailing),
			mend: restoring, good: rolledOut,
		},
		"an application that starts slowly": {
			// It is on its way, and nothing is wrong with it.
			subject: theApp, usual: true, innocent: true,
			cause: creating(env("START_DELAY", "6s")),
			says: []claim{
				{condition: slipwayv1alpha1.ConditionProgressing, status: metav1.ConditionTrue, reason: slipwayv1alpha1.ReasonRolloutInProgress},
				{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonRolloutInProgress},
				{condition: slipwayv1alpha1.ConditionDegraded, status: metav1.ConditionFalse},
				notStalled,
			},
			mend: func(*trial) {}, good: rolledOut,
		},
	}
}

// rolledBack is what an application says that runs its last good revision again: why, too.
func rolledBack(reason string) []claim {
	return []claim{
		{condition: slipwayv1alpha1.ConditionRolledBack, status: metav1.ConditionTrue, reason: reason},
		{condition: slipwayv1alpha1.ConditionDegraded, status: metav1.ConditionTrue},
		serves, stalled,
	}
}

// notReadyAndProbed tells a pod that is not ready any more after it was.
func notReadyAndProbed() func(client.Object) bool {
	return podCondition(corev1.PodReady, corev1.ConditionFalse)
}

// childFaults are about what belongs to an application besides its pods.
func childFaults() map[string]fault {
	paused := func(paused bool) specEdit {
		return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.Paused = paused }
	}
	return map[string]fault{
		"a Service of somebody else": {
			subject: theApp, usual: true,
			cause: func(f *trial) {
				f.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: appName}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
				creating()(f)
			},
			known: func(o client.Object) bool { _, ok := o.(*slipwayv1alpha1.WebApp); return ok },
			says:  trouble(slipwayv1alpha1.ReasonNameConflict, stalled), warns: slipwayv1alpha1.ReasonNameConflict,
			names: []string{`Service "shop"`},
			mend:  func(f *trial) { f.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: appName}}) }, good: rolledOut,
		},
		"a pause": {
			subject: theApp, usual: true, start: creating(), cause: editing(paused(true)),
			says: []claim{{condition: slipwayv1alpha1.ConditionProgressing, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonPaused}, serves},
			mend: editing(paused(false)),
		},
		"an autoscaler that cannot measure": {
			subject: theApp, usual: true,
			cause: creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
				s.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr(int32(1)), MaxReplicas: 3}
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}
			}),
			known: cannotScale,
			says:  trouble(slipwayv1alpha1.ReasonAutoscalerFailing, serves),
			names: []string{`HorizontalPodAutoscaler "shop"`, "spec.autoscaling"},
			mend:  restoring, good: rolledOut,
		},
		"a deletion in the foreground": {
			subject: theApp, usual: true, start: creating(),
			cause: func(f *trial) {
				f.hold()
				f.Delete(f.app(), client.PropagationPolicy(metav1.DeletePropagationForeground))
			},
			says: []claim{{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonTerminating}},
		},
		"a namespace that is going": {
			subject: theApp, usual: true, start: creating(),
			cause: func(f *trial) {
				f.hold()
				if err := f.Cluster.Delete(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}); err != nil {
					f.Fatal(err)
				}
			},
			// Its own deletion begins when the last pod of the namespace has ended.
			says: []claim{{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonNamespaceTerminating}},
			ends: []claim{{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonTerminating}},
		},
	}
}

// cannotScale tells an autoscaler that has said so.
func cannotScale(o client.Object) bool {
	autoscaler, ok := o.(*autoscalingv2.HorizontalPodAutoscaler)
	return ok && slices.ContainsFunc(autoscaler.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse
	})
}

// hold keeps the application from going until the trial ends.
func (f *trial) hold() {
	f.Helper()
	const finalizer = "slipway.dev/truth"
	livetest.Update(f.Fixture, appName, &slipwayv1alpha1.WebApp{}, func(app *slipwayv1alpha1.WebApp) { app.Finalizers = []string{finalizer} })
	f.Cleanup(func() {
		_, _ = f.RunKubectl(cleanup(), "patch", "webapp", appName, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
}
