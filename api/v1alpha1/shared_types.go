package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Well-known labels and annotations. Every object that a controller creates
// carries the managed-by label: the controllers' caches select on it.
const (
	// LabelManagedBy marks an object that Slipway manages.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBySlipway is the value of LabelManagedBy on objects that Slipway manages.
	ManagedBySlipway = "slipway"
	// LabelName names the application that an object belongs to.
	LabelName = "app.kubernetes.io/name"
	// LabelWebApp names the WebApp that an object belongs to. It is part of the pod selector.
	LabelWebApp = "slipway.dev/webapp"
	// LabelAPIGateway names the APIGateway that an object belongs to. It is part of the pod selector.
	LabelAPIGateway = "slipway.dev/apigateway"
	// LabelBackup names the Backup that an object belongs to.
	LabelBackup = "slipway.dev/backup"
	// LabelBackupRun names the BackupRun that an object belongs to.
	LabelBackupRun = "slipway.dev/backuprun"
	// LabelRestore names the Restore that an object belongs to.
	LabelRestore = "slipway.dev/restore"
	// LabelRetentionRules stands on a Job that removes old copies. Its value identifies the rules by which it does.
	LabelRetentionRules = "slipway.dev/retention-rules"
	// LabelDrill stands on a Job that is a drill. Its value, a number, grows with each.
	LabelDrill = "slipway.dev/drill-job"
	// AnnotationDrill stands on a Backup. Each new value of it asks for a drill.
	AnnotationDrill = "slipway.dev/drill"
	// AnnotationMayExpire stands on a Backup. Its value, a number, is how many copies retention may remove at once. Without
	// it, that is 10.
	AnnotationMayExpire = "slipway.dev/may-expire"
	// AnnotationConfigHash stands on the pod template. It changes when a Secret or
	// ConfigMap key that the pods use changes, which is what restarts them.
	AnnotationConfigHash = "slipway.dev/config-hash"
)

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// name of the object, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="name must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
}

// ResourceRequirements are the compute resources of the application's container.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('cpu' in self.requests) || !('cpu' in self.limits) || !(type(self.requests['cpu']) == int || isQuantity(self.requests['cpu'])) || !(type(self.limits['cpu']) == int || isQuantity(self.limits['cpu'])) || quantity(string(self.requests['cpu'])).compareTo(quantity(string(self.limits['cpu']))) <= 0",message="spec.resources.requests.cpu must not exceed spec.resources.limits.cpu"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('memory' in self.requests) || !('memory' in self.limits) || !(type(self.requests['memory']) == int || isQuantity(self.requests['memory'])) || !(type(self.limits['memory']) == int || isQuantity(self.limits['memory'])) || quantity(string(self.requests['memory'])).compareTo(quantity(string(self.limits['memory']))) <= 0",message="spec.resources.requests.memory must not exceed spec.resources.limits.memory"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('ephemeral-storage' in self.requests) || !('ephemeral-storage' in self.limits) || !(type(self.requests['ephemeral-storage']) == int || isQuantity(self.requests['ephemeral-storage'])) || !(type(self.limits['ephemeral-storage']) == int || isQuantity(self.limits['ephemeral-storage'])) || quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity(string(self.limits['ephemeral-storage']))) <= 0",message="spec.resources.requests.ephemeral-storage must not exceed spec.resources.limits.ephemeral-storage"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests.all(k, !((k.contains('/') || k.startsWith('hugepages-')) && (!has(self.limits) || !(k in self.limits))))",message="a device, and huge pages, need a limit: they cannot be shared",messageExpression="'spec.resources.limits.' + self.requests.filter(k, (k.contains('/') || k.startsWith('hugepages-')) && (!has(self.limits) || !(k in self.limits)))[0] + ' is required with its request: it cannot be shared'"
type ResourceRequirements struct {
	// requests is what the scheduler reserves, for example {cpu: 100m, memory: 64Mi}; at
	// most 7 resources. Default: none.
	// +kubebuilder:validation:MaxProperties=7
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?|hugepages-[0-9]+[KMGTPE]i|cpu|memory|ephemeral-storage)$'))",message="spec.resources.requests may hold cpu, memory, ephemeral-storage, hugepages-<size> and devices such as example.com/gpu",messageExpression="'spec.resources.requests: there is no resource ' + self.filter(k, !k.matches('^(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?|hugepages-[0-9]+[KMGTPE]i|cpu|memory|ephemeral-storage)$'))[0] + ': there are cpu, memory, ephemeral-storage, hugepages-<size> and devices such as example.com/gpu'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : !self[k].startsWith('-'))",message="spec.resources.requests must not be negative",messageExpression="'spec.resources.requests.' + self.filter(k, type(self[k]) == int ? self[k] < 0 : self[k].startsWith('-'))[0] + ' must not be negative'"
	// +kubebuilder:validation:XValidation:rule="!('memory' in self) || type(self['memory']) == int || !isQuantity(self['memory']) || !(self['memory'].endsWith('m') || self['memory'].endsWith('u') || self['memory'].endsWith('n') || self['memory'].matches('[.][0-9]+$|[eE]-'))",message="spec.resources.requests.memory must be a whole number of bytes; m stands for thousandths, M and Mi for millions"
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits is what the container may use at most; at most 7 resources. A request must
	// not exceed its limit. Default: none.
	// +kubebuilder:validation:MaxProperties=7
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?|hugepages-[0-9]+[KMGTPE]i|cpu|memory|ephemeral-storage)$'))",message="spec.resources.limits may hold cpu, memory, ephemeral-storage, hugepages-<size> and devices such as example.com/gpu",messageExpression="'spec.resources.limits: there is no resource ' + self.filter(k, !k.matches('^(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?|hugepages-[0-9]+[KMGTPE]i|cpu|memory|ephemeral-storage)$'))[0] + ': there are cpu, memory, ephemeral-storage, hugepages-<size> and devices such as example.com/gpu'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : !self[k].startsWith('-'))",message="spec.resources.limits must not be negative",messageExpression="'spec.resources.limits.' + self.filter(k, type(self[k]) == int ? self[k] < 0 : self[k].startsWith('-'))[0] + ' must not be negative'"
	// +kubebuilder:validation:XValidation:rule="!('memory' in self) || type(self['memory']) == int || !isQuantity(self['memory']) || !(self['memory'].endsWith('m') || self['memory'].endsWith('u') || self['memory'].endsWith('n') || self['memory'].matches('[.][0-9]+$|[eE]-'))",message="spec.resources.limits.memory must be a whole number of bytes; m stands for thousandths, M and Mi for millions"
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
