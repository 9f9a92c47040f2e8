package api

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Whoami is the answer of whoami.
type Whoami struct {
	View   View     `json:"view"`
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Kinds is the answer of kinds.
type Kinds struct {
	View  View   `json:"view"`
	Kinds []Kind `json:"kinds"`
}

// Kind is a kind that is followed.
type Kind struct {
	// Name is how requests name it: plural.group, or the plural alone.
	Name       string `json:"name"`
	Group      string `json:"group"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
	State      string `json:"state"`
	// Objects is how many there are. It is missing if the user may not list the kind in all namespaces.
	Objects *int64 `json:"objects,omitempty"`
}

// Coverage is the answer of coverage.
type Coverage struct {
	View View `json:"view"`
	// Complete reports whether all definitions have been read.
	Complete bool `json:"complete"`
	// States has how many kinds are in which state.
	States map[string]int `json:"states"`
	Kinds  []Covered      `json:"kinds"`
}

// Covered says how a kind is covered.
type Covered struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	State     string    `json:"state"`
	Since     time.Time `json:"since,omitzero"`
	Reason    string    `json:"reason,omitempty"`
	LastHeard time.Time `json:"lastHeard,omitzero"`
	Lag       float64   `json:"lagSeconds"`
	// Gaps is how many gaps there were since the monitor was started.
	Gaps int64 `json:"gaps"`
}

// Changes is the answer of changes and history.
type Changes struct {
	View    View     `json:"view"`
	Changes []Change `json:"changes"`
	// Next is the cursor of the next page, empty if there is none. A page may have few changes, or none, and a next one.
	Next string `json:"next,omitempty"`
	// Incomplete says what is missing and why, where something is.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Change is a change, and where it is in the history.
type Change struct {
	change.Record
	// ID names the change. It can be used as a cursor.
	ID string `json:"id"`
}

// Object is the answer of object.
type Object struct {
	View View `json:"view"`
	// Kind is the name of the kind; Namespace, Name and UID are those of the object.
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// At is the time that was asked for; missing: now.
	At time.Time `json:"at,omitzero"`
	// Exists reports whether the object exists, or existed at that time.
	Exists bool `json:"exists"`
	// Object is the object: without secrets and without noise. It is missing if it did not exist.
	Object json.RawMessage `json:"object,omitempty"`
	// MetadataOnly reports whether only the metadata were kept, and Reason why.
	MetadataOnly bool   `json:"metadataOnly,omitempty"`
	Reason       string `json:"reason,omitempty"`
	// LastChange is the last change up to that time, if the history has it.
	LastChange *Change     `json:"lastChange,omitempty"`
	Health     *Health     `json:"health,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	Owners     []Relative  `json:"owners,omitempty"`
	Children   []Relative  `json:"children,omitempty"`
	Incomplete []string    `json:"incomplete,omitempty"`
}

// Condition is a condition of a status.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Since   string `json:"since,omitempty"`
}

// Relative is an owner or a child.
type Relative struct {
	// Kind is the name by which requests name the kind. It is empty for an owner of a kind that is not followed, or that the user
	// may not list. APIVersion and KindName are as the object itself states them, for an owner.
	Kind       string  `json:"kind,omitempty"`
	APIVersion string  `json:"apiVersion,omitempty"`
	KindName   string  `json:"kindName"`
	Namespace  string  `json:"namespace,omitempty"`
	Name       string  `json:"name"`
	Health     *Health `json:"health,omitempty"`
}

// Health is the verdict on an object.
type Health struct {
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
	Value   string `json:"value,omitempty"`
}

// HealthSummary is the answer of health.
type HealthSummary struct {
	View View `json:"view"`
	// Counts has how many objects are in which state.
	Counts map[string]int64 `json:"counts"`
	Kinds  []KindHealth     `json:"kinds"`
	// Objects are those that are not healthy, or all where all=true was asked for.
	Objects    []ObjectHealth `json:"objects"`
	Incomplete []string       `json:"incomplete,omitempty"`
}

// KindHealth has how many objects of a kind are in which state.
type KindHealth struct {
	Kind   string           `json:"kind"`
	Counts map[string]int64 `json:"counts"`
}

// ObjectHealth is the verdict on one object.
type ObjectHealth struct {
	Kind      string `json:"kind"`
	KindName  string `json:"kindName"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Health
}

// Definitions is the answer of definitions.
type Definitions struct {
	View View   `json:"view"`
	Name string `json:"name"`
	// Versions are those that are kept, the newest first.
	Versions []DefinitionVersion `json:"versions"`
}

// DefinitionVersion is a version of a definition.
type DefinitionVersion struct {
	Generation int64     `json:"generation"`
	Time       time.Time `json:"time"`
	UID        types.UID `json:"uid"`
	// Versions are the versions that it defines.
	Versions []Version `json:"versions,omitempty"`
	// Findings say what changed since the version before, what breaks first. They are missing for the oldest version.
	Findings []Finding `json:"findings,omitempty"`
	// Problem says why there are no findings.
	Problem string `json:"problem,omitempty"`
	// Objects says what the change means for the objects that there were when they were checked. It is missing while they are
	// not checked, when nothing was, and for who may not list the kind in all namespaces.
	Objects *CheckedObjects `json:"objects,omitempty"`
	// Content is the definition as JSON, where content=true was asked for.
	Content json.RawMessage `json:"content,omitempty"`
}

// Version is a version of a kind.
type Version struct {
	Name       string `json:"name"`
	Served     bool   `json:"served"`
	Storage    bool   `json:"storage"`
	Deprecated bool   `json:"deprecated,omitempty"`
}

// Finding is one thing that changed in a definition: docs/cli.md explains the codes.
type Finding struct {
	Severity string `json:"severity"`
	Version  string `json:"version,omitempty"`
	Path     string `json:"path,omitempty"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

// CheckedObjects says how the objects of a kind fare with a version of its definition.
type CheckedObjects struct {
	// Version is the version by which they were checked: the one that is stored.
	Version string    `json:"version,omitempty"`
	Time    time.Time `json:"time"`
	// Checked is how many were looked at. Of BreaksOnEdit some field cannot be changed, Breaks cannot be written at all, and
	// Unknown could not be checked to the end.
	Checked      int64 `json:"checked"`
	Fine         int64 `json:"fine"`
	BreaksOnEdit int64 `json:"breaksOnEdit"`
	Breaks       int64 `json:"breaks"`
	Unknown      int64 `json:"unknown"`
	// Examples are objects that break, at most 100.
	Examples []CheckedObject `json:"examples,omitempty"`
	// Problem says why no object could be checked, empty when they were.
	Problem string `json:"problem,omitempty"`
}

// CheckedObject is an object that breaks, and why.
type CheckedObject struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// State is BreaksOnEdit or Breaks.
	State string `json:"state"`
	// Field is what is wrong in it, and Message what the API server would say of it. More is how many other problems it has.
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	More    int    `json:"more,omitempty"`
}

// Gaps is the answer of gaps.
type Gaps struct {
	View View `json:"view"`
	// Gaps are times in which changes of a kind may have been missed, the newest first.
	Gaps []Gap `json:"gaps"`
	// Losses are parts of the history that are damaged or were deleted.
	Losses     []Loss   `json:"losses"`
	Next       string   `json:"next,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`
}

// Gap is a time in which changes of a kind may have been missed.
type Gap struct {
	Kind   string    `json:"kind"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
}

// Loss is a part of the history that is damaged or was deleted.
type Loss struct {
	Found time.Time `json:"found"`
	Cause string    `json:"cause"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Rate is the answer of rate.
type Rate struct {
	View View `json:"view"`
	// Width is the length of a span in seconds.
	Width   int64    `json:"widthSeconds"`
	Buckets []Bucket `json:"buckets"`
	// Incomplete reports whether there were more changes than were counted: the newest were.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Bucket is how many changes there were in a span of time.
type Bucket struct {
	Start   time.Time `json:"start"`
	Changes int64     `json:"changes"`
}

// Rules is the answer of rules.
type Rules struct {
	View View `json:"view"`
	// Rules are missing if the user may not list them.
	Rules []Rule `json:"rules"`
	// Alarms are those that fire for objects that the user may list.
	Alarms []Alarm `json:"alarms"`
}

// Rule is a MonitorRule.
type Rule struct {
	Name     string `json:"name"`
	Severity string `json:"severity,omitempty"`
	// Summary says what it looks for.
	Summary string `json:"summary,omitempty"`
	// Problem says why it does not work.
	Problem string `json:"problem,omitempty"`
	Firing  int64  `json:"firing"`
}

// Alarm is a rule that fires for an object.
type Alarm struct {
	Rule      string    `json:"rule"`
	Severity  string    `json:"severity,omitempty"`
	Message   string    `json:"message,omitempty"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Since     time.Time `json:"since"`
}
