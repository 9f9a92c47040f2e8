package health

// clusterProfiles are the other kinds of Kubernetes.
func clusterProfiles() []Profile { //nolint:funlen // a table
	return []Profile{
		{Kinds: []string{"Service"}, Rules: []Rule{
			failedWhen(status("LoadBalancerPortsError", "True")),
			healthyWhen(isSet(".status.loadBalancer.ingress"), is(".spec.type", "LoadBalancer")),
			{When: when(is(".spec.type", "LoadBalancer")), State: Progressing, Reason: "LoadBalancerPending", Message: "it has no address of a load balancer yet"},
			{When: when(isSet(".spec")), State: Unknown, Reason: ReasonNoSignal, Message: "its EndpointSlices tell whether pods are behind it"},
		}},
		{Group: "discovery.k8s.io", Kinds: []string{"EndpointSlice"}, Rules: []Rule{
			healthyWhen(is(".endpoints[].conditions.ready", "true")),
			{When: when(isSet(".endpoints")), State: Progressing, Reason: "NoEndpoints", Message: "no endpoint is ready"},
			{When: when(isUnset(".endpoints")), State: Unknown, Reason: "NoEndpoints", Message: "it has no endpoints"},
		}},
		{Group: "networking.k8s.io", Kinds: []string{"Ingress"}, Rules: []Rule{
			healthyWhen(isSet(".status.loadBalancer.ingress")),
			{
				When:  when(isUnset(".status.loadBalancer.ingress")),
				State: Unknown, Reason: ReasonNoSignal, Message: "no controller has said where it can be reached",
			},
		}},
		{Kinds: []string{"Namespace"}, Rules: []Rule{
			healthyWhen(is(".status.phase", "Active")),
		}},
		{Kinds: []string{"Node"}, Rules: []Rule{
			failedWhen(status("Ready", "False", "Unknown")),
			failedWhen(status("MemoryPressure", "True")),
			failedWhen(status("DiskPressure", "True")),
			failedWhen(status("PIDPressure", "True")),
			failedWhen(status("NetworkUnavailable", "True")),
			healthyWhen(status("Ready", "True")),
		}},
		{Group: "apiregistration.k8s.io", Kinds: []string{"APIService"}, Rules: []Rule{
			failedWhen(status("Available", "False")),
			healthyWhen(status("Available", "True")),
		}},
		{Group: "apiextensions.k8s.io", Kinds: []string{"CustomResourceDefinition"}, Rules: []Rule{
			failedWhen(status("NamesAccepted", "False")),
			failedWhen(status("NonStructuralSchema", "True")),
			failedWhen(status("KubernetesAPIApprovalPolicyConformant", "False")),
			progressingWhen(status("Terminating", "True")),
			healthyWhen(status("Established", "True"), status("NamesAccepted", "True")),
			progressingWhen(status("Established", "False")),
		}},
		{Group: "certificates.k8s.io", Kinds: []string{"CertificateSigningRequest"}, Rules: []Rule{
			failedWhen(status("Denied", "True")),
			failedWhen(status("Failed", "True")),
			healthyWhen(isSet(".status.certificate")),
			{When: when(status("Approved", "True")), State: Progressing, Reason: "Signing", Message: "it is approved, and not signed yet"},
		}},
		hasNoStatus("", "ConfigMap", "Secret", "ServiceAccount", "Endpoints", "Event", "LimitRange", "PodTemplate"),
		hasNoStatus("apps", "ControllerRevision"),
		hasNoStatus("coordination.k8s.io", "Lease"),
		hasNoStatus("events.k8s.io", "Event"),
		hasNoStatus("rbac.authorization.k8s.io", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
		hasNoStatus("networking.k8s.io", "NetworkPolicy", "IngressClass"),
		hasNoStatus("storage.k8s.io", "StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity"),
		hasNoStatus("scheduling.k8s.io", "PriorityClass"),
		hasNoStatus("node.k8s.io", "RuntimeClass"),
		hasNoStatus(
			"admissionregistration.k8s.io", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding",
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		),
	}
}

func hasNoStatus(group string, kinds ...string) Profile {
	return Profile{Group: group, Kinds: kinds, HasNoStatus: true}
}
