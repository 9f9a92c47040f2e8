package health

// certManagerProfiles are the kinds of cert-manager.
func certManagerProfiles() []Profile {
	const group, acme = "cert-manager.io", "acme.cert-manager.io"
	return []Profile{
		{Group: group, Kinds: []string{"Certificate"}, Rules: []Rule{
			healthyWhen(status("Ready", "True")),
			{When: when(reason("Issuing", "Failed"), status("Issuing", "False")), State: Failed},
			failedWhen(reason("Ready", "Expired", "Failed", "ConfigError", "NoConfig")),
			progressingWhen(status("Issuing", "True")),
			progressingWhen(status("Ready", "False", "Unknown")),
		}},
		{Group: group, Kinds: []string{"Issuer", "ClusterIssuer"}, Whole: []string{"Ready"}},
		{Group: group, Kinds: []string{"CertificateRequest"}, Rules: []Rule{
			failedWhen(status("Denied", "True")),
			failedWhen(status("InvalidRequest", "True")),
			failedWhen(reason("Ready", "Failed", "Denied"), status("Ready", "False")),
			healthyWhen(status("Ready", "True")),
			progressingWhen(status("Ready", "False", "Unknown")),
		}},
		{Group: acme, Kinds: []string{"Order", "Challenge"}, Rules: []Rule{
			failedWhen(is(".status.state", "invalid", "expired", "errored")),
			healthyWhen(is(".status.state", "valid")),
			progressingWhen(is(".status.state", "pending", "processing", "ready", "unknown")),
		}},
	}
}

// fluxProfiles are the kinds of Flux. All have Ready, and Stalled and Reconciling while these are true.
func fluxProfiles() []Profile {
	suspended := when(is(".spec.suspend", "true"))
	profiles := []Profile{{
		Group: "source.toolkit.fluxcd.io", Kinds: []string{"HelmRepository"}, Suspended: suspended, Whole: []string{"Ready"}, Rules: []Rule{{
			When:  when(is(".spec.type", "oci"), isUnset(".status.conditions")),
			State: Unknown, Reason: ReasonHasNoStatus, Message: "nothing writes a status of a HelmRepository of the type oci",
		}},
	}}
	for _, group := range []string{"kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "image.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io"} {
		profiles = append(profiles, Profile{Group: group, Suspended: suspended, Whole: []string{"Ready"}})
	}
	return append(profiles, Profile{
		Group: "helm.toolkit.fluxcd.io", Suspended: suspended, Whole: []string{"Ready"},
		Conditions: map[string]Class{"Released": ClassPart, "TestSuccess": ClassPart, "Remediated": ClassIgnored},
	})
}

// argoProfiles are the kinds of Argo CD, Argo Rollouts and Argo Workflows.
func argoProfiles() []Profile {
	const group = "argoproj.io"
	return []Profile{
		{Group: group, Kinds: []string{"Application"}, Rules: []Rule{
			{When: when(is(`.status.conditions[].type`, "ComparisonError", "InvalidSpecError", "UnknownError")), State: Failed},
			{
				When:  when(is(".status.health.status", "Healthy"), is(".status.sync.status", "Synced"), is(".status.operationState.phase", "Failed", "Error")),
				State: Healthy, Message: "its last operation failed",
			},
			failedWhen(is(".status.operationState.phase", "Failed", "Error")),
			{When: when(is(".status.health.status", "Degraded")), State: Failed},
			progressingWhen(is(".status.operationState.phase", "Running", "Terminating")),
			progressingWhen(is(".status.health.status", "Progressing", "Missing")),
			suspendedWhen(is(".status.health.status", "Suspended")),
			{When: when(is(".status.sync.status", "OutOfSync")), State: Progressing, Message: "the cluster does not hold what the source says"},
			healthyWhen(is(".status.health.status", "Healthy"), is(".status.sync.status", "Synced")),
			{When: when(isSet(".status")), State: Unknown, Reason: ReasonNoSignal, Message: "Argo CD does not say whether it is healthy and in sync"},
		}},
		{Group: group, Kinds: []string{"ApplicationSet"}, Rules: []Rule{
			failedWhen(status("ErrorOccurred", "True")),
			failedWhen(status("ParametersGenerated", "False")),
			healthyWhen(status("ResourcesUpToDate", "True")),
			progressingWhen(status("ResourcesUpToDate", "False", "Unknown")),
		}},
		{Group: group, Kinds: []string{"Rollout"}, Suspended: nil, Rules: []Rule{
			failedWhen(status("InvalidSpec", "True")),
			failedWhen(is(".status.phase", "Degraded", "Error")),
			failedWhen(reason("Progressing", "RolloutAborted", "ProgressDeadlineExceeded")),
			{When: when(is(".status.phase", "Paused")), State: Unknown, Reason: ReasonSuspended},
			suspendedWhen(is(".spec.paused", "true")), suspendedWhen(isSet(".status.pauseConditions")),
			progressingWhen(is(".status.phase", "Progressing")),
			healthyWhen(is(".status.phase", "Healthy")),
		}},
		{Group: group, Kinds: []string{"Workflow", "AnalysisRun", "Experiment"}, Rules: []Rule{
			failedWhen(is(".status.phase", "Failed", "Error")),
			progressingWhen(is(".status.phase", "Pending", "Running", "Inconclusive")),
			healthyWhen(is(".status.phase", "Succeeded", "Successful")),
		}},
		hasNoStatus(group, "AppProject", "WorkflowTemplate", "ClusterWorkflowTemplate", "AnalysisTemplate", "ClusterAnalysisTemplate"),
	}
}

// tektonProfiles are the runs of Tekton. Succeeded is Unknown while a run runs.
func tektonProfiles() []Profile {
	const group = "tekton.dev"
	return []Profile{
		{Group: group, Kinds: []string{"TaskRun", "PipelineRun", "CustomRun"}, Rules: []Rule{
			failedWhen(status("Succeeded", "False")),
			progressingWhen(status("Succeeded", "Unknown")),
			healthyWhen(status("Succeeded", "True")),
		}},
		hasNoStatus(group, "Task", "Pipeline", "StepAction"),
	}
}
