// Package v1alpha1 is version v1alpha1 of the Slipway API, group slipway.dev.
//
// It holds types and constants only and imports nothing but k8s.io/api and
// k8s.io/apimachinery, so programs can depend on it without pulling in a
// controller framework.
//
// +kubebuilder:object:generate=true
// +groupName=slipway.dev
// +groupGoName=Slipway
package v1alpha1
