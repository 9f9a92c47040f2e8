package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebApp runs an application that serves HTTP: a Deployment and a Service and,
// as asked, an autoscaler, a disruption budget and a volume.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=app,categories=slipway
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Does the cluster run what the spec says?"
// +kubebuilder:printcolumn:name="Replicas",type=string,JSONPath=`.status.summary.replicas`,description="Ready and wanted replicas"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="The image that runs"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.serviceURL`,description="Address inside the cluster"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.summary.reason`,description="Why the application is not ready"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: pods and volumes are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and hold only lower case letters, digits and '-': the Service is named after it"
type WebApp struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the application as it should run.
	// +required
	Spec WebAppSpec `json:"spec"`
	// status is the application as it runs.
	// +optional
	Status WebAppStatus `json:"status,omitempty"`
}

// WebAppList is a list of WebApps.
//
// +kubebuilder:object:root=true
type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WebApp `json:"items"`
}

// WebAppSpec is the application as it should run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || self.replicas <= 1",message="spec.replicas must be 0 or 1 with spec.storage: the volume is attached to one pod"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || !has(self.autoscaling)",message="spec.autoscaling cannot be combined with spec.storage: the volume is attached to one pod"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || (has(self.resources) && ((has(self.resources.requests) && 'cpu' in self.resources.requests) || (has(self.resources.limits) && 'cpu' in self.resources.limits)))",message="spec.resources.requests.cpu is required with spec.autoscaling: CPU use is measured against it"
type WebAppSpec struct {
	// image is the container image, for example registry.example.com/shop:1.4.2.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]+$')",message="spec.image must not hold white space"
	// +required
	Image string `json:"image"`

	// replicas is how many pods run. Default 1; 0 stops the application and keeps
	// everything else. Ignored while autoscaling is set.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// port is where the application listens, and the port of its Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`

	// env are environment variables by name.
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$'))",message="spec.env: a name must hold only letters, digits, '-', '_' and '.' and must not start with a digit"
	// +optional
	Env map[string]EnvValue `json:"env,omitempty"`

	// envFrom adds environment variables from Secrets and ConfigMaps. A later entry
	// wins over an earlier one, env wins over both. Pods restart, rolling, when a key
	// that they use changes.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`

	// files mounts Secrets and ConfigMaps as read-only directories. Pods restart,
	// rolling, when a key that they use changes.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(f, self.exists_one(g, g.mountPath == f.mountPath))",message="spec.files: every mountPath must be unique"
	// +listType=atomic
	// +optional
	Files []FileSource `json:"files,omitempty"`

	// command replaces the image's entry point.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// args are the arguments of the entry point.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// resources are the container's compute resources. Default: none asked, none limited.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// health says how to tell that a pod can serve. Default: it accepts TCP
	// connections on port.
	// +optional
	Health *HealthCheck `json:"health,omitempty"`

	// autoscaling lets CPU use decide the number of replicas.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// storage gives the application one volume. It then runs as at most one pod, and
	// an update stops the old pod before it starts the new one.
	// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) == !has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="spec.storage.storageClassName cannot be changed: a volume stays in its class"
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// rollout says how a change is rolled out and what happens when it fails.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// imagePullSecrets are the Secrets used to pull the image.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`

	// serviceAccountName is the identity that the pods run as. Default: the
	// namespace's default ServiceAccount, without its token mounted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// paused stops the operator from changing anything that belongs to this
	// application. Status is still reported.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// EnvValue is the value of an environment variable, at most 32 KiB.
//
// +kubebuilder:validation:MaxLength=32768
type EnvValue string

// EnvFromSource adds the keys of one Secret or ConfigMap as environment variables.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="set exactly one of secretRef and configMapRef"
type EnvFromSource struct {
	// secretRef names a Secret.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// configMapRef names a ConfigMap.
	// +optional
	ConfigMapRef *LocalReference `json:"configMapRef,omitempty"`
	// keys are the keys to use. Default: all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Keys []string `json:"keys,omitempty"`
	// prefix is put before every variable's name.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$')",message="prefix must hold only letters, digits, '-', '_' and '.' and must not start with a digit"
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// optional lets the application start without the object. Default false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FileSource mounts one Secret or ConfigMap as a directory: a file per key.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="set exactly one of secretRef and configMapRef"
type FileSource struct {
	// mountPath is the directory, for example /etc/shop.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(':')",message="mountPath must be absolute and must not hold ':'"
	// +required
	MountPath string `json:"mountPath"`
	// secretRef names a Secret.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// configMapRef names a ConfigMap.
	// +optional
	ConfigMapRef *LocalReference `json:"configMapRef,omitempty"`
	// keys are the keys to mount. Default: all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Keys []string `json:"keys,omitempty"`
	// optional lets the application start without the object. Default false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// HealthCheck says how to tell that a pod can serve.
type HealthCheck struct {
	// path is requested with HTTP GET on the application's port; a status from 200 to
	// 399 means ready.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="spec.health.path must start with '/'"
	// +required
	Path string `json:"path"`
	// periodSeconds is the time between two checks. Default 5.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`
	// timeoutSeconds is how long one check may take. Default 2.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// failureThreshold is how many failed checks in a row make a pod not ready. Default 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`
}

// Autoscaling lets CPU use decide the number of replicas.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="spec.autoscaling.minReplicas must not exceed maxReplicas"
type Autoscaling struct {
	// minReplicas is the lower bound. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// maxReplicas is the upper bound.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +required
	MaxReplicas int32 `json:"maxReplicas"`
	// cpuPercent is the average CPU use to aim at, in percent of resources.requests.cpu. Default 80.
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	CPUPercent *int32 `json:"cpuPercent,omitempty"`
}

// DeletionPolicy says what happens to stored data when the WebApp is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionPolicyRetain keeps the data. A WebApp of the same name finds it again.
	DeletionPolicyRetain DeletionPolicy = "Retain"
	// DeletionPolicyDelete deletes the data with the WebApp.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// Storage is one volume of the application.
type Storage struct {
	// size of the volume, for example 10Gi. It can grow where the storage class allows
	// it, and never shrink.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) > 0",message="spec.storage.size must be greater than 0"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="spec.storage.size cannot shrink"
	// +required
	Size resource.Quantity `json:"size"`
	// mountPath is the directory of the volume in the container.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(':')",message="spec.storage.mountPath must be absolute and must not hold ':'"
	// +required
	MountPath string `json:"mountPath"`
	// storageClassName is the class of the volume. Default: the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// deletionPolicy says what happens to the volume when the WebApp is deleted. Default Retain.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// FailurePolicy says what happens when a rollout fails.
//
// +kubebuilder:validation:Enum=Rollback;Hold
type FailurePolicy string

const (
	// FailurePolicyRollback returns to the last good revision.
	FailurePolicyRollback FailurePolicy = "Rollback"
	// FailurePolicyHold leaves the failed rollout as it is and reports it.
	FailurePolicyHold FailurePolicy = "Hold"
)

// Rollout says how a change is rolled out.
type Rollout struct {
	// progressDeadlineSeconds is how long a rollout may go without progress before it
	// has failed. Default 300.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// onFailure says what happens when a rollout fails. Default Rollback.
	// +kubebuilder:default=Rollback
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`
}
