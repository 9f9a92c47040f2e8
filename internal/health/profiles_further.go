package health

import "slices"

// furtherProfiles are kinds of many projects that do not follow the conventions, or follow them in a way of their own.
func furtherProfiles() []Profile { //nolint:funlen // a table
	rejected := func(group string) Profile {
		var rules []Rule
		for _, field := range []string{".status.statuses[].state", ".status.state"} {
			rules = append(rules, byWord(field, words{failed: list("Rejected 2 Warning 3")})...)
		}
		for _, field := range []string{".status.statuses[].state", ".status.state"} {
			rules = append(rules, byWord(field, words{progressing: list("Pending 0"), healthy: list("Accepted 1")})...)
		}
		return Profile{Group: group, Rules: rules}
	}
	snapshot := []Rule{
		healthyWhen(is(".status.readyToUse", "true")),
		{When: when(isSet(".status.error.message")), State: Failed, Reason: "SnapshotError"},
		{When: when(isSet(".status.error")), State: Failed, Reason: "SnapshotError"},
		{When: when(isSet(".status")), State: Progressing, Reason: ReasonNotReady, Message: "the snapshot is not ready to use"},
	}
	bound := []Rule{
		{When: when(is(".status.aggregatedStatus[].health", "Unhealthy")), State: Failed, Message: "it is not healthy in a cluster"},
		{When: when(is(".status.aggregatedStatus[].applied", "false")), State: Failed, Reason: "NotApplied", Message: "it is not applied in a cluster"},
		{When: when(isUnset(".status.aggregatedStatus"), isSet(".status")), State: Progressing, Reason: ReasonNotReady, Message: "no cluster has said how it does"},
		{When: when(is(".status.aggregatedStatus[].health", "Unknown")), State: Unknown, Reason: ReasonNoSignal, Message: "a cluster does not know how it does"},
		healthyWhen(is(".status.aggregatedStatus[].applied", "true")),
	}
	invalid := map[string]Class{"Invalid": ClassBad, "Orphan": ClassBad, "Failed": ClassBad, "Synced": ClassReady}
	valid := map[string]Class{"Valid": ClassReady}
	const contourErrors = `.status.conditions[type="Valid"].errors[]`
	return []Profile{
		{Group: "networking.istio.io", MayHaveNoStatus: true},
		{Group: "security.istio.io", MayHaveNoStatus: true},
		{Group: "telemetry.istio.io", MayHaveNoStatus: true},
		{Group: "extensions.istio.io", MayHaveNoStatus: true},
		{Group: "traefik.io", MayHaveNoStatus: true},
		{Group: "crd.projectcalico.org", MayHaveNoStatus: true},
		{Group: "microgateway.airlock.com", MayHaveNoStatus: true},
		rejected("gateway.solo.io"), rejected("gloo.solo.io"),
		{Group: "snapshot.storage.k8s.io", Kinds: []string{"VolumeSnapshot", "VolumeSnapshotContent"}, Rules: snapshot},
		{Group: "work.karmada.io", Kinds: []string{"ResourceBinding", "ClusterResourceBinding"}, Rules: bound},
		{Group: "*.cnrm.cloud.google.com", Rules: []Rule{
			{When: when(is(".status.healthy", "false")), State: Failed, Reason: "Unhealthy"},
			healthyWhen(is(".status.healthy", "true")),
			failedWhen(reason("Ready", "UpdateFailed", "DependencyNotFound", "DependencyInvalid", "ManagementConflict")),
			progressingWhen(reason("Ready", "DependencyNotReady")),
		}},
		{
			Group: "route.openshift.io", Kinds: []string{"Route"},
			Items: []Items{{Path: ".status.ingress", Whole: []string{"Admitted"}}},
		},
		{Group: "apps.openshift.io", Kinds: []string{"DeploymentConfig"}, Rules: []Rule{
			failedWhen(status("Progressing", "False"), reason("Progressing", "ProgressDeadlineExceeded")),
			{When: when(is(".spec.replicas", "0"), is(".status.replicas", "0")), State: Healthy, Message: "nothing runs, as spec.replicas says"},
			{When: when(isUnset(".spec.replicas"), is(".status.replicas", "0"), status("Available", "False")), State: Healthy, Message: "nothing runs"},
			failedWhen(status("ReplicaFailure", "True")),
			{
				When: when(
					is(".status.replicas", "0"), is(".status.unavailableReplicas", "0"), status("Available", "False"),
					reason("Progressing", "NewReplicationControllerAvailable"),
				),
				State: Progressing, Reason: ReasonNotReady, Message: "its rollout has ended, and no pod has been asked for since",
			},
		}},
		{Group: "capabilities.3scale.net", Conditions: invalid, Rules: []Rule{
			suspendedWhen(is(".status.state", "suspended")), suspendedWhen(is(".status.developerUserState", "suspended")),
			{When: when(status("Waiting", "True")), State: Unknown, Reason: ReasonSuspended, Message: "it waits until somebody approves it"},
		}},
		{Group: "coralogix.com", Conditions: map[string]Class{"RemoteSynced": ClassReady}},
		{Group: "datadoghq.com", Kinds: []string{"DatadogMetric"}, Conditions: valid},
		{Group: "projectcontour.io", Conditions: valid, Rules: []Rule{
			progressingWhen(is(".status.currentStatus", "NotReconciled")),
			// Who includes and what is included are made in any order: until both are there, both are called invalid.
			failedWhen(status("Valid", "False"), isNot(contourErrors+".reason", "IncludeNotFound")),
			{When: when(status("Valid", "False"), is(contourErrors+".reason", "IncludeNotFound")), State: Progressing, Words: contourErrors},
			healthyWhen(is(".status.currentStatus", "valid"), isUnset(".status.conditions")),
		}},
		{Group: "proclaim.dogmatiq.io", Rules: []Rule{
			failedWhen(status("Adopted", "False")),
			failedWhen(reason("Advertised", "AdvertiseError", "UnadvertiseError")),
			{When: when(reason("Discoverable", "DiscoveryError")), State: Unknown},
			healthyWhen(status("Discoverable", "True")),
			progressingWhen(isSet(".status.conditions")),
		}},
		{Group: "solr.apache.org", Kinds: []string{"SolrCloud"}, Rules: []Rule{
			{When: when(is(".status.solrNodes[].ready", "false")), State: Progressing, Reason: ReasonNotReady, Message: "a node is not ready"},
			healthyWhen(is(".status.solrNodes[].ready", "true")),
		}},
		{Group: "zookeeper.pravega.io", Kinds: []string{"ZookeeperCluster"}, Rules: []Rule{
			{When: when(covers(".status.readyReplicas", ".spec.replicas", 3)), State: Healthy},
			{When: when(isNot(".status.readyReplicas", "0"), Test{Field: ".status.readyReplicas", Same: ".status.replicas"}), State: Healthy},
			{When: when(isSet(".status.replicas")), State: Progressing, Reason: ReasonNotReady, Message: "not every member is ready"},
		}},
		{Group: "stacks.crossplane.io", Rules: []Rule{
			healthyWhen(is(`.status.conditionedStatus.conditions[type="Ready"].status`, "True")),
			progressingWhen(isSet(".status.conditionedStatus.conditions")),
		}},
		{Group: "kafka.banzaicloud.io", Kinds: []string{"KafkaCluster"}, Rules: []Rule{
			progressingWhen(is(".status.state", "ClusterRollingUpgrading", "ClusterReconciling")),
			{When: when(isNot(".status.brokersState[].configurationState", "ConfigInSync")), State: Failed},
			{When: when(is(".status.cruiseControlTopicStatus", "CruiseControlTopicNotReady")), State: Failed},
			healthyWhen(is(".status.state", "ClusterRunning"), is(".status.cruiseControlTopicStatus", "CruiseControlTopicReady")),
			progressingWhen(isSet(".status.state")),
		}},
		{Group: "opentelemetry.io", Kinds: []string{"OpenTelemetryCollector"}, Rules: []Rule{
			{When: when(is(".spec.mode", "sidecar")), State: Unknown, Reason: ReasonNoSignal, Message: "it runs in the pods of others"},
			{When: when(is(".status.scale.statusReplicas", "0/0"), is(".spec.mode", "daemonset")), State: Healthy},
			healthyWhen(Test{Field: ".status.scale.statusReplicas", AllOfThem: true}),
			{When: when(isSet(".status.scale.statusReplicas")), State: Progressing, Reason: ReasonNotReady, Message: "fewer replicas are ready than there should be"},
		}},
		{Group: "promoter.argoproj.io", Kinds: []string{"CommitStatus", "PullRequest"}, Rules: []Rule{healthyWhen(status("Ready", "True"))}},
		{Group: "promoter.argoproj.io", Kinds: []string{"ArgoCDCommitStatus"}, Rules: []Rule{
			{When: when(isUnset(".status.applicationsSelected"), isSet(".status.conditions")), State: Failed, Reason: "NoApplications", Message: "it selects no application"},
		}},
		{Group: "promoter.argoproj.io", Kinds: []string{"PromotionStrategy"}, Rules: []Rule{
			{When: when(isUnset(".status.environments"), isSet(".status.conditions")), State: Failed, Reason: "NoEnvironments", Message: "it has no environment"},
		}},
		{Group: "promoter.argoproj.io", Rules: []Rule{
			{When: when(is(".status.environments[].phase", "failure"), status("Ready", "True")), State: Failed},
			{When: when(is(".status.environments[].phase", "pending"), status("Ready", "True")), State: Progressing},
		}},
		{Group: "serving.kserve.io", Kinds: []string{"InferenceService"}, Rules: []Rule{
			suspendedWhen(status("Stopped", "True")),
			failedWhen(is(".status.modelStatus.transitionStatus", "BlockedByFailedLoad", "InvalidSpec")),
			progressingWhen(is(".status.modelStatus.transitionStatus", "InProgress")),
		}, Conditions: map[string]Class{"Stopped": ClassIgnored}},
		{Group: "nmstate.io", Kinds: []string{"NodeNetworkConfigurationPolicy"}, Rules: []Rule{
			{When: when(reason("Available", "NoMatchingNode")), State: Unknown, Reason: ReasonSuspended, Message: "no node is meant"},
		}},
		{Group: "openfaas.com", Kinds: []string{"Function"}, Rules: []Rule{
			failedWhen(status("Stalled", "True")),
			{When: when(is(".status.replicas", "0"), status("Ready", "True")), State: Unknown, Reason: ReasonSuspended, Message: "nothing runs"},
			{When: when(isUnset(".status.replicas"), status("Ready", "True")), State: Unknown, Reason: ReasonSuspended, Message: "nothing runs"},
		}},
		{Group: "karpenter.sh", Kinds: []string{"NodeClaim"}, Rules: []Rule{
			{When: when(status("Disrupting", "True")), State: Unknown, Reason: ReasonSuspended, Message: "its node is being taken away"},
		}},
		{Group: "cdi.kubevirt.io", Kinds: []string{"DataVolume"}, Rules: []Rule{
			failedWhen(reason("Running", "Error", "ImagePullFailed", "CrashLoopBackOff"), status("Running", "False")),
			progressingWhen(is(".status.phase", "WaitForFirstConsumer", "PendingPopulation", "UploadScheduled", "UploadReady")),
		}},
		{Group: "kueue.x-k8s.io", Kinds: []string{"Workload"}, Suspended: when(is(".spec.active", "false")), Rules: []Rule{
			failedWhen(reason("Finished", "Failed", "AdmissionChecksRejected"), status("Finished", "True")),
			healthyWhen(status("Finished", "True")),
			healthyWhen(status("Admitted", "True")),
			progressingWhen(status("QuotaReserved", "True", "False", "Unknown")),
			progressingWhen(status("Admitted", "False", "Unknown")),
		}},
		{Group: "kueue.x-k8s.io", Kinds: []string{"ClusterQueue", "LocalQueue"}, Rules: []Rule{
			suspendedWhen(reason("Active", "Stopped"), status("Active", "False")),
			healthyWhen(status("Active", "True")),
			progressingWhen(reason("Active", "ClusterQueueIsInactive", "ClusterQueueDoesNotExist", "Terminating")),
			failedWhen(status("Active", "False")),
		}},
		{Group: "kubevirt.io", Suspended: when(is(".spec.paused", "true")), Rules: []Rule{
			failedWhen(status("Failure", "True")),
			suspendedWhen(status("Paused", "True")),
			suspendedWhen(is(".status.printableStatus", "Stopped", "Paused")),
			failedWhen(is(".status.printableStatus", "CrashLoopBackOff", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError")),
			progressingWhen(is(".status.printableStatus", "Starting", "Stopping", "Migrating", "Provisioning", "Terminating", "WaitingForVolumeBinding")),
			progressingWhen(is(".status.phase", "Pending", "Scheduling", "Scheduled", "WaitingForSync")),
		}},
		{Group: "spot.io", Kinds: []string{"SpotDeployment"}, Rules: []Rule{
			failedWhen(isSet(conditionField("InvalidSpec", "status"))),
		}},
		{Group: "rabbitmq.com", Kinds: []string{"RabbitmqCluster"}, Rules: []Rule{
			failedWhen(status("ReconcileSuccess", "False")),
		}, Conditions: map[string]Class{"ReconcileSuccess": ClassPart, "NoWarnings": ClassIgnored}, Whole: []string{"AllReplicasReady", "ClusterAvailable"}},
		{Group: "operators.coreos.com", Kinds: []string{"Subscription"}, Rules: append([]Rule{
			failedWhen(status("CatalogSourcesUnhealthy", "True")), failedWhen(status("InstallPlanFailed", "True")), failedWhen(status("ResolutionFailed", "True")),
			{
				When:  when(reason("InstallPlanPending", "RequiresApproval"), status("InstallPlanPending", "True"), isSet(".status.installedCSV")),
				State: Unknown, Reason: ReasonSuspended, Message: "an update waits until somebody approves it",
			},
			progressingWhen(status("InstallPlanPending", "True")), progressingWhen(status("BundleUnpacking", "True")),
		}, byWord(".status.state", words{failed: list("UpgradeFailed"), progressing: list("UpgradeAvailable UpgradePending"), healthy: list("AtLatestKnown")})...)},
		{Group: "numaflow.numaproj.io", Rules: []Rule{
			{When: when(is(`.metadata.labels["numaplane.numaproj.io/progressive-result-state"]`, "failed")), State: Failed, Reason: "UpgradeFailed"},
		}},
		{Group: "argoproj.io", Kinds: []string{"CronWorkflow"}, Suspended: when(is(".spec.suspend", "true")), Rules: []Rule{
			failedWhen(status("SpecError", "True")), failedWhen(status("SubmissionError", "True")),
			healthyWhen(is(".status.phase", "Active")), healthyWhen(isSet(".status.lastScheduledTime")),
		}},
		{Group: "addons.cluster.x-k8s.io", Kinds: []string{"ClusterResourceSet"}, Whole: []string{"ResourcesApplied"}},
		{Group: "cluster.x-k8s.io", Kinds: []string{"MachineHealthCheck"}, Suspended: when(annotated("cluster.x-k8s.io/paused", "", "true")), Rules: []Rule{
			healthyWhen(covers(".status.currentHealthy", ".status.expectedMachines", 0)),
			// New machines are not healthy yet. Whoever adds many adds more than may be mended, for a while.
			lateWhen(defaultPatience, status("RemediationAllowed", "False"), isSet(conditionField("RemediationAllowed", "lastTransitionTime"))),
			failedWhen(status("RemediationAllowed", "False")),
			{
				When:  when(is(".status.remediationsAllowed", "0"), isUnset(conditionField("RemediationAllowed", "status"))),
				State: Failed, Reason: "MachinesUnhealthy", Message: "too many machines are not healthy, so none is mended",
			},
			{When: when(isSet(".status.currentHealthy")), State: Progressing, Reason: "MachinesUnhealthy", Message: "a machine is not healthy, or not yet"},
		}},
		{Group: "external-secrets.io", Kinds: []string{"ClusterExternalSecret"}, Rules: []Rule{
			healthyWhen(status("Ready", "True")),
			failedWhen(status("PartiallyReady", "True")), failedWhen(status("NotReady", "True")), failedWhen(status("Ready", "False")),
		}},
	}
}

// kruiseProfiles are the kinds of OpenKruise, whose rollouts stop where they are told to.
func kruiseProfiles() []Profile {
	const apps, game = "apps.kruise.io", "game.kruise.io"
	const update, rolling = ".spec.updateStrategy", ".spec.updateStrategy.rollingUpdate"
	missing := Rule{When: when(isSet(".status.observedGeneration")), State: Progressing, Reason: ReasonNotReady, Message: "not every pod is of the current template, and available"}
	rules := func(at string, whole ...Test) []Rule {
		return []Rule{
			notObservedYet(), suspendedWhen(is(at+".paused", "true")),
			{When: when(isNot(at+".partition", "0")), State: Unknown, Reason: ReasonSuspended, Message: "its rollout stops where the partition says"},
			healthyWhen(whole...), missing,
		}
	}
	available := Test{Field: ".status.updatedAvailableReplicas", Same: ".status.replicas"}
	none := Rule{When: when(is(".status.desiredNumberScheduled", "0")), State: Healthy, Message: "no node is to run it"}
	daemons := rules(rolling, Test{Field: ".status.updatedNumberScheduled", Same: ".status.desiredNumberScheduled"}, Test{Field: ".status.numberAvailable", Same: ".status.desiredNumberScheduled"})
	return []Profile{
		{Group: apps, Kinds: []string{"CloneSet"}, Rules: rules(update, available)},
		{Group: apps, Kinds: []string{"StatefulSet"}, Rules: rules(rolling, available)},
		{Group: apps, Kinds: []string{"DaemonSet"}, Rules: slices.Insert(daemons, 1, none)},
		{Group: apps, Kinds: []string{"AdvancedCronJob"}, Suspended: when(is(".spec.paused", "true")), Rules: []Rule{
			{When: when(isSet(".status.active")), State: Progressing, Reason: ReasonJobRunning, Message: "a job of it runs"},
			healthyWhen(isSet(".status.lastScheduleTime")),
		}},
		{Group: apps, Kinds: []string{"BroadcastJob"}, Suspended: when(is(".spec.paused", "true")), Rules: []Rule{progressingWhen(is(".status.phase", "running"))}},
		{Group: game, Kinds: []string{"GameServerSet"}, Rules: rules(rolling, Test{Field: ".status.updatedReadyReplicas", Same: ".status.replicas"})},
		{Group: game, Kinds: []string{"GameServer"}, Rules: []Rule{
			{When: when(is(`.status.podStatus.conditions[type="KruisePodReady"].status`, "False")), State: Failed, Reason: ReasonNotReady, Message: "its pod is not ready"},
			healthyWhen(is(".status.currentState", "Ready"), Test{Field: ".status.currentState", Same: ".status.desiredState"}),
			progressingWhen(isSet(".status.currentState")),
		}},
		{Group: "rollouts.kruise.io", Kinds: []string{"Rollout"}, Suspended: when(is(".spec.strategy.paused", "true")), Rules: []Rule{
			{When: when(is(".status.canaryStatus.currentStepState", "StepPaused"), is(".status.phase", "Progressing")), State: Unknown, Reason: ReasonSuspended, Message: "it waits until somebody lets it go on"},
			{When: when(is(".status.phase", "Disabled")), State: Failed},
			healthyWhen(is(".status.phase", "Healthy")), progressingWhen(isSet(".status.phase")),
		}},
	}
}
