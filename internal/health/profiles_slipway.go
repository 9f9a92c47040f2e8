package health

import slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"

// slipwayProfiles are Slipway's own kinds. Their conditions are those of api/v1alpha1.
func slipwayProfiles() []Profile {
	ready := `.status.conditions[type="Ready"]`
	stalled := failedWhen(status(slipwayv1alpha1.ConditionStalled, "True"))
	isReady := healthyWhen(status(slipwayv1alpha1.ConditionReady, "True"))
	notReady := progressingWhen(status(slipwayv1alpha1.ConditionReady, "False", "Unknown"))
	degraded := Rule{When: when(status(slipwayv1alpha1.ConditionDegraded, "True")), State: Failed, Words: ready}
	paused := failedWhen(reason(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonPaused), status(slipwayv1alpha1.ConditionReady, "False"))
	ended := []Rule{
		failedWhen(is(".status.phase", string(slipwayv1alpha1.BackupFailed))),
		stalled,
		healthyWhen(is(".status.phase", string(slipwayv1alpha1.BackupCompleted))),
		progressingWhen(is(".status.phase", string(slipwayv1alpha1.BackupPending), string(slipwayv1alpha1.BackupRunning))),
	}
	return []Profile{
		{Group: slipwayv1alpha1.GroupName, Kinds: []string{"WebApp"}, Rules: []Rule{
			stalled,
			{When: when(status(slipwayv1alpha1.ConditionRolledBack, "True")), State: Failed, Reason: slipwayv1alpha1.ReasonRolledBack},
			isReady, paused, degraded, notReady,
		}},
		{Group: slipwayv1alpha1.GroupName, Kinds: []string{"APIGateway"}, Rules: []Rule{stalled, isReady, degraded, notReady}},
		{Group: slipwayv1alpha1.GroupName, Kinds: []string{"Backup"}, Rules: []Rule{
			stalled, isReady,
			failedWhen(reason(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonRunFailed, slipwayv1alpha1.ReasonCopyTooOld, slipwayv1alpha1.ReasonDrillFailed), status(slipwayv1alpha1.ConditionReady, "False")),
			notReady,
		}},
		{Group: slipwayv1alpha1.GroupName, Kinds: []string{"BackupRun", "Restore"}, Rules: ended},
		{Group: slipwayv1alpha1.GroupName, Kinds: []string{"GatewayPolicy"}, Items: []Items{{Path: ".status.ancestors", Whole: []string{slipwayv1alpha1.ConditionPolicyAccepted}}}},
		hasNoStatus(slipwayv1alpha1.GroupName, "GatewayParameters"),
		// Later kinds follow the same conventions.
		{Group: slipwayv1alpha1.GroupName, Whole: []string{slipwayv1alpha1.ConditionReady}},
	}
}
