package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Revision is everything that a pod template is made of, and, once it was applied, the
// template itself.
type Revision struct {
	// Spec holds the part of the WebApp's spec that pods depend on. The rest
	// (replicas, autoscaling, rollout, paused) is empty.
	Spec slipwayv1alpha1.WebAppSpec `json:"spec"`
	// ConfigHash identifies the content of the referenced Secrets and ConfigMaps, empty
	// when there are none.
	ConfigHash string `json:"configHash,omitempty"`
	// Template is the pod template as it was applied, so that it stays what it is when a
	// later release builds another one of the same spec. It is empty where none was applied
	// yet, and in what v0.1.0 stored, which ends in v0.4.0.
	Template json.RawMessage `json:"template,omitempty"`
}

// RevisionOf returns the revision that a spec asks for.
func RevisionOf(spec slipwayv1alpha1.WebAppSpec, configHash string) Revision {
	spec = *spec.DeepCopy()
	spec.Replicas = nil
	spec.Autoscaling = nil
	spec.Rollout = nil
	spec.Paused = false
	if spec.Storage != nil {
		// Only where the volume is mounted concerns a pod.
		spec.Storage = &slipwayv1alpha1.Storage{MountPath: spec.Storage.MountPath}
	}
	return Revision{Spec: spec, ConfigHash: configHash}
}

// Name returns what this release calls the revision: the application's name and a hash
// of the pod template that it builds, whatever template was applied. Two specs of the
// same name ask for the same pods.
func (r Revision) Name(app *slipwayv1alpha1.WebApp) (string, error) {
	return templateName(app, NewTemplate(app, r))
}

// Intent identifies what a user asks of a rollout: the spec without what says only
// how many pods run, and the configuration. A failed rollout is not tried again
// until it changes.
func Intent(spec slipwayv1alpha1.WebAppSpec, configHash string) (string, error) {
	rollout := spec.Rollout
	revision := RevisionOf(spec, configHash)
	revision.Spec.Rollout = rollout
	hash, err := canonicalHash(revision)
	if err != nil {
		return "", fmt.Errorf("hash the spec: %w", err)
	}
	return hash, nil
}

// DraftNumber is the number of a revision that was applied and has not been completely
// rolled out.
const DraftNumber = 0

// ControllerRevision keeps a revision where a restarted operator finds it. name is the
// revision's and data is it in JSON; number orders the good revisions: the highest is the
// last good one. One that is not good has DraftNumber.
func ControllerRevision(
	app *slipwayv1alpha1.WebApp, name string, data []byte, number int64,
) *appsv1ac.ControllerRevisionApplyConfiguration {
	return appsv1ac.ControllerRevision(name, app.Namespace).
		WithLabels(Labels(app)).
		WithOwnerReferences(ownerReference(app)).
		WithData(runtime.RawExtension{Raw: data}).
		WithRevision(number)
}

// canonicalHash hashes the JSON form with sorted keys, so that the order of fields
// in a Go struct does not count. 40 bits: it tells a handful of siblings apart.
func canonicalHash(object any) (string, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	var generic any
	if err := json.Unmarshal(raw, &generic); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(generic)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:5]), nil
}
