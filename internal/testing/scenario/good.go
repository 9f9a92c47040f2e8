package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaultMinReady is that of spec.rollout.minReadySeconds of a WebApp.
const defaultMinReady = 10

// goodField is the field of a ControllerRevision that is a number above 0 while it is good. A WebApp is ready before its revision
// is good, so that a claim to be ready says nothing of it.
const goodField = "revision"

// checkGood finds revisions that became good before all pods of the Deployment had been ready for as long as the WebApp says. The
// stand-in for the cluster says in the Deployment since when they are, unless they have been for long. Whoever sees a revision late
// finds less, and nothing that is not so.
func checkGood(history []Version) []error {
	latest := map[string]*unstructured.Unstructured{}
	numbers := map[string]int64{}
	var problems []error
	for _, version := range inOrder(history) {
		object := &unstructured.Unstructured{Object: version.Fields}
		latest[version.Object] = object
		if object.GetKind() != "ControllerRevision" {
			continue
		}
		number, _, _ := unstructured.NestedInt64(object.Object, goodField)
		if version.Deleted {
			number = 0
		}
		better := number > numbers[version.Object]
		numbers[version.Object] = number
		if !better {
			continue
		}
		if left := leftToProve(latest, object, version.At); left > 0 {
			problems = append(problems,
				fmt.Errorf("%s became good %v before its pods had been ready for long enough", version.Object, left))
		}
	}
	return problems
}

// leftToProve is how long the pods would have had to go on being ready for a revision of a WebApp to be good.
func leftToProve(latest map[string]*unstructured.Unstructured, revision *unstructured.Unstructured, at time.Time) time.Duration {
	for _, owner := range revision.GetOwnerReferences() {
		app, deployment := latest[owner.Kind+"/"+owner.Name], latest["Deployment/"+owner.Name]
		if owner.Kind != "WebApp" || app == nil || deployment == nil {
			continue
		}
		seconds, set, _ := unstructured.NestedInt64(app.Object, "spec", "rollout", "minReadySeconds")
		if !set {
			seconds = defaultMinReady
		}
		return time.Duration(seconds)*time.Second - at.Sub(availableSince(deployment))
	}
	return 0
}

// availableSince is since when all pods of a Deployment are ready. Zero: for long.
func availableSince(deployment *unstructured.Unstructured) time.Time {
	conditions, _, _ := unstructured.NestedSlice(deployment.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == "Available" {
			since, _ := time.Parse(time.RFC3339, fmt.Sprint(c["lastTransitionTime"]))
			return since
		}
	}
	return time.Time{}
}

// inOrder returns versions in the order in which they came to be.
func inOrder(history []Version) []Version {
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b Version) int { return int(a.Number - b.Number) })
	return history
}

// claimed is what an object asks for that has to be so when another one says that it is ready.
func claimed(version Version) string {
	content := map[string]any{}
	if !strings.HasPrefix(version.Object, "ControllerRevision/") || json.Unmarshal([]byte(version.Asks), &content) != nil {
		return version.Asks
	}
	delete(content, goodField)
	return asks(content)
}
