package scenario

import (
	"fmt"
	"strings"
)

// volatile are the fields that differ from run to run: identities, versions, times and
// addresses.
var volatile = []string{
	"uid", "resourceVersion", "generation", "observedGeneration", "creationTimestamp", "time",
	"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "clusterIP", "clusterIPs", "deployment.kubernetes.io/revision",
	"slipway.dev/config-versions", "slipway.dev/restore-uid",
	// Of Jobs, and of what they have done: UIDs, times, and what was left of a deadline.
	"batch.kubernetes.io/controller-uid", "controller-uid", "slipway.dev/mover-config", "activeDeadlineSeconds",
	"completionTime", "attemptTime", "reasonTime", "sourceTime", "lastBackupTime", "nextRunTime", "lastSlot", "runTime", "maintenanceTime", "duration", "lastTime", "lastSuccessTime", "nextTime",
}

// mask removes what differs from run to run.
func mask(node any, namespace string) {
	switch node := node.(type) {
	case map[string]any:
		for _, field := range volatile {
			delete(node, field)
		}
		if fields, ok := node["managedFields"].([]any); ok {
			node["managedFields"] = managers(fields)
		}
		for key, value := range node {
			if text, ok := value.(string); ok {
				node[key] = strings.ReplaceAll(text, namespace, "NAMESPACE")
				continue
			}
			mask(value, namespace)
		}
	case []any:
		for _, item := range node {
			mask(item, namespace)
		}
	}
}

// managers keeps who owns something, not the names of the owned fields: they hold UIDs.
func managers(fields []any) []any {
	var names []any
	for _, field := range fields {
		if entry, ok := field.(map[string]any); ok && strings.HasPrefix(fmt.Sprint(entry["manager"]), "slipway-") {
			names = append(names, fmt.Sprint(entry["manager"], " ", entry["operation"], " ", entry["subresource"]))
		}
	}
	return names
}
