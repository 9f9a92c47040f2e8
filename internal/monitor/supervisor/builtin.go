package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Builtin returns kinds that Kubernetes brings by their names: the resource and its group, such as deployments.apps or
// services. It knows those that say something about how programs are run. Secrets are none of them: the monitor may not
// read them.
func Builtin(names ...string) ([]change.Kind, error) {
	var kinds []change.Kind
	for _, name := range names {
		at := slices.IndexFunc(builtin, func(k change.Kind) bool { return k.GroupResource().String() == name })
		if at < 0 {
			return nil, fmt.Errorf("%q is none of the kinds that can be followed without a definition: %s", name,
				strings.Join(BuiltinNames(), ", "))
		}
		if !slices.Contains(kinds, builtin[at]) {
			kinds = append(kinds, builtin[at])
		}
	}
	return kinds, nil
}

// BuiltinNames returns the names that Builtin takes.
func BuiltinNames() []string {
	names := make([]string, 0, len(builtin))
	for _, kind := range builtin {
		names = append(names, kind.GroupResource().String())
	}
	return names
}

var builtin = []change.Kind{
	{Group: "", Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true},
	{Group: "", Version: "v1", Kind: "Namespace", Resource: "namespaces"},
	{Group: "", Version: "v1", Kind: "Node", Resource: "nodes"},
	{Group: "", Version: "v1", Kind: "PersistentVolume", Resource: "persistentvolumes"},
	{Group: "", Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespaced: true},
	{Group: "", Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true},
	{Group: "", Version: "v1", Kind: "Service", Resource: "services", Namespaced: true},
	{Group: "", Version: "v1", Kind: "ServiceAccount", Resource: "serviceaccounts", Namespaced: true},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration", Resource: "mutatingwebhookconfigurations"},
	{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		Resource: "validatingwebhookconfigurations",
	},
	definitionKind,
	{Group: "apps", Version: "v1", Kind: "DaemonSet", Resource: "daemonsets", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet", Resource: "replicasets", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Resource: "horizontalpodautoscalers", Namespaced: true},
	{Group: "batch", Version: "v1", Kind: "CronJob", Resource: "cronjobs", Namespaced: true},
	{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespaced: true},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress", Resource: "ingresses", Namespaced: true},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy", Resource: "networkpolicies", Namespaced: true},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Resource: "poddisruptionbudgets", Namespaced: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Resource: "roles", Namespaced: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding", Resource: "rolebindings", Namespaced: true},
	{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass", Resource: "storageclasses"},
}
