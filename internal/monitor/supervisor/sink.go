package supervisor

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Sink takes what is seen. Its methods are called by many goroutines, for different kinds at the same time. For one kind
// there is one call at a time, those of its Journal included.
//
// A method that returns an error has taken nothing: it is called again, later, with the same. When the context ends it
// returns soon.
type Sink interface {
	// Known returns the kinds that were followed in an earlier life and were not closed with Gone. It is asked once. A
	// kind of which the definition is gone is then closed.
	Known(ctx context.Context) ([]change.Kind, error)
	// Open begins with a kind, or goes on with it: when the monitor starts, when the kind is followed at another version,
	// and after an error of its Journal. A kind is known by its group, resource and definition: another version is the
	// same kind, a resource of the same name with another definition is not. There is one open Journal of a kind.
	Open(ctx context.Context, kind change.Kind, schema Schema) (Journal, error)
	// Gone says that the definition of a kind was deleted. All objects of it that are still there went with it. The events
	// that the API server sent before were delivered, when it sent them soon. It has no open Journal any more.
	//
	// successor is when the definition was made that has the name now, zero when none is known. Until it is known the API server
	// answers for the old kind with objects of the new one. They are those that were made since then, and they stay.
	Gone(ctx context.Context, kind change.Kind, successor time.Time) error
}

// Journal takes what happens to the objects of one kind, in order. A call may block as long as it likes: the watch is not
// read meanwhile, and nothing is dropped.
type Journal interface {
	// Resume returns the resource version up to which everything is durable, empty when nothing is known yet. Objects are
	// then listed. Events after it are delivered again, though they may have been taken before: the UID and the resource
	// version of an object tell.
	Resume() string
	// Event is one change of an object. The checkpoint becomes the resource version of the object.
	Event(ctx context.Context, event Event) error
	// Bookmark says that there is no change up to a resource version. The checkpoint becomes that one. Reached is as in Event.
	Bookmark(ctx context.Context, resourceVersion string, reached time.Time) error
	// BeginList begins a list of all objects. When one was begun before and has not ended, forget that one. The gap is zero
	// when nothing was known before, or no more than that there was no object. Otherwise changes since then may be missing, and
	// the list shows what is different now.
	BeginList(ctx context.Context, gap Gap) error
	// Listed is one object of the list. Its state is true, even when its resource version is lower than a known one.
	Listed(ctx context.Context, object Object) error
	// EndList ends the list: it was of one moment, and the checkpoint becomes its resource version. When it is complete, an
	// object that was not listed is gone. When it is not, nothing can be said about such an object: see Lost.
	EndList(ctx context.Context, resourceVersion string, complete bool) error
	// SchemaChanged says that the definition has another schema for the version that is followed. No object has changed.
	SchemaChanged(ctx context.Context, schema Schema) error
	// Lost says that changes in that time are missing and that nothing can bring them back.
	Lost(ctx context.Context, gap Gap) error
}

// Schema describes the objects of a kind.
type Schema struct {
	// JSON is the field openAPIV3Schema of the definition for the version that is followed. It is nil for a kind that
	// Kubernetes brings.
	JSON []byte
	// Generation is that of the definition. It is 0 for a kind that Kubernetes brings.
	Generation int64
	// Made is when the definition was made. It is zero for a kind that Kubernetes brings.
	Made time.Time
	// NoStatus reports whether the definition gives the objects no status. It is false for a kind that Kubernetes brings.
	NoStatus bool
}

// EventType is what happened to an object.
type EventType string

const (
	// Added is an object that is new.
	Added EventType = "ADDED"
	// Modified is an object that changed.
	Modified EventType = "MODIFIED"
	// Deleted is an object that is gone. It is reported as it was, with the resource version of the deletion.
	Deleted EventType = "DELETED"
)

// Event is one change of an object.
type Event struct {
	Type   EventType
	Object Object
	// Reached is a time before which everything was reported. It is earlier than now while the watch is behind, and zero when it is
	// not known in this life.
	Reached time.Time
}

// Object is an object, with what tells it from others.
type Object struct {
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
	// Raw is the object as JSON, valid, as the API server sent it. It belongs to who gets it.
	Raw []byte
	// Oversized reports whether the object has more bytes than the limit: Raw has no more than its apiVersion, its kind and
	// those metadata that are fields here.
	Oversized bool
}

// Gap is a time in which changes may have been missed. It ends when the list is answered that closes it, or now.
type Gap struct {
	// Since is when the last thing was seen. It is zero when there is no gap, or nobody knows.
	Since time.Time
	// Reason says why, empty when there is no gap. It is a sentence for people, from a few that are fixed.
	Reason string
}
