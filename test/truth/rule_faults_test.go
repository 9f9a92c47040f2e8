//go:build e2e

package truth

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// theRule is in no namespace, and has the name of the trial's.
var theRule = &slipwayv1alpha1.MonitorRule{}

type ruleEdit = func(*slipwayv1alpha1.MonitorRuleSpec)

// watching creates a rule about the applications of the namespace, changed as asked.
func watching(edits ...ruleEdit) func(*trial) {
	return func(f *trial) {
		rule := &slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}, Spec: slipwayv1alpha1.MonitorRuleSpec{
			Kinds: []slipwayv1alpha1.MonitoredKind{{Group: slipwayv1alpha1.SchemeGroupVersion.Group, Kind: "WebApp"}}, Namespaces: []string{f.Namespace},
			When: "health.state == 'Failed'",
		}}
		for _, edit := range edits {
			edit(&rule.Spec)
		}
		if err := f.Cluster.Create(f.Context(), rule); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = f.Cluster.Delete(cleanup(), rule) })
	}
}

func editingRule(edit ruleEdit) func(*trial) {
	return func(f *trial) {
		f.Eventually(func() error {
			rule := &slipwayv1alpha1.MonitorRule{}
			if err := f.Cluster.Get(f.Context(), types.NamespacedName{Name: f.Namespace}, rule); err != nil {
				return err
			}
			edit(&rule.Spec)
			return f.Cluster.Update(f.Context(), rule)
		})
	}
}

func when(expression string) ruleEdit {
	return func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When = expression }
}

// ruleFaults keep a rule of the monitor from being evaluated as it is written.
func ruleFaults() map[string]fault {
	return map[string]fault{
		"a rule that fails for an object": {
			subject: theRule, prepare: creating(), cause: watching(when("object.spec.nothing == 'x'")),
			says: unready(slipwayv1alpha1.ReasonExpressionFailed,
				claim{condition: slipwayv1alpha1.ConditionEvaluationFailed, status: metav1.ConditionTrue, reason: slipwayv1alpha1.ReasonExpressionFailed}),
			names: []string{"WebApp", appName, "nothing"},
			mend:  editingRule(when("health.state == 'Failed'")),
		},
		"a rule for a webhook that the monitor does not have": {
			subject: theRule,
			cause: watching(func(s *slipwayv1alpha1.MonitorRuleSpec) {
				s.Outputs = &slipwayv1alpha1.MonitorOutputs{Webhooks: []string{"nobody"}}
			}),
			says:  unready(slipwayv1alpha1.ReasonUnknownWebhook, stalled),
			names: []string{"nobody", "spec.outputs.webhooks"},
			mend:  editingRule(func(s *slipwayv1alpha1.MonitorRuleSpec) { s.Outputs = nil }),
		},
	}
}
