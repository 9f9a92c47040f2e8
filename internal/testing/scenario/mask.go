package scenario

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

// volatile are the fields that differ from run to run: identities, versions, times and
// addresses.
var volatile = []string{
	"uid", "resourceVersion", "generation", "observedGeneration", "creationTimestamp", "time",
	"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "clusterIP", "clusterIPs", "deployment.kubernetes.io/revision",
	"nodePort", "healthCheckNodePort", "slipway.dev/config-versions", "slipway.dev/restore-uid",
	// Of Jobs, and of what they have done: UIDs, times, and what was left of a deadline.
	"batch.kubernetes.io/controller-uid", "controller-uid", "slipway.dev/mover-config", "activeDeadlineSeconds",
	"completionTime", "attemptTime", "reasonTime", "sourceTime", "lastBackupTime", "nextRunTime", "lastSlot", "runTime", "maintenanceTime",
	"duration", "lastTime", "lastSuccessTime", "nextTime",
}

// volatileSuffixes end the keys of resource versions in the Secret with the copies of a Gateway.
var volatileSuffixes = []string{".version", ".data.v"}

// random are the keys there of what the operator has made by chance.
var random = []string{copied.SessionsKey, copied.ReplicasKey}

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
		for _, key := range slices.Collect(maps.Keys(node)) {
			value := node[key]
			if named := strings.ReplaceAll(key, namespace, namespaceHere); named != key {
				delete(node, key)
				key = named
				node[key] = value
			}
			if text, ok := value.(string); ok {
				node[key] = maskText(key, text, namespace)
				continue
			}
			mask(value, namespace)
		}
	case []any:
		for i, item := range node {
			if text, ok := item.(string); ok {
				node[i] = maskText("", text, namespace)
				continue
			}
			mask(item, namespace)
		}
	}
}

func maskText(key, text, namespace string) string {
	for _, suffix := range volatileSuffixes {
		if strings.HasSuffix(key, suffix) {
			return suffix
		}
	}
	if slices.Contains(random, key) && len(text) == base64.StdEncoding.EncodedLen(copied.SecretBytes) {
		return "random"
	}
	return strings.ReplaceAll(text, namespace, namespaceHere)
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
