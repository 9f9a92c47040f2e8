package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Backup keeps copies of volumes in a repository: encrypted, deduplicated, on a schedule. A copy counts only when it has
// been read back from the repository by another process.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slwbk;bk,categories=slipway
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`,description="What is backed up"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`,description="When; empty: once"
// +kubebuilder:printcolumn:name="Destination",type=string,JSONPath=`.spec.destination`,description="Where the repository is"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How the newest run stands"
// +kubebuilder:printcolumn:name="Last Backup",type=date,JSONPath=`.status.lastBackupTime`,description="When the source of the newest verified copy was read"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Do backups work, and is the newest copy as new as the schedule promises?"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.summary.reason`,description="Why the backup is not ready"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name must be at most 40 characters: runs and their pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must hold only lower case letters, digits and '-': pods are named after it"
type Backup struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is backed up, when, where to, and how long copies are kept.
	// +required
	Spec BackupSpec `json:"spec"`
	// status is which copies there are, and whether they can be relied on.
	// +optional
	Status BackupStatus `json:"status,omitempty"`
}

// BackupList is a list of Backups.
//
// +kubebuilder:object:root=true
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Backup `json:"items"`
}

// BackupSpec is what is backed up, when, where to, and how long copies are kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || !has(self.retentionPolicy)",message="spec: set at most one of retention and retentionPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",message="spec.timeZone needs spec.schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.startingDeadline) || has(self.schedule)",message="spec.startingDeadline needs spec.schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.dump) || !(has(self.include) || has(self.exclude) || (has(self.allowPartial) && self.allowPartial))",message="spec.dump does not go with include, exclude and allowPartial: they are for volumes"
// +kubebuilder:validation:XValidation:rule="!has(self.dump) || has(self.dump.image) || self.source.matches('^(webapp|statefulset|deployment)/')",message="spec.dump.image is required where spec.source names no workload"
// +kubebuilder:validation:XValidation:rule="!has(self.dump) || !has(self.dump.container) || self.source.matches('^(webapp|statefulset|deployment)/')",message="spec.dump.container needs a workload in spec.source"
// +kubebuilder:validation:XValidation:rule="!has(self.dump) || !has(self.mover) || !has(self.mover.runAs) || self.mover.runAs != 'Root'",message="spec.dump does not go with mover.runAs Root: it reads no volume"
// +kubebuilder:validation:XValidation:rule="!has(self.dump) || !has(self.hooks)",message="spec.dump does not go with hooks: they are for volumes"
// +kubebuilder:validation:XValidation:rule="!has(self.dump) || !has(self.volumeSnapshot)",message="spec.dump does not go with volumeSnapshot: it reads no volume"
type BackupSpec struct {
	// source is what to back up: the name of a PersistentVolumeClaim in the same namespace, also written pvc/<name>; or
	// webapp/<name>, statefulset/<name> or deployment/<name> for all volumes of its pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=265
	// +kubebuilder:validation:XValidation:rule="self.matches('^((pvc|webapp|statefulset|deployment)/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="spec.source must be the name of a PersistentVolumeClaim, or pvc/, webapp/, statefulset/ or deployment/ and a name"
	// +required
	Source string `json:"source"`

	// schedule is when to back up: the five fields of cron (minute, hour, day of the month, month, day of the week), for
	// example "0 2 * * *", or @hourly, @daily, @weekly, @monthly or @yearly. A run starts up to a tenth of the time between
	// two runs later, at most 10 minutes, so that many Backups do not start at once. Default: once, when the Backup is made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the zone of the schedule, and of the days, weeks and so on of retention, for example Europe/Berlin.
	// Default: UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// destination is where the repository is: s3://<bucket>/<prefix>, or pvc://<claim>/<path> for a
	// PersistentVolumeClaim of the same namespace. The repository is in <namespace>/<name> below it.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]|pvc://[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)(/[-A-Za-z0-9_.]*[-A-Za-z0-9_][-A-Za-z0-9_.]*)*/?$')",message="spec.destination must be s3://<bucket>/<prefix> or pvc://<claim>/<path>, of letters, digits, '-', '_' and '.'"
	// +required
	Destination string `json:"destination"`

	// credentials names the Secret for an S3 destination, with the keys accessKeyID and secretAccessKey and, where needed,
	// sessionToken, endpoint (an address such as https://s3.example.com), region, and ca.crt. Default: slipway-backup.
	// +optional
	Credentials *LocalReference `json:"credentials,omitempty"`

	// encryption names the Secret with the key password, which the repository is encrypted with. Without it nobody can
	// restore: keep a copy of it outside of the cluster. The operator adds the key repositoryID, so that no other repository
	// is ever taken for this one. Default: <name>-encryption, which is made, with a password of 256 random bits, if it is
	// not there and no repository was ever made.
	// +optional
	Encryption *LocalReference `json:"encryption,omitempty"`

	// retentionPolicy is how long copies are kept, for example 30d or 1y6mo: the units are h, d, w, mo and y, each at most
	// once. It counts from the newest copy, so nothing is removed when backups stop. The newest verified copy is always
	// kept. Default, without retention: everything is kept.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|d|w|mo|y))+$')",message="spec.retentionPolicy must be a number and a unit such as 30d: h, d, w, mo or y (m could mean minutes or months)"
	// +optional
	RetentionPolicy string `json:"retentionPolicy,omitempty"`

	// retention says by count which copies are kept.
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`

	// include restricts the copy to these files and folders of each volume, at most 100 paths from its root without a
	// leading slash. Each has to exist. Default: all.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	Include []BackupPath `json:"include,omitempty"`

	// exclude leaves out what matches one of these patterns, at most 100: without a slash a name in any folder, with one a
	// path from the root; * and ? stand for characters of one name, ** for any number of folders, a slash at the end for
	// folders only. Default: nothing.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	// +optional
	Exclude []string `json:"exclude,omitempty"`

	// dump backs up the output of a command instead of volumes. No volume of the source is read: source names the workload
	// whose image, environment and user the command gets, or a PersistentVolumeClaim of whose pods it gets the user. The
	// copy holds one file. include, exclude, allowPartial, hooks and volumeSnapshot do not go with it.
	// +optional
	Dump *BackupDump `json:"dump,omitempty"`

	// verify says how closely each copy is looked at before it counts.
	// +optional
	Verify *BackupVerify `json:"verify,omitempty"`

	// suspend lets no run start. Runs under way go on. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// deadline is how long a run may take, with its retries, from 1m to 24h. Default 12h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1m')",message="spec.deadline must be at least 1m"
	// +optional
	Deadline Duration `json:"deadline,omitempty"`

	// startingDeadline is how late a run may start, up to 24h, for example when the operator was away. Later than that its
	// slot is missed. Default: no bound; of several slots that went by only the newest is run.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1m')",message="spec.startingDeadline must be at least 1m"
	// +optional
	StartingDeadline Duration `json:"startingDeadline,omitempty"`

	// allowPartial accepts a copy of which something could not be read. Status says how much is missing. Default false: then
	// there is no copy, and the run fails.
	// +optional
	AllowPartial bool `json:"allowPartial,omitempty"`

	// allowEmpty accepts a copy of a volume without any file, or of a dump without any output. Default false: an empty
	// volume is mostly one that lost its data.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// deletionPolicy says what becomes of the repository when the Backup is deleted. Retain leaves it as it is, Delete
	// deletes it with all copies. Default Retain.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy BackupDeletionPolicy `json:"deletionPolicy,omitempty"`

	// historyLimit is how many BackupRuns are kept that have ended, from 1 to 100. The newest one that completed is kept
	// beside them. Copies do not depend on it. Default 10.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// mover says how the pods run that read the volume.
	// +optional
	Mover *BackupMover `json:"mover,omitempty"`

	// hooks are commands that run in the pods of the workload, before a volume is read and after. The pods have to allow
	// them, and the operator has to have been given the right.
	// +optional
	Hooks *BackupHooks `json:"hooks,omitempty"`

	// volumeSnapshot says whether volumes are read from a snapshot of them, which holds what was there at one moment.
	// Default: where a volume can be snapshotted.
	// +optional
	VolumeSnapshot *BackupVolumeSnapshot `json:"volumeSnapshot,omitempty"`
}

// BackupPath is a path from the root of a volume, without a leading slash.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(e, size(e) == 0 || e == '.' || e == '..')",message="a path must not begin or end with '/', and hold no empty element, '.' or '..'"
type BackupPath string

// BackupRetention says by count which copies are kept: one that any of the rules keeps. A rule counts verified copies only.
// hourly keeps the newest of each of the last hours that have one, and so do the others for their periods.
//
// +kubebuilder:validation:MinProperties=1
type BackupRetention struct {
	// last keeps the newest copies, from 1 to 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Last int32 `json:"last,omitempty"`
	// hourly keeps a copy of each of so many hours, from 1 to 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Hourly int32 `json:"hourly,omitempty"`
	// daily keeps a copy of each of so many days, from 1 to 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Daily int32 `json:"daily,omitempty"`
	// weekly keeps a copy of each of so many weeks, from 1 to 1000. Weeks begin on Monday.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Weekly int32 `json:"weekly,omitempty"`
	// monthly keeps a copy of each of so many months, from 1 to 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Monthly int32 `json:"monthly,omitempty"`
	// yearly keeps a copy of each of so many years, from 1 to 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Yearly int32 `json:"yearly,omitempty"`
}

// BackupVerify says how closely each copy is looked at.
type BackupVerify struct {
	// mode is Sample or Full. Both list the copy by its run, walk its whole tree, compare the counts with what was read,
	// and look for all its data in the repository. Sample then reads a twentieth of the files back, Full all of them.
	// Default Sample.
	// +kubebuilder:default=Sample
	// +optional
	Mode VerifyMode `json:"mode,omitempty"`
	// drill has copies restored from time to time, and compared with what the source held. Default: never.
	// +optional
	Drill *BackupDrill `json:"drill,omitempty"`
}

// VerifyMode is how much of a copy is read back.
//
// +kubebuilder:validation:Enum=Sample;Full
type VerifyMode string

// The modes of verification.
const (
	// VerifySample reads a twentieth of the files back.
	VerifySample VerifyMode = "Sample"
	// VerifyFull reads all files back.
	VerifyFull VerifyMode = "Full"
)

// BackupDeletionPolicy is what becomes of a repository.
//
// +kubebuilder:validation:Enum=Retain;Delete
type BackupDeletionPolicy string

// The deletion policies.
const (
	// DeletionRetain leaves the repository as it is.
	DeletionRetain BackupDeletionPolicy = "Retain"
	// DeletionDelete deletes the repository.
	DeletionDelete BackupDeletionPolicy = "Delete"
)

// BackupMover says how the pods run that read or write a volume.
//
// +kubebuilder:validation:XValidation:rule="!has(self.user) || !has(self.runAs) || self.runAs != 'Root'",message="mover.user does not go with mover.runAs Root"
type BackupMover struct {
	// runAs is Workload or Root. Workload runs the pod as the user that the volume's own pods run as, if that can be told,
	// and fits the restricted Pod Security level. Root runs it as root with the capabilities DAC_READ_SEARCH and, for a
	// Restore, CHOWN, DAC_OVERRIDE, FOWNER and FSETID: for files of several owners. The namespace has to allow that.
	// Default Workload.
	// +kubebuilder:default=Workload
	// +optional
	RunAs MoverUser `json:"runAs,omitempty"`
	// user is the number of the user to run as, instead of that of the volume's pods, from 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	User *int64 `json:"user,omitempty"`
	// group is the number of the group to run as, from 1. Default: that of the volume's pods, else that of the user.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Group *int64 `json:"group,omitempty"`
	// resources are the compute resources of the pod. Default: 100m CPU and 256Mi memory asked, 1Gi memory at most.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`
	// imagePullSecrets are the Secrets used to pull the images of the pod, at most 16, in the same namespace. One that
	// does not exist is told by the condition PullSecretMissing. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`
	// priorityClassName is the PriorityClass of the pod, at most 253 characters. Default: that of the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// MoverUser is who a mover runs as.
//
// +kubebuilder:validation:Enum=Workload;Root
type MoverUser string

// Who a mover runs as.
const (
	// MoverWorkload is the user that the volume's own pods run as.
	MoverWorkload MoverUser = "Workload"
	// MoverRoot is root, with the capability to read all files.
	MoverRoot MoverUser = "Root"
)

// DefaultCredentials is the name of the Secret for an S3 destination where the spec names none.
const DefaultCredentials = "slipway-backup"

// EncryptionSecret is the name of the Secret with the password of the repository.
func (b *Backup) EncryptionSecret() string {
	if b.Spec.Encryption != nil {
		return b.Spec.Encryption.Name
	}
	return b.Name + "-encryption"
}

// OwnsKey reports whether no other Backup uses the Secret with the password: it has the name that the operator gives it.
func (b *Backup) OwnsKey() bool { return b.EncryptionSecret() == b.Name+"-encryption" }

// CredentialsSecret is the name of the Secret with the credentials for an S3 destination.
func (b *Backup) CredentialsSecret() string {
	if b.Spec.Credentials != nil {
		return b.Spec.Credentials.Name
	}
	return DefaultCredentials
}
