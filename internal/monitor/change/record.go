package change

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of object as it is watched: at one version, of one definition.
type Kind struct {
	// Group, Version, Kind and Resource are its names, as the definition states them. Resource is the plural.
	Group    string `json:"group"`
	Version  string `json:"version"`
	Kind     string `json:"kind"`
	Resource string `json:"resource"`
	// Namespaced reports whether its objects live in namespaces.
	Namespaced bool `json:"namespaced"`
	// Definition is the UID of the CustomResourceDefinition, empty for a kind that Kubernetes brings. A definition that was
	// deleted and made again is another one, and so are its objects.
	Definition types.UID `json:"definition,omitempty"`
}

// GroupResource names the kind whatever its version: the key of everything that is stored.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// GroupVersionResource is where its objects are listed and watched.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// Type is what happened.
type Type string

const (
	// Baseline is an object that was there when its kind was first watched. Nobody knows what came before.
	Baseline Type = "Baseline"
	// Created is an object that came while its kind was watched.
	Created Type = "Created"
	// Updated is an object of which a field changed.
	Updated Type = "Updated"
	// Deleted is an object that is gone.
	Deleted Type = "Deleted"
	// Gap is a time in which changes of a kind may have been missed. It belongs to the kind, not to an object.
	Gap Type = "Gap"
)

// Op is what happened to a field.
type Op string

const (
	// Added is a field that was not there.
	Added Op = "Added"
	// Removed is a field that is gone.
	Removed Op = "Removed"
	// Changed is a field with another value.
	Changed Op = "Changed"
)

// Field is one field that differs.
type Field struct {
	// Path leads to it from the root, such as .spec.containers[name="app"].image. An item of a list is named by its keys
	// where the schema states them, by its value in a set, and by its index otherwise. The index is that before the change for
	// an item that was Removed, and that after it otherwise. A path that ends with [] is the order of a list. All forms are in
	// path.go.
	Path string `json:"path"`
	// Op is what happened to it.
	Op Op `json:"op"`
	// Old and New are its values as JSON, nil where there is none. A secret is a text that begins with Redacted.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
}

// Confidence is how sure it is who made a change.
type Confidence string

const (
	// Exact is told by the API server itself: by an admission request, or by its audit log.
	Exact Confidence = "Exact"
	// Likely is concluded from managedFields: an entry that is new or changed owns a field that changed.
	Likely Confidence = "Likely"
	// Unknown is everything else. A deletion leaves no trace in managedFields.
	Unknown Confidence = "Unknown"
)

// Actor is who made a change.
type Actor struct {
	// Name is a user where the confidence is Exact, and a field manager (the name of a program) where it is Likely.
	Name string `json:"name,omitempty"`
	// Operation is Apply or Update, and Subresource the part of the object that was written, such as status.
	Operation   string `json:"operation,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	// Confidence is how sure that is, and Source where it is from: managedFields, admission or audit.
	Confidence Confidence `json:"confidence"`
	Source     string     `json:"source,omitempty"`
	// Others are further managers that wrote at the same time.
	Others []string `json:"others,omitempty"`
}

// Record is one change, as it is stored and shown.
type Record struct {
	// Kind, Namespace, Name and UID say of which object. Of a Gap only the kind is set.
	Kind      Kind      `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	// ResourceVersion and Generation are those after the change. UID and ResourceVersion identify a change: there are no two
	// records with the same.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Generation      int64  `json:"generation,omitempty"`
	// Type is what happened.
	Type Type `json:"type"`
	// Time is when the monitor saw it.
	Time time.Time `json:"time"`
	// Fields are the fields that differ, in the order of their paths.
	Fields []Field `json:"fields,omitempty"`
	// Actor is who did it.
	Actor Actor `json:"actor"`
	// InGap reports whether the change was found by comparing two lists: there may have been others in between.
	InGap bool `json:"inGap,omitempty"`
	// SchemaDriven reports whether nobody wrote: the definition changed, and with it how the object reads. Such a record has the
	// ResourceVersion of the one before it: UID, ResourceVersion and this flag identify a change.
	SchemaDriven bool `json:"schemaDriven,omitempty"`
	// WithDefinition reports whether the object went because its definition did.
	WithDefinition bool `json:"withDefinition,omitempty"`
	// MetadataOnly reports whether the content could not be redacted with certainty, and why is in Reason: the fields are then
	// those of the metadata.
	MetadataOnly bool `json:"metadataOnly,omitempty"`
	// Folded counts changes without a meaning that were left out, here and in updates of nothing else since the last record.
	Folded int64 `json:"folded,omitempty"`
	// Redacted counts the secrets that were taken out.
	Redacted int64 `json:"redacted,omitempty"`
	// Truncated reports whether values, or fields, were left out because there was too much of them.
	Truncated bool `json:"truncated,omitempty"`
	// Reason says why, for a Gap and where one of the flags above needs it.
	Reason string `json:"reason,omitempty"`
	// Since is when a Gap began; it ends at Time.
	Since time.Time `json:"since,omitzero"`
	// ObjectCreated is the creationTimestamp of the object, zero if it is not known. It says to which of several namespaces of a name
	// the object belongs.
	ObjectCreated time.Time `json:"-"`
}

// State is the last known state of an object. It is on disk, not in memory: of each object the memory holds a Mark.
type State struct {
	// Namespace, Name and UID say of which object.
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// ResourceVersion and Generation are those of the state.
	ResourceVersion string `json:"resourceVersion"`
	Generation      int64  `json:"generation,omitempty"`
	// Created is the creationTimestamp, which is in Body, too. It is zero if it is not known.
	Created time.Time `json:"-"`
	// Definition tells one definition of the kind from another: that by which the state was read. It has up to 46 bits, and is 0 if
	// nobody knows which it was.
	Definition int64 `json:"-"`
	// Hash is of Body. States with the same hash are the same, noise aside.
	Hash Hash `json:"hash"`
	// Body is the object as canonical JSON: redacted, without noise and without managedFields.
	Body []byte `json:"body"`
	// Managers are the managedFields as JSON: who owns which field. They are not redacted, because they have names of fields and
	// keys of lists only; keys that a redaction covers are taken out.
	Managers []byte `json:"managers,omitempty"`
	// MetadataOnly reports whether Body has the metadata only, and Reason why.
	MetadataOnly bool   `json:"metadataOnly,omitempty"`
	Reason       string `json:"reason,omitempty"`
	// Redacted counts the secrets that were taken out.
	Redacted int64 `json:"redacted,omitempty"`
	// Noise has a hash of each value that was left out as noise, so that changes of them can be counted.
	Noise []byte `json:"noise,omitempty"`
	// Times are since when its conditions are as they are: see times.go. They are no part of Body, so that they are no change.
	Times []byte `json:"times,omitempty"`
}

// NoRoom is the Reason of a state whose content was left out because its namespace has its share of all last states.
const NoRoom = "its namespace has its share of the room for last states"

// WithoutContent is the state with who it is, its hash and when it was made, and nothing else.
func (s *State) WithoutContent() State {
	bare := *s
	bare.Managers, bare.Times, bare.Body, bare.MetadataOnly, bare.Reason = nil, nil, []byte(`{}`), true, NoRoom
	if !s.Created.IsZero() {
		bare.Body = []byte(`{"metadata":{"creationTimestamp":"` + s.Created.UTC().Format(time.RFC3339) + `"}}`)
	}
	return bare
}

// Hash identifies a content.
type Hash [16]byte

// Mark returns what the memory holds of the object.
func (s *State) Mark() Mark {
	return Mark{UID: s.UID, ResourceVersion: s.ResourceVersion, Hash: s.Hash}
}

// Mark is what the memory holds of an object.
type Mark struct {
	// UID and ResourceVersion are those of the last known state, and Hash is of its body.
	UID             types.UID
	ResourceVersion string
	Hash            Hash
}

// String is the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash in hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return errors.New("a hash has 32 hexadecimal digits")
	}
	_, err := hex.Decode(h[:], text)
	return err
}
