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
// +kubebuilder:resource:shortName=slwapp;app,categories=slipway
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Does the cluster run what the spec says?"
// +kubebuilder:printcolumn:name="Replicas",type=string,JSONPath=`.status.summary.replicas`,description="Ready and wanted replicas"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="The image that runs"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.serviceURL`,description="Address inside the cluster"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.summary.reason`,description="Why the application is not ready, and whether it is paused"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: pods and volumes are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and hold only lower case letters, digits and '-': the Service is named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage) || !has(oldSelf.spec.storage) || !has(self.status) || !has(self.status.storageSize) || !isQuantity(string(self.spec.storage.size)) || quantity(string(self.spec.storage.size)).compareTo(quantity(string(oldSelf.spec.storage.size))) >= 0 || quantity(string(self.spec.storage.size)).compareTo(quantity(string(self.status.storageSize))) >= 0",message="spec.storage.size cannot be less than status.storageSize: a volume cannot shrink",fieldPath=".spec.storage.size"
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
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || !has(self.files) || self.files.all(f, (f.mountPath.endsWith('/') ? f.mountPath : f.mountPath + '/') != (self.storage.mountPath.endsWith('/') ? self.storage.mountPath : self.storage.mountPath + '/'))",message="spec.files: mountPath must differ from spec.storage.mountPath"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || (has(self.resources) && ((has(self.resources.requests) && 'cpu' in self.resources.requests) || (has(self.resources.limits) && 'cpu' in self.resources.limits)))",message="spec.resources.requests.cpu is required with spec.autoscaling: CPU use is measured against it"
type WebAppSpec struct {
	// image is the container image, for example registry.example.com/shop:1.4.2. It
	// must name a non-root user by number: pods run with runAsNonRoot.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]*$')",message="spec.image must not hold white space"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^\\\\s]+$') || self.matches('^(?:(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\\\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\\\\[[a-fA-F0-9:]+\\\\])(?::[0-9]+)?/)?[a-z0-9]+(?:(?:\\\\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\\\\.|_|__|-+)[a-z0-9]+)*)*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[a-fA-F0-9]{32,})?$')",message="spec.image must name an image, for example registry.example.com/shop:1.4.2: the repository in lower case, then :tag, @digest or both"
	// +required
	Image string `json:"image"`

	// replicas is how many pods run, from 0 to 1000. Default 1; 0 stops the application
	// and keeps everything else. At most 1 with storage. Ignored while autoscaling is set.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// port is where the application listens, and the port of its Service, from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`

	// env are environment variables by name, at most 200 of at most 32 KiB each. They
	// win over envFrom. $(NAME) in a value stands for the variable NAME, wherever it is
	// defined, and $$(NAME) for the text $(NAME). A name that nothing defines stays as it is.
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$'))",message="spec.env: a name must hold only letters, digits, '-', '_' and '.' and must not start with a digit",messageExpression="\"spec.env: the name '\" + self.filter(k, !k.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$'))[0] + \"' must hold only letters, digits, '-', '_' and '.' and must not start with a digit\""
	// +optional
	Env map[string]EnvValue `json:"env,omitempty"`

	// envFrom adds environment variables from Secrets and ConfigMaps, at most 32. If several
	// set the same variable, env wins, then an entry with keys, then one without. Of two
	// entries of the same sort the later one wins. Pods restart, rolling, when the content of
	// a key that they use changes.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`

	// files mounts Secrets and ConfigMaps as read-only directories, at most 32. Pods
	// restart, rolling, when the content of a key that they use changes.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(f, self.exists_one(g, (g.mountPath.endsWith('/') ? g.mountPath : g.mountPath + '/') == (f.mountPath.endsWith('/') ? f.mountPath : f.mountPath + '/')))",message="spec.files: every mountPath must be unique, with or without a slash at its end"
	// +listType=atomic
	// +optional
	Files []FileSource `json:"files,omitempty"`

	// command replaces the image's entry point: the program and its first arguments, at
	// most 64 words. Default: the image's.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || size(self[0]) > 0",message="spec.command must begin with a program"
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// args are the arguments of the entry point, at most 128. Default: the image's.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// resources are the container's compute resources. Default: no requests and no limits.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// health says how to tell that a pod can serve. Default: it accepts TCP
	// connections on port.
	// +optional
	Health *HealthCheck `json:"health,omitempty"`

	// autoscaling lets CPU use decide the number of replicas. It needs
	// resources.requests.cpu, cannot be combined with storage, and works where the
	// cluster serves resource metrics. Default: replicas decides.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// storage gives the application one volume, the PersistentVolumeClaim <name>-data.
	// It then runs as at most one pod, and an update stops the old pod before it starts
	// the new one. Removing storage keeps the volume. Default: no volume.
	// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) == !has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="spec.storage.storageClassName cannot be changed: a volume stays in its class"
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// rollout says how a change is rolled out and what happens when it fails.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// imagePullSecrets are the Secrets used to pull the image, at most 16, in the same
	// namespace. One that does not exist is told by the condition PullSecretMissing.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`

	// serviceAccountName is the identity that the pods run as; its token is mounted.
	// Default: the namespace's default ServiceAccount, and no token is mounted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="spec.serviceAccountName must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// paused stops the operator from changing anything that belongs to this
	// application: no rollout, no rollback, no restart, nothing restored. Status is still
	// reported. Default false.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// EnvValue is the value of an environment variable, at most 32 KiB.
//
// +kubebuilder:validation:MaxLength=32768
type EnvValue string

// EnvFromSource adds the keys of one Secret or ConfigMap of the same namespace as
// environment variables.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="set exactly one of secretRef and configMapRef"
type EnvFromSource struct {
	// secretRef names a Secret. Set it or configMapRef.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// configMapRef names a ConfigMap. Set it or secretRef.
	// +optional
	ConfigMapRef *LocalReference `json:"configMapRef,omitempty"`
	// keys are the keys to use, at most 64. Default: all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="a key must hold only letters, digits, '-', '_' and '.', must not be '.' and must not start with '..'"
	// +listType=set
	// +optional
	Keys []string `json:"keys,omitempty"`
	// prefix is put before every variable's name, at most 128 characters. Default: none.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$')",message="prefix must hold only letters, digits, '-', '_' and '.' and must not start with a digit"
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// optional lets the application start without the object, or without a key of it.
	// Default false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FileSource mounts one Secret or ConfigMap of the same namespace as a directory: a
// file per key.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="set exactly one of secretRef and configMapRef"
type FileSource struct {
	// mountPath is the directory, an absolute path, for example /etc/shop.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self != '/'",message="mountPath must not be /: it would hide the whole image"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(':')",message="mountPath must be absolute and must not hold ':'"
	// +kubebuilder:validation:XValidation:rule="!self.matches('/[.]{0,2}/|/[.]{1,2}$')",message="mountPath must not hold '//', '/./' or '/../'"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^/(proc|sys|dev)(/|$)|^/etc/(hosts|hostname|resolv[.]conf)/?$|^/(var/)?run/secrets/kubernetes[.]io(/|$)')",message="mountPath must not be in /proc, /sys, /dev or /var/run/secrets/kubernetes.io, nor one of /etc/hosts, /etc/hostname and /etc/resolv.conf: the container runtime and Kubernetes need them"
	// +required
	MountPath string `json:"mountPath"`
	// secretRef names a Secret. Set it or configMapRef.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// configMapRef names a ConfigMap. Set it or secretRef.
	// +optional
	ConfigMapRef *LocalReference `json:"configMapRef,omitempty"`
	// keys are the keys to mount, at most 64. Default: all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="a key must hold only letters, digits, '-', '_' and '.', must not be '.' and must not start with '..'"
	// +listType=set
	// +optional
	Keys []string `json:"keys,omitempty"`
	// optional lets the application start without the object, or without a key of it.
	// Default false.
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
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:space:][:cntrl:]]')",message="spec.health.path must not hold white space: write %20"
	// +required
	Path string `json:"path"`
	// periodSeconds is the time between two checks, from 1 to 300 seconds. Default 5.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`
	// timeoutSeconds is how long one check may take, from 1 to 300 seconds. Default 2.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// failureThreshold is how many failed checks in a row make a pod not ready, from 1 to
	// 100. Default 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`
}

// Autoscaling lets CPU use decide the number of replicas.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="spec.autoscaling.minReplicas must not exceed maxReplicas"
type Autoscaling struct {
	// minReplicas is the lower bound, from 1 to maxReplicas. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// maxReplicas is the upper bound, from minReplicas to 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +required
	MaxReplicas int32 `json:"maxReplicas"`
	// cpuPercent is the average CPU use to aim at, in percent of resources.requests.cpu,
	// from 1 to 1000. Default 80.
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
	// size of the volume, for example 10Gi. It can grow if the storage class allows it. It
	// cannot shrink. A larger size that is not granted yet can be lowered again, but not
	// below status.storageSize.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="spec.storage.size must be a number of bytes, such as 10Gi, 500M or 1000000"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('0')) > 0",message="spec.storage.size must be greater than 0"
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^[0-9]*[.][0-9]+$|[mun]$|[eE]-')",message="spec.storage.size must be a whole number of bytes; m stands for thousandths, M and Mi for millions"
	// +required
	Size resource.Quantity `json:"size"`
	// mountPath is the directory of the volume in the container, an absolute path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self != '/'",message="spec.storage.mountPath must not be /: it would hide the whole image"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(':')",message="spec.storage.mountPath must be absolute and must not hold ':'"
	// +kubebuilder:validation:XValidation:rule="!self.matches('/[.]{0,2}/|/[.]{1,2}$')",message="spec.storage.mountPath must not hold '//', '/./' or '/../'"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^/(proc|sys|dev)(/|$)|^/etc/(hosts|hostname|resolv[.]conf)/?$|^/(var/)?run/secrets/kubernetes[.]io(/|$)')",message="spec.storage.mountPath must not be in /proc, /sys, /dev or /var/run/secrets/kubernetes.io, nor one of /etc/hosts, /etc/hostname and /etc/resolv.conf: the container runtime and Kubernetes need them"
	// +required
	MountPath string `json:"mountPath"`
	// storageClassName is the class of the volume. It cannot be changed. Default: the
	// cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="spec.storage.storageClassName must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// deletionPolicy says what happens to the volume when the WebApp is deleted: Retain
	// keeps it for a WebApp of the same name, Delete deletes it. Default Retain.
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
	// has failed, from 1 to 86400 seconds. Default 300.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// minReadySeconds is how long all pods must have been ready without interruption, after
	// the rollout is complete, before its revision becomes the last good one, from 0 to
	// 3600 seconds. A revision that fails before is rolled back. Ready does not wait for it.
	// Default 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// onFailure says what happens when a rollout fails: Rollback returns to the last good
	// revision, Hold leaves the failed one as it is and reports it. Default Rollback.
	// +kubebuilder:default=Rollback
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`
}
