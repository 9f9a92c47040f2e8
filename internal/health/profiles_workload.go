package health

// workloadProfiles are the kinds of Kubernetes that run pods, or belong to what does.
func workloadProfiles() []Profile { //nolint:funlen // a table
	const lacksPods = "fewer pods are ready than spec.replicas asks for"
	ready := covers(".status.readyReplicas", ".spec.replicas", 1)
	scaledToZero := Rule{When: when(is(".spec.replicas", "0"), isUnset(".status.readyReplicas")), State: Healthy, Message: "nothing runs, as spec.replicas says"}
	creationFails := failedWhen(status("ReplicaFailure", "True"))
	return []Profile{
		{Group: "apps", Kinds: []string{"Deployment"}, evaluate: evaluateDeployment},
		{Kinds: []string{"Pod"}, evaluate: evaluatePodObject},
		{Group: "batch", Kinds: []string{"Job"}, evaluate: evaluateJob},
		{Group: "apps", Kinds: []string{"StatefulSet"}, Rules: []Rule{
			notObservedYet(),
			scaledToZero,
			healthyWhen(ready, Test{Field: ".status.updateRevision", Same: ".status.currentRevision"}),
			{When: when(ready, is(".spec.updateStrategy.type", "OnDelete")), State: Healthy},
			{When: when(ready, isNot(".spec.updateStrategy.rollingUpdate.partition", "0")), State: Healthy},
			{When: when(ready), State: Progressing, Reason: "RolloutInProgress", Message: "not every pod is of the current template"},
			{When: when(isSet(".status.observedGeneration")), State: Progressing, Reason: ReasonNotReady, Message: lacksPods},
		}},
		{Group: "apps", Kinds: []string{"DaemonSet"}, Rules: []Rule{
			notObservedYet(),
			{When: when(is(".status.desiredNumberScheduled", "0")), State: Healthy, Message: "no node is to run it"},
			{
				When:  when(covers(".status.numberAvailable", ".status.desiredNumberScheduled", 1), covers(".status.updatedNumberScheduled", ".status.desiredNumberScheduled", 1)),
				State: Healthy,
			},
			{
				When:  when(covers(".status.numberAvailable", ".status.desiredNumberScheduled", 1), is(".spec.updateStrategy.type", "OnDelete")),
				State: Healthy,
			},
			{
				When:  when(covers(".status.numberAvailable", ".status.desiredNumberScheduled", 1)),
				State: Progressing, Reason: "RolloutInProgress", Message: "not every pod is of the current template",
			},
			{When: when(isSet(".status.desiredNumberScheduled")), State: Progressing, Reason: ReasonNotReady, Message: "not every node that is to run it has a pod that is ready"},
		}},
		{Group: "apps", Kinds: []string{"ReplicaSet"}, Rules: replicaRules(creationFails, scaledToZero)},
		{Kinds: []string{"ReplicationController"}, Rules: replicaRules(creationFails, scaledToZero)},
		{Group: "batch", Kinds: []string{"CronJob"}, Suspended: when(is(".spec.suspend", "true")), Rules: []Rule{
			{When: when(isSet(".status.active")), State: Progressing, Reason: ReasonJobRunning, Message: "a Job of it runs"},
			healthyWhen(Test{Field: ".status.lastSuccessfulTime", NotBefore: ".status.lastScheduleTime"}),
			// A Job that was taken away, and one that has failed, look alike here. The Job itself tells.
			{
				When:  when(isSet(".status.lastScheduleTime"), isUnset(".status.lastSuccessfulTime")),
				State: Unknown, Reason: "NeverSucceeded", Message: "no Job of it has succeeded yet; its Jobs tell whether one has failed",
			},
			{
				When:  when(isSet(".status.lastScheduleTime")),
				State: Failed, Reason: "LastJobFailed", Message: "the last Job of it has not succeeded",
			},
		}},
		{Group: "autoscaling", Kinds: []string{"HorizontalPodAutoscaler"}, Rules: []Rule{
			failedWhen(status("AbleToScale", "False")),
			{When: when(reason("ScalingActive", "ScalingDisabled"), status("ScalingActive", "False")), State: Healthy},
			lateWhen(metricsGrace, status("ScalingActive", "False")),
			healthyWhen(status("ScalingActive", "True"), status("AbleToScale", "True")),
		}},
		{Group: "policy", Kinds: []string{"PodDisruptionBudget"}, Rules: []Rule{
			failedWhen(status("DisruptionAllowed", "False"), reason("DisruptionAllowed", "SyncFailed")),
			notObservedYet(),
			healthyWhen(covers(".status.currentHealthy", ".status.desiredHealthy", 0)),
			{When: when(isSet(".status.desiredHealthy")), State: Progressing, Reason: "InsufficientPods", Message: "fewer pods are healthy than the budget asks for"},
		}},
		{Kinds: []string{"PersistentVolumeClaim"}, Rules: []Rule{
			{When: when(is(".status.phase", "Lost")), State: Failed, Message: "its PersistentVolume is gone"},
			failedWhen(status("ControllerResizeError", "True")),
			failedWhen(status("NodeResizeError", "True")),
			failedWhen(status("ModifyVolumeError", "True")),
			{When: when(is(".status.phase", "Pending")), State: Progressing, Message: "it is not bound to a volume"},
			progressingWhen(status("Resizing", "True")),
			progressingWhen(status("FileSystemResizePending", "True")),
			healthyWhen(is(".status.phase", "Bound")),
		}},
		{Kinds: []string{"PersistentVolume"}, Rules: []Rule{
			failedWhen(is(".status.phase", "Failed")),
			{When: when(is(".status.phase", "Released")), State: Unknown, Message: "its claim is gone, and it was not reclaimed yet"},
			progressingWhen(is(".status.phase", "Pending")),
			healthyWhen(is(".status.phase", "Bound", "Available")),
		}},
	}
}

// notObservedYet holds while the controller has not written the generation that it observed for the first time.
func notObservedYet() Rule {
	return Rule{When: when(isUnset(".status.observedGeneration")), State: Progressing, Reason: ReasonNotObserved, Message: "its controller has not looked at it yet"}
}

func replicaRules(creationFails, scaledToZero Rule) []Rule {
	return []Rule{
		creationFails,
		notObservedYet(),
		scaledToZero,
		healthyWhen(covers(".status.availableReplicas", ".spec.replicas", 1)),
		{When: when(isSet(".status.observedGeneration")), State: Progressing, Reason: ReasonNotReady, Message: "fewer pods are available than spec.replicas asks for"},
	}
}
