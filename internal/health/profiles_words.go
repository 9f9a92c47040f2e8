package health

import "strings"

// words are the words of a field, and what they mean. Whatever else the field says, nothing is known of it.
type words struct{ failed, suspended, progressing, healthy []string }

// byWord makes rules of the words of a field.
func byWord(field string, words words) []Rule {
	var rules []Rule
	add := func(state State, reason string, list []string) {
		if len(list) > 0 {
			rules = append(rules, Rule{When: when(is(field, list...)), State: state, Reason: reason})
		}
	}
	add(Failed, "", words.failed)
	add(Unknown, ReasonSuspended, words.suspended)
	add(Progressing, "", words.progressing)
	add(Healthy, "", words.healthy)
	return rules
}

// list makes a list of words.
func list(words string) []string { return strings.Fields(words) }

// suspendedWhen makes a rule of an object that is left alone, because somebody wanted that.
func suspendedWhen(tests ...Test) Rule {
	return Rule{When: tests, State: Unknown, Reason: ReasonSuspended, Message: "its controller leaves it alone"}
}

// wordProfiles are kinds of which one field of the status has words of its own.
func wordProfiles() []Profile { //nolint:funlen // a table
	return []Profile{
		{Group: "core.humio.com", Rules: byWord(".status.state", words{
			failed: list("ConfigError"), progressing: list("NotFound Restarting Upgrading Pending"), healthy: list("Exists Running"),
		})},
		{Group: "grafana.integreatly.org", Kinds: []string{"Grafana"}, Rules: []Rule{
			failedWhen(is(".status.stageStatus", "failed")),
			healthyWhen(is(".status.stage", "complete"), is(".status.stageStatus", "success")),
			progressingWhen(isSet(".status.stage")),
		}},
		{
			Group: "grafana.integreatly.org",
			Whole: nil, Conditions: map[string]Class{
				"DashboardSynchronized": ClassReady, "DatasourceSynchronized": ClassReady, "FolderSynchronized": ClassReady,
				"AlertGroupSynchronized": ClassReady, "ContactPointSynchronized": ClassReady, "NotificationPolicySynchronized": ClassReady,
				"LibraryPanelSynchronized": ClassReady, "MuteTimingSynchronized": ClassReady, "NotificationTemplateSynchronized": ClassReady,
				"NoMatchingInstance": ClassBad,
			},
		},
		{Group: "lifecycle.keptn.sh", Kinds: []string{"KeptnEvaluation"}, Rules: byWord(".status.overallStatus", words{
			failed: list("Failed Deprecated"), progressing: list("Pending Progressing Unknown"), healthy: list("Succeeded Warning"),
		})},
		{Group: "metrics.keptn.sh", Kinds: []string{"KeptnMetric"}, Rules: []Rule{
			{When: when(isSet(".status.errMsg")), State: Failed, Reason: "MetricError"},
			healthyWhen(isSet(".status.value")),
		}},
		{Group: "metrics.keptn.sh", Kinds: []string{"Analysis"}, Rules: []Rule{
			healthyWhen(is(".status.pass", "true")), healthyWhen(is(".status.warning", "true")),
			{When: when(is(".status.pass", "false"), is(".status.state", "Completed")), State: Failed, Reason: "AnalysisFailed"},
			{When: when(is(".status.pass", "false"), isUnset(".status.state")), State: Failed, Reason: "AnalysisFailed"},
			progressingWhen(isSet(".status.state")),
		}},
		{Group: "minio.min.io", Kinds: []string{"Tenant"}, Rules: append(byWord(".status.currentState", words{
			failed: []string{
				"Statefulset not controlled by operator", "Another MinIO Tenant already exists in the namespace",
				"Tenant credentials are not set properly", "Different versions across MinIO Pools", "Pool Decommissioning Not Allowed",
			},
			healthy: list("Initialized"),
		}), progressingWhen(isSet(".status.currentState")))},
		{Group: "networking.gke.io", Kinds: []string{"ManagedCertificate"}, Rules: []Rule{
			failedWhen(is(".status.domainStatus[].status", list("FailedNotVisible FailedCaaChecking FailedCaaForbidden FailedRateLimited")...)),
			failedWhen(is(".status.certificateStatus", list("ProvisioningFailed ProvisioningFailedPermanently RenewalFailed")...)),
			healthyWhen(is(".status.certificateStatus", "Active")),
			progressingWhen(isSet(".status.certificateStatus")),
		}},
		{Group: "operator.victoriametrics.com", Suspended: when(is(".spec.paused", "true")), Rules: byWord(".status.updateStatus", words{
			failed: list("failed"), suspended: list("paused"), progressing: list("expanding"), healthy: list("operational"),
		})},
		{Group: "platform.confluent.io", Kinds: []string{"Connector"}, Rules: []Rule{
			failedWhen(is(".status.state", "ERROR")), failedWhen(is(".status.connectorState", "FAILED")),
			failedWhen(isNot(".status.failedTasksCount", "0")),
			suspendedWhen(is(".status.connectorState", "PAUSED")),
			healthyWhen(is(".status.state", "CREATED"), is(".status.connectorState", "RUNNING")),
			progressingWhen(isSet(".status.state")),
		}},
		{
			Group: "policy.open-cluster-management.io", Suspended: when(is(".spec.disabled", "true")),
			Rules: byWord(".status.compliant", words{failed: list("NonCompliant"), progressing: list("Pending"), healthy: list("Compliant")}),
		},
		{Group: "pxc.percona.com", Kinds: []string{"PerconaXtraDBCluster"}, Suspended: when(is(".spec.pause", "true")), Rules: perconaRules()},
		{Group: "psmdb.percona.com", Kinds: []string{"PerconaServerMongoDB"}, Suspended: when(is(".spec.pause", "true")), Rules: perconaRules()},
		{Group: "sparkoperator.k8s.io", Kinds: []string{"SparkApplication"}, Suspended: when(is(".spec.suspend", "true")), Rules: byWord(".status.applicationState.state", words{
			failed: list("FAILED SUBMISSION_FAILED FAILING"), suspended: list("SUSPENDED"),
			progressing: list("SUBMITTED PENDING_RERUN INVALIDATING SUCCEEDING SUSPENDING RESUMING"), healthy: list("RUNNING COMPLETED"),
		})},
		{Group: "tower.ansible.com", Kinds: []string{"AnsibleJob"}, Rules: byWord(".status.ansibleJobResult.status", words{
			failed: list("failed error canceled"), progressing: list("new pending waiting running"), healthy: list("successful"),
		})},
		{Group: "trident.netapp.io", Kinds: []string{"TridentBackendConfig"}, Rules: []Rule{
			failedWhen(is(".status.lastOperationStatus", "Failed")), failedWhen(is(".status.phase", "Lost")),
			healthyWhen(is(".status.phase", "Bound"), is(".status.lastOperationStatus", "Success")),
			progressingWhen(isSet(".status.phase")),
		}},
		{Group: "acid.zalan.do", Kinds: []string{"postgresql"}, Rules: append(byWord(".status.PostgresClusterStatus", words{
			progressing: list("Creating Updating"), healthy: list("Running"),
		}), failedWhen(isSet(".status.PostgresClusterStatus")))},
		{Group: "ceph.rook.io", Kinds: []string{"CephCluster"}, Rules: []Rule{
			failedWhen(is(".status.ceph.health", "HEALTH_ERR", "HEALTH_WARN")),
			failedWhen(is(".status.state", "Error")),
			healthyWhen(is(".status.state", "Created", "Connected"), is(".status.ceph.health", "HEALTH_OK")),
			progressingWhen(isSet(".status.state")),
		}},
		{Group: "core.gardener.cloud", Kinds: []string{"Shoot"}, Rules: byWord(`.metadata.labels["shoot.gardener.cloud/status"]`, words{
			failed: list("unhealthy"), progressing: list("progressing"), healthy: list("healthy"),
		})},
		{Group: "flink.apache.org", Kinds: []string{"FlinkDeployment"}, Rules: []Rule{
			failedWhen(is(".status.jobManagerDeploymentStatus", "ERROR")),
			failedWhen(is(".status.lifecycleState", "FAILED")),
			suspendedWhen(is(".status.lifecycleState", "SUSPENDED")),
			progressingWhen(is(".status.jobManagerDeploymentStatus", "DEPLOYED_NOT_READY", "DEPLOYING")),
			healthyWhen(is(".status.reconciliationStatus.state", "DEPLOYED")), healthyWhen(is(".status.reconciliationStatus.success", "true")),
			progressingWhen(isSet(".status.reconciliationStatus")),
		}},
		{Group: "iammanager.keikoproj.io", Kinds: []string{"Iamrole"}, Rules: append(byWord(".status.state", words{
			failed: list("Error RolesMaxLimitReached PolicyNotAllowed RoleNameNotAvailable"), healthy: list("Ready"),
		}), progressingWhen(isSet(".status.state")))},
		{Group: "flagger.app", Kinds: []string{"Canary"}, Rules: byWord(".status.phase", words{
			failed: list("Failed"), progressing: list("Initializing Waiting WaitingPromotion Progressing Promoting Finalising Terminating"),
			healthy: list("Initialized Succeeded"),
		})},
		{Group: "astra.netapp.io", Kinds: []string{"ExecHook"}, Suspended: when(is(".spec.enabled", "false")), Rules: []Rule{healthyWhen(is(".spec.enabled", "true"))}},
		{Group: "astra.netapp.io", Kinds: []string{"Schedule"}, Suspended: when(is(".spec.enabled", "false")), Rules: []Rule{healthyWhen(isSet(".status.lastScheduleTime"))}},
		{Group: "astra.netapp.io", Rules: byWord(".status.state", words{
			failed: list("Failed Error Removed"), progressing: list("Running Pending Provisioning Discovering"), healthy: list("Completed Ready Available Provisioned"),
		})},
	}
}

func perconaRules() []Rule {
	return byWord(".status.state", words{
		failed: list("error"), suspended: list("paused"), progressing: list("initializing stopping unknown"), healthy: list("ready"),
	})
}
