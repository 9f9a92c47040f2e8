package health

// crossplaneProfiles are Crossplane's own kinds, and managed resources in the groups of its providers.
func crossplaneProfiles() []Profile {
	paused := when(annotated("crossplane.io/paused", "true"))
	managed := []Rule{
		failedWhen(reason("Synced", "ReconcileError"), status("Synced", "False")),
		suspendedWhen(reason("Synced", "ReconcilePaused"), status("Synced", "False")),
		healthyWhen(status("Ready", "True"), status("Synced", "True")),
		progressingWhen(reason("Ready", "Creating", "Deleting"), status("Ready", "False")),
	}
	return []Profile{
		{Group: "pkg.crossplane.io", Kinds: []string{"Provider", "Configuration", "Function"}, Suspended: paused, Rules: []Rule{
			failedWhen(status("Healthy", "False")),
			failedWhen(status("Installed", "False"), reason("Installed", "BlockedPackage")),
		}, Whole: []string{"Healthy", "Installed"}},
		// The conditions of revisions have other names in version 2.
		{Group: "pkg.crossplane.io", Suspended: paused, Conditions: map[string]Class{"RevisionHealthy": ClassReady, "RuntimeHealthy": ClassReady}},
		{Group: "apiextensions.crossplane.io", Kinds: []string{"CompositeResourceDefinition"}, Suspended: paused, Whole: []string{"Established"}, Conditions: map[string]Class{"Offered": ClassPart}},
		{Group: "apiextensions.crossplane.io", Kinds: []string{"Composition", "EnvironmentConfig"}, HasNoStatus: true},
		{Group: "*.upbound.io", Suspended: paused, Rules: managed, Whole: []string{"Ready", "Synced"}},
		{Group: "*.crossplane.io", Suspended: paused, Rules: managed, Whole: []string{"Ready", "Synced"}},
	}
}

// gatewayAPIProfiles are the kinds of the Gateway API. A route and a policy have conditions for each of their parents.
func gatewayAPIProfiles() []Profile {
	const group = "gateway.networking.k8s.io"
	classes := map[string]Class{"PartiallyInvalid": ClassBad, "Conflicted": ClassBad, "OverlappingTLSConfig": ClassBad, "Ready": ClassPart}
	policies := []Items{{Path: ".status.ancestors", Whole: []string{"Accepted"}}}
	return []Profile{
		{Group: group, Kinds: []string{"GatewayClass"}, Whole: []string{"Accepted"}},
		{
			Group: group, Kinds: []string{"Gateway"}, Whole: []string{"Accepted", "Programmed"}, Conditions: classes,
			Items: []Items{{Path: ".status.listeners", Optional: true}},
		},
		{
			Group: group, Kinds: []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"}, Conditions: classes,
			Items: []Items{{Path: ".status.parents", Whole: []string{"Accepted"}}},
		},
		{Group: group, Kinds: []string{"BackendTLSPolicy", "BackendLBPolicy", "XBackendTrafficPolicy"}, Items: policies},
		hasNoStatus(group, "ReferenceGrant"),
	}
}

// databaseProfiles are operators of stateful systems: CloudNativePG and Strimzi.
func databaseProfiles() []Profile {
	const cnpg = "postgresql.cnpg.io"
	const healthyPhase = "Cluster in healthy state"
	paused := suspendedWhen(status("ReconciliationPaused", "True"))
	return []Profile{
		{Group: cnpg, Kinds: []string{"Cluster"}, Suspended: when(annotated("cnpg.io/hibernation", "on"), annotated("cnpg.io/reconciliationLoop", "disabled")), Rules: []Rule{
			{When: when(is(
				".status.phase", "Cluster is unrecoverable and needs manual intervention", "Cluster has incomplete or invalid image catalog",
				"Cluster cannot proceed to reconciliation due to an unknown plugin being required", "Not enough disk space",
				"Cluster cannot execute instance online upgrade due to missing architecture binary",
			)), State: Failed, Reason: "ClusterFailed"},
			failedWhen(status("ContinuousArchiving", "False")),
			healthyWhen(is(".status.phase", healthyPhase), covers(".status.readyInstances", ".spec.instances", 1)),
			{When: when(is(".status.phase", healthyPhase)), State: Progressing, Reason: ReasonNotReady, Message: "fewer instances are ready than spec.instances asks for"},
			{When: when(isSet(".status.phase")), State: Progressing, Reason: "ClusterChanging"},
		}},
		{Group: cnpg, Kinds: []string{"Backup"}, Rules: []Rule{
			failedWhen(is(".status.phase", "failed", "walArchivingFailing")),
			healthyWhen(is(".status.phase", "completed")),
			progressingWhen(is(".status.phase", "pending", "new", "started", "running", "finalizing")),
		}},
		{Group: "kafka.strimzi.io", Whole: []string{"Ready"}, Rules: []Rule{
			paused,
			progressingWhen(status("NotReady", "True"), reason("NotReady", "Creating")),
			failedWhen(status("NotReady", "True")),
		}, Conditions: map[string]Class{"Warning": ClassIgnored, "NotReady": ClassBad}},
	}
}

// knativeProfiles are the kinds of Knative and KEDA, which scale to zero, so that not being active is no trouble.
func knativeProfiles() []Profile {
	rules := []Rule{
		failedWhen(status("Ready", "False")),
		progressingWhen(status("Ready", "Unknown")),
		healthyWhen(status("Ready", "True")),
	}
	return []Profile{
		{Group: "serving.knative.dev", Rules: rules},
		{Group: "eventing.knative.dev", Rules: rules},
		{Group: "sources.knative.dev", Rules: rules},
		{Group: "caching.internal.knative.dev", MayHaveNoStatus: true},
		// What scales a revision, and what leads to it, is not ready while nobody asks for it.
		{Group: "*.internal.knative.dev", Rules: append([]Rule{
			{When: when(reason("Ready", "NoTraffic"), status("Ready", "False")), State: Unknown, Reason: ReasonSuspended, Message: "it is scaled to zero"},
			{When: when(reason("Ready", "NoHealthyBackends"), is(".spec.mode", "Proxy")), State: Unknown, Reason: ReasonSuspended, Message: "it is scaled to zero"},
		}, rules...)},
		{
			Group: "keda.sh", Kinds: []string{"ScaledObject", "ScaledJob"}, Whole: []string{"Ready"},
			Suspended: when(annotated("autoscaling.keda.sh/paused", "true"), isSet(`.metadata.annotations["autoscaling.keda.sh/paused-replicas"]`)),
			Rules: []Rule{
				suspendedWhen(status("Paused", "True")),
				failedWhen(status("Ready", "False")),
				failedWhen(status("Fallback", "True")),
			},
			Conditions: map[string]Class{"Active": ClassIgnored},
		},
	}
}

// clusterAPIProfiles are the kinds of Cluster API. In v1beta1 a condition has a severity; v1beta2 follows the conventions.
func clusterAPIProfiles() []Profile {
	classes := map[string]Class{
		"Available": ClassReady, "UpToDate": ClassIgnored, "RemoteConnectionProbe": ClassPart, "InfrastructureReady": ClassPart,
		"ControlPlaneReady": ClassPart, "ControlPlaneInitialized": ClassPart, "BootstrapReady": ClassPart, "NodeHealthy": ClassPart,
		"HealthCheckSucceeded": ClassPart, "EKSControlPlaneUpdating": ClassBusy,
	}
	suspended := when(is(".spec.paused", "true"), annotated("cluster.x-k8s.io/paused", "", "true"))
	failed := []Rule{
		failedWhen(isSet(".status.failureMessage")),
		failedWhen(is(".status.phase", "Failed")),
	}
	var profiles []Profile
	for _, group := range []string{
		"cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "addons.cluster.x-k8s.io",
	} {
		profiles = append(profiles, Profile{Group: group, Suspended: suspended, Rules: failed, Conditions: classes})
	}
	return profiles
}

// veleroProfiles are the kinds of Velero.
func veleroProfiles() []Profile {
	const group = "velero.io"
	return []Profile{
		{Group: group, Kinds: []string{"BackupStorageLocation"}, Rules: []Rule{
			failedWhen(is(".status.phase", "Unavailable")),
			healthyWhen(is(".status.phase", "Available")),
		}},
		{Group: group, Kinds: []string{"Schedule"}, Suspended: when(is(".spec.paused", "true")), Rules: []Rule{
			failedWhen(is(".status.phase", "FailedValidation")),
			healthyWhen(is(".status.phase", "Enabled")),
			progressingWhen(is(".status.phase", "New")),
		}},
		{Group: group, Kinds: []string{"BackupRepository"}, Rules: []Rule{
			failedWhen(is(".status.phase", "NotReady")),
			healthyWhen(is(".status.phase", "Ready")),
			progressingWhen(is(".status.phase", "New")),
		}},
		// Backup, Restore, PodVolumeBackup, DataUpload and the like.
		{Group: group, Rules: []Rule{
			failedWhen(is(
				".status.phase", "Failed", "PartiallyFailed", "FailedValidation", "FinalizingPartiallyFailed", "WaitingForPluginOperationsPartiallyFailed",
				"Canceled",
			)),
			healthyWhen(is(".status.phase", "Completed", "Processed")),
			progressingWhen(is(
				".status.phase", "New", "Queued", "ReadyToStart", "InProgress", "WaitingForPluginOperations", "Finalizing", "Deleting", "Accepted",
				"Prepared", "Canceling",
			)),
		}},
	}
}

// secretProfiles are the kinds of External Secrets and Sealed Secrets.
func secretProfiles() []Profile {
	const group = "external-secrets.io"
	rules := []Rule{
		failedWhen(status("Ready", "False")),
		healthyWhen(status("Ready", "True")),
		progressingWhen(status("Ready", "Unknown")),
	}
	return []Profile{
		{Group: group, Kinds: []string{"ExternalSecret", "PushSecret", "SecretStore", "ClusterSecretStore"}, Rules: rules},
		{Group: "bitnami.com", Kinds: []string{"SealedSecret"}, Rules: []Rule{
			failedWhen(status("Synced", "False")),
			healthyWhen(status("Synced", "True")),
		}},
	}
}

// prometheusProfiles are the kinds of the Prometheus operator. Available may also be Degraded.
func prometheusProfiles() []Profile {
	const group = "monitoring.coreos.com"
	suspended := when(is(".spec.paused", "true"))
	return []Profile{
		{Group: group, Kinds: []string{"Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"}, Suspended: suspended, Rules: []Rule{
			failedWhen(status("Reconciled", "False")),
			failedWhen(status("Available", "Degraded")),
			healthyWhen(status("Available", "True"), status("Reconciled", "True")),
			progressingWhen(status("Available", "False", "Unknown")),
		}},
		{
			Group: group, Kinds: []string{"ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig", "PrometheusRule", "AlertmanagerConfig"},
			MayHaveNoStatus: true, Items: []Items{{Path: ".status.bindings", Whole: []string{"Accepted"}, Optional: true}},
		},
	}
}
