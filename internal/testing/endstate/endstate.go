package endstate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// volatile are the fields that differ from run to run.
var volatile = []string{
	"uid", "resourceVersion", "generation", "observedGeneration", "creationTimestamp", "time",
	"lastTransitionTime", "lastUpdateTime", "startTime", "clusterIP", "clusterIPs", "deployment.kubernetes.io/revision",
	// Of backups.
	"completionTime", "attemptTime", "reasonTime", "sourceTime", "runTime", "duration", "nextRunTime", "nextTime", "lastSlot",
}

// counted are fields whose value depends on what went before, or is an identity. Only their presence is compared.
var counted = []string{"slipway.dev/generation", "slipway.dev/restore-uid"}

// From returns an object without what differs from run to run. Its namespace is called
// NAMESPACE wherever a text holds it, and of the managed fields those of our own
// controllers are kept: what they state, and nothing else, is theirs.
func From(object *unstructured.Unstructured) map[string]any {
	content := runtime.DeepCopyJSON(object.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if fields, ok := metadata["managedFields"].([]any); ok {
			dropPickedNodePorts(content, fields)
			metadata["managedFields"] = owned(fields)
		}
	}
	mask(content, object.GetNamespace())
	return content
}

func mask(node any, namespace string) any {
	switch node := node.(type) {
	case map[string]any:
		for _, field := range volatile {
			delete(node, field)
		}
		for _, field := range counted {
			if _, ok := node[field].(string); ok {
				node[field] = "COUNT"
			}
		}
		for key, value := range node {
			node[key] = mask(value, namespace)
		}
	case []any:
		for i, item := range node {
			node[i] = mask(item, namespace)
		}
	case string:
		return maskText(node, namespace)
	}
	return node
}

// recordedVersion is a resource version as slipway.dev/config-versions records it: what
// was read, of certain keys the one that is missing after a colon, and the hash of what was
// found.
var recordedVersion = regexp.MustCompile(`":"\d+([:/])`)

func maskText(text, namespace string) string {
	if namespace != "" {
		text = strings.ReplaceAll(text, namespace, "NAMESPACE")
	}
	return recordedVersion.ReplaceAllString(text, `":"VERSION$1`)
}

// Managers of fields that are our own. What is stated in passing, while a field goes
// from one owner to another, depends on the way.
const (
	ownManagers   = "slipway-"
	maskedUID     = `{\"uid\":\"UID\"}`
	statusManager = "status"
)

// identity is the key of an owner reference in managed fields.
var identity = regexp.MustCompile(`\{\\"uid\\":\\"[^"\\]*\\"\}`)

// owned returns which of our managers owns which fields.
func owned(fields []any) map[string]any {
	owners := map[string]any{}
	for _, field := range fields {
		entry, ok := field.(map[string]any)
		manager := fmt.Sprint(entry["manager"])
		if !ok || !strings.HasPrefix(manager, ownManagers) || strings.HasSuffix(manager, apply.HandoverSuffix) ||
			entry["subresource"] == statusManager {
			continue
		}
		raw, err := json.Marshal(entry["fieldsV1"])
		if err != nil {
			raw = []byte(err.Error())
		}
		owners[fmt.Sprint(manager, " ", entry["operation"])] = identity.ReplaceAllString(string(raw), maskedUID)
	}
	return owners
}

// dropPickedNodePorts leaves out the node ports that none of our managers states: the API
// server picked them, as it picks a cluster IP.
func dropPickedNodePorts(content map[string]any, fields []any) {
	ports, _, _ := unstructured.NestedSlice(content, "spec", "ports")
	for _, item := range ports {
		port, ok := item.(map[string]any)
		if !ok {
			continue
		}
		key := fmt.Sprintf(`k:{"port":%v,"protocol":%q}`, port["port"], port["protocol"])
		if !ownStated(fields, "f:spec", "f:ports", key, "f:nodePort") {
			delete(port, "nodePort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(content, ports, "spec", "ports")
	}
}

// ownStated reports whether one of our managers states a field.
func ownStated(fields []any, path ...string) bool {
	for _, field := range fields {
		entry, ok := field.(map[string]any)
		if !ok || !strings.HasPrefix(fmt.Sprint(entry["manager"]), ownManagers) {
			continue
		}
		stated, _, _ := unstructured.NestedMap(entry, "fieldsV1")
		if _, found, _ := unstructured.NestedFieldNoCopy(stated, path...); found {
			return true
		}
	}
	return false
}
