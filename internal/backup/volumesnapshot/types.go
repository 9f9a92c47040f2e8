package volumesnapshot

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/text"
)

// GroupVersion is the version that the external-snapshotter project has served since its release 4.
var GroupVersion = schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}

// Kind is the kind of a snapshot.
const Kind = "VolumeSnapshot"

// VolumeSnapshot is a snapshot of the volume of a claim.
type VolumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec    `json:"spec"`
	Status *Status `json:"status,omitempty"`
}

// Spec is which volume, and how.
type Spec struct {
	Source Source `json:"source"`
	// ClassName names the VolumeSnapshotClass.
	ClassName *string `json:"volumeSnapshotClassName,omitempty"`
}

// Source is which volume.
type Source struct {
	ClaimName *string `json:"persistentVolumeClaimName,omitempty"`
}

// Status is how far the snapshot is.
type Status struct {
	// CreationTime is when the driver says that it was taken.
	CreationTime *metav1.Time `json:"creationTime,omitempty"`
	// ReadyToUse reports whether volumes can be made from it.
	ReadyToUse *bool `json:"readyToUse,omitempty"`
	// RestoreSize is the least size of such a volume.
	RestoreSize *resource.Quantity `json:"restoreSize,omitempty"`
	Error       *Error             `json:"error,omitempty"`
}

// Error is what the driver or the snapshot controller says went wrong.
type Error struct {
	Message *string `json:"message,omitempty"`
}

// Ready reports whether volumes can be made from the snapshot.
func (s *VolumeSnapshot) Ready() bool {
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}

// Taken reports whether later writes to the volume do not reach the snapshot.
func (s *VolumeSnapshot) Taken() bool {
	return s.Ready() || s.Status != nil && s.Status.CreationTime != nil
}

// Failure is what went wrong, or empty. A snapshot that is ready has recovered from it.
func (s *VolumeSnapshot) Failure() string {
	if s.Ready() || s.Status == nil || s.Status.Error == nil {
		return ""
	}
	if message := s.Status.Error.Message; message != nil && *message != "" {
		return text.Cut(strings.Map(printable, *message), maxFailure)
	}
	return "no message"
}

// maxFailure bounds what is reported of a failure, in bytes: the words are the driver's.
const maxFailure = 512

// printable replaces what could break a line, or a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// IsOf reports whether it is a snapshot of a claim.
func (s *VolumeSnapshot) IsOf(claim string) bool {
	return s.Spec.Source.ClaimName != nil && *s.Spec.Source.ClaimName == claim
}

// DeepCopyObject returns a copy.
func (s *VolumeSnapshot) DeepCopyObject() runtime.Object {
	if s == nil {
		return nil
	}
	out := &VolumeSnapshot{TypeMeta: s.TypeMeta}
	s.DeepCopyInto(&out.ObjectMeta)
	out.Spec = Spec{Source: Source{ClaimName: copied(s.Spec.Source.ClaimName)}, ClassName: copied(s.Spec.ClassName)}
	if s.Status != nil {
		out.Status = &Status{CreationTime: s.Status.CreationTime.DeepCopy(), ReadyToUse: copied(s.Status.ReadyToUse)}
		if s.Status.RestoreSize != nil {
			size := s.Status.RestoreSize.DeepCopy()
			out.Status.RestoreSize = &size
		}
		if s.Status.Error != nil {
			out.Status.Error = &Error{Message: copied(s.Status.Error.Message)}
		}
	}
	return out
}

func copied[T any](pointer *T) *T {
	if pointer == nil {
		return nil
	}
	value := *pointer
	return &value
}

// Class is a VolumeSnapshotClass: how snapshots of a driver are taken.
type Class struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Driver string `json:"driver"`
	// DeletionPolicy is Delete or Retain: what becomes of what the driver has made when a snapshot is deleted.
	DeletionPolicy string `json:"deletionPolicy"`
}

// annotationDefault marks the class of a driver that is taken where none is named.
const annotationDefault = "snapshot.storage.kubernetes.io/is-default-class"

// Default reports whether it is taken where none is named.
func (c *Class) Default() bool { return c.Annotations[annotationDefault] == "true" }

// DeepCopyObject returns a copy.
func (c *Class) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	out := *c
	c.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// ClassList is a list of classes.
type ClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Class `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *ClassList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &ClassList{TypeMeta: l.TypeMeta, Items: make([]Class, len(l.Items))}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = l.Items[i]
		l.Items[i].DeepCopyInto(&out.Items[i].ObjectMeta)
	}
	return out
}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(Kind), &VolumeSnapshot{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("VolumeSnapshotClass"), &Class{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("VolumeSnapshotClassList"), &ClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
