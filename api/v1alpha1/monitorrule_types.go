package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MonitorRule says which changes or states of objects the monitor raises an alarm for. It holds for the whole cluster.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=slwmrule;mrule
// +kubebuilder:printcolumn:name="Severity",type=string,JSONPath=`.spec.severity`,description="How bad it is"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the monitor evaluates it"
// +kubebuilder:printcolumn:name="Firing",type=integer,JSONPath=`.status.firing`,description="For how many objects the alarm stands"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is evaluated, or not",priority=1
type MonitorRule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to look for, and what to do then.
	// +required
	Spec MonitorRuleSpec `json:"spec"`
	// status is what the monitor says about it.
	// +optional
	Status MonitorRuleStatus `json:"status,omitempty"`
}

// MonitorRuleList is a list of MonitorRules.
//
// +kubebuilder:object:root=true
type MonitorRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MonitorRule `json:"items"`
}

// MonitorRuleSpec is what to look for, and what to do then. With none of when, changes, fight and stuckDeletion it would say
// nothing, so one of them at least is required. Where several are set, all have to hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.when) || has(self.changes) || has(self.fight) || has(self.stuckDeletion)",message="spec: set at least one of when, changes, fight and stuckDeletion"
// +kubebuilder:validation:XValidation:rule="[has(self.changes), has(self.fight), has(self.stuckDeletion)].filter(x, x).size() <= 1",message="spec: set at most one of changes, fight and stuckDeletion"
type MonitorRuleSpec struct {
	// kinds are the kinds of objects that it is about. Default: every kind that the monitor watches.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Kinds []MonitoredKind `json:"kinds,omitempty"`
	// namespaces are the ones that it is about, where * stands for any text: team-*. Objects without a namespace are then left
	// out. Default: all.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[-a-z0-9*]+$')",message="must be the name of a namespace, where * stands for any text"
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// excludeNamespaces are left out, as in namespaces.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[-a-z0-9*]+$')",message="must be the name of a namespace, where * stands for any text"
	// +listType=set
	// +optional
	ExcludeNamespaces []string `json:"excludeNamespaces,omitempty"`
	// selector selects objects by their labels. Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// when is a CEL expression that is true while something is wrong. It knows object, oldObject (null where nothing is known of
	// it before), changes (a list of path, op, old and new), health (state, field, value, reason and message) and now. Secrets
	// in them are redacted; managedFields and the times of conditions are left out. An expression that fails counts as false,
	// and status says so. One that reads changes or oldObject is about a change: it holds until the next change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
	// for is how long it has to hold without a break, from 1s to 24h. Default: no time. With it absence can be told:
	// !has(object.status) for 5m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="spec.for must be at least 1s"
	// +optional
	For Duration `json:"for,omitempty"`
	// changes raises an alarm for an object that changes too often.
	// +optional
	Changes *MonitorChanges `json:"changes,omitempty"`
	// fight raises an alarm for a field that two managers rewrite in turn.
	// +optional
	Fight *MonitorFight `json:"fight,omitempty"`
	// stuckDeletion raises an alarm for an object that is being deleted, and is held by a finalizer.
	// +optional
	StuckDeletion *MonitorStuckDeletion `json:"stuckDeletion,omitempty"`

	// severity is Info, Warning or Critical. Default Warning.
	// +kubebuilder:validation:Enum=Info;Warning;Critical
	// +kubebuilder:default=Warning
	// +optional
	Severity MonitorSeverity `json:"severity,omitempty"`
	// message is a CEL expression that yields the text of the alarm, of the same variables as when. Default: a sentence that
	// names what held.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
	// outputs say who is told. Default: an Event. A metric counts every alarm.
	// +optional
	Outputs *MonitorOutputs `json:"outputs,omitempty"`
	// suspend stops the rule: it raises no alarm, and those that stand end. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// MonitoredKind is a kind of objects. In both fields * stands for any text.
type MonitoredKind struct {
	// group is the API group, empty for the core one. Default: the core group.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-a-z0-9.*]*$')",message="group must be an API group, where * stands for any text"
	// +optional
	Group string `json:"group,omitempty"`
	// kind is the kind, for example WebApp.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9*]+$')",message="kind must be a kind, where * stands for any text"
	// +required
	Kind string `json:"kind"`
}

// MonitorChanges is an object that changes too often.
type MonitorChanges struct {
	// count is how many changes are too many, from 2 to 1000.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000
	// +required
	Count int32 `json:"count"`
	// within is the time in which they are counted, from 1s to 24h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="within must be at least 1s"
	// +required
	Within Duration `json:"within"`
	// paths are the fields whose changes count, with all that is in them: .spec or .status.phase. Default: all.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	// +optional
	Paths []string `json:"paths,omitempty"`
}

// MonitorFight is a field that two managers rewrite in turn.
type MonitorFight struct {
	// turns is how many times the field has passed from one manager to another, from 3 to 100. Default 4.
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=4
	// +optional
	Turns int32 `json:"turns,omitempty"`
	// within is the time in which they are counted, from 1s to 24h. Default 10m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="within must be at least 1s"
	// +optional
	Within Duration `json:"within,omitempty"`
}

// MonitorStuckDeletion is an object that is being deleted, and is held by a finalizer.
type MonitorStuckDeletion struct {
	// after is how long it may take, from 1s to 24h. Default 10m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="after must be at least 1s"
	// +optional
	After Duration `json:"after,omitempty"`
	// finalizers are those that it is about, where * stands for any text: *.crossplane.io. Default: all.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Finalizers []string `json:"finalizers,omitempty"`
}

// MonitorSeverity says how bad it is.
type MonitorSeverity string

// How bad it is.
const (
	// SeverityInfo: worth knowing.
	SeverityInfo MonitorSeverity = "Info"
	// SeverityWarning: somebody should look.
	SeverityWarning MonitorSeverity = "Warning"
	// SeverityCritical: somebody has to act.
	SeverityCritical MonitorSeverity = "Critical"
)

// MonitorOutputs say who is told of an alarm.
type MonitorOutputs struct {
	// event makes a Kubernetes Event on the object. Default true.
	// +kubebuilder:default=true
	// +optional
	Event *bool `json:"event,omitempty"`
	// webhooks are names of webhooks in the configuration of the monitor. A rule cannot name an address: who may write rules
	// could else have the monitor send requests to anywhere.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Webhooks []string `json:"webhooks,omitempty"`
}

// MonitorRuleStatus is what the monitor says about a rule.
type MonitorRuleStatus struct {
	// observedGeneration is the generation that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// firing is for how many objects the alarm stands.
	// +optional
	Firing int32 `json:"firing"`
	// objects are some of them, at most 20, in the order of their names.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Objects []FiringObject `json:"objects,omitempty"`
	// lastFired is when an alarm was last raised.
	// +optional
	LastFired *metav1.Time `json:"lastFired,omitempty"`
	// conditions are Ready, and EvaluationFailed while an expression fails for an object.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FiringObject is an object for which an alarm stands.
type FiringObject struct {
	// group, kind, namespace and name say which object.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// kind is its kind.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// namespace is its namespace, empty where it has none.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is its name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// since is since when the alarm stands.
	// +required
	Since metav1.Time `json:"since"`
	// message is the text of the alarm.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// GetConditions returns the conditions of the status.
func (r *MonitorRule) GetConditions() []metav1.Condition { return r.Status.Conditions }
