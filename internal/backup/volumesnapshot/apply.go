package volumesnapshot

import (
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// ApplyConfiguration is what is stated of a VolumeSnapshot.
type ApplyConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

// IsApplyConfiguration marks it as one.
func (a *ApplyConfiguration) IsApplyConfiguration() {}

// GetKind returns the kind.
func (a *ApplyConfiguration) GetKind() *string { return a.Kind }

// GetAPIVersion returns the API version.
func (a *ApplyConfiguration) GetAPIVersion() *string { return a.APIVersion }

// GetName returns the name.
func (a *ApplyConfiguration) GetName() *string { return a.Name }

// GetNamespace returns the namespace.
func (a *ApplyConfiguration) GetNamespace() *string { return a.Namespace }

// Wanted returns a snapshot of the volume of a claim.
func Wanted(name, namespace, claim, class string) *ApplyConfiguration {
	kind, version := Kind, GroupVersion.String()
	return &ApplyConfiguration{
		TypeMetaApplyConfiguration:   metav1ac.TypeMetaApplyConfiguration{Kind: &kind, APIVersion: &version},
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().WithName(name).WithNamespace(namespace),
		Spec:                         Spec{Source: Source{ClaimName: &claim}, ClassName: &class},
	}
}
