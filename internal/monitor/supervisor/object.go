package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// identity is what tells an object from others. Names are compared as they are written: a field of an object that is called
// Metadata is not its metadata.
type identity struct {
	APIVersion string           `json:"apiVersion,omitempty"`
	Kind       string           `json:"kind,omitempty"`
	Metadata   identityMetadata `json:"metadata"`
}

type identityMetadata struct {
	Name            string    `json:"name"`
	Namespace       string    `json:"namespace,omitempty"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// errUnknown is an object that is too large, and of which nobody can say which one it is.
var errUnknown = errors.New("an object is too large, and its name is not among its first bytes")

// readObject returns an object from its JSON, which it keeps. cut reports whether raw is only its begin.
func readObject(kind change.Kind, raw []byte, cut bool) (Object, error) {
	if cut {
		return oversized(kind, raw)
	}
	id := identity{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &id); err != nil {
		return Object{}, garbage("an object: %v", err)
	}
	if err := id.check(kind); err != nil {
		return Object{}, err
	}
	return id.object(raw, false), nil
}

// check refuses what is not an object of the kind. The items of some lists do not say what they are.
func (id identity) check(kind change.Kind) error {
	if id.APIVersion != "" && id.APIVersion != kind.GroupVersionResource().GroupVersion().String() {
		return garbage("an object of %q instead of %q", id.APIVersion, kind.GroupVersionResource().GroupVersion())
	}
	if id.Metadata.Name == "" || id.Metadata.UID == "" || id.Metadata.ResourceVersion == "" {
		return garbage("an object without a name, a UID or a resource version")
	}
	return nil
}

func (id identity) object(raw []byte, oversized bool) Object {
	return Object{
		Namespace: id.Metadata.Namespace, Name: id.Metadata.Name, UID: id.Metadata.UID,
		ResourceVersion: id.Metadata.ResourceVersion, Raw: raw, Oversized: oversized,
	}
}

// oversized returns what can be said of an object of which only the begin is known. The API server writes the metadata
// before the rest.
func oversized(kind change.Kind, begin []byte) (Object, error) {
	id := identity{}
	walk(begin, func(path string, value string) {
		switch path {
		case ".apiVersion":
			id.APIVersion = value
		case ".kind":
			id.Kind = value
		case ".metadata.name":
			id.Metadata.Name = value
		case ".metadata.namespace":
			id.Metadata.Namespace = value
		case ".metadata.uid":
			id.Metadata.UID = types.UID(value)
		case ".metadata.resourceVersion":
			id.Metadata.ResourceVersion = value
		}
	})
	if id.check(kind) != nil || (kind.Namespaced && id.Metadata.Namespace == "") {
		return Object{}, errUnknown
	}
	raw, err := json.Marshal(id)
	if err != nil {
		return Object{}, fmt.Errorf("%w: %w", errUnknown, err)
	}
	return id.object(raw, true), nil
}

// walk calls found for each text in the begin of an object, as far as it can be read, of its first two levels.
func walk(begin []byte, found func(path, value string)) {
	decoder := json.NewDecoder(bytes.NewReader(begin))
	w := walker{found: found}
	for {
		token, err := decoder.Token()
		if err != nil || !w.take(token) {
			return
		}
	}
}

// walker knows where in an object it is.
type walker struct {
	levels []walkLevel
	found  func(path, value string)
}

// walkLevel is an object or a list that has begun and not ended.
type walkLevel struct {
	name string // of the member that is read
	list bool
	key  bool // the next text is the name of a member
}

// take goes on by one token. It returns false at the end of the object.
func (w *walker) take(token json.Token) bool {
	switch delim, is := token.(json.Delim); {
	case is && (delim == '{' || delim == '['):
		w.levels = append(w.levels, walkLevel{list: delim == '[', key: delim == '{'})
		return true
	case is:
		w.levels = w.levels[:len(w.levels)-1]
	}
	if len(w.levels) == 0 {
		return false
	}
	top := &w.levels[len(w.levels)-1]
	text, is := token.(string)
	if top.key && is {
		top.name, top.key = text, false
		return true
	}
	if is && !top.list && len(w.levels) <= 2 && !w.levels[0].list {
		path := ""
		for _, level := range w.levels {
			path += "." + level.name
		}
		w.found(path, text)
	}
	top.key = !top.list
	return true
}

// frame is what a watch sends.
type frame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// bookmark is the type of a frame that tells a resource version and nothing else.
const bookmark = "BOOKMARK"

// readFrame returns what a watch sends. The type is that of an event or a bookmark. What the API server reports as an error
// is returned as one.
func readFrame(kind change.Kind, raw []byte, cut bool) (string, Object, error) {
	if cut {
		return readCutFrame(kind, raw)
	}
	read := frame{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &read); err != nil {
		return "", Object{}, garbage("a frame of a watch: %v", err)
	}
	switch read.Type {
	case string(Added), string(Modified), string(Deleted):
		object, err := readObject(kind, read.Object, false)
		return read.Type, object, err
	case bookmark:
		id := identity{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(read.Object, &id); err != nil {
			return "", Object{}, garbage("a bookmark: %v", err)
		}
		if id.Metadata.ResourceVersion == "" {
			return "", Object{}, garbage("a bookmark without a resource version")
		}
		return read.Type, Object{ResourceVersion: id.Metadata.ResourceVersion}, nil
	case "ERROR":
		status := metav1.Status{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(read.Object, &status); err != nil || status.Code == 0 {
			return "", Object{}, garbage("an error that does not say which")
		}
		return "", Object{}, &apierrors.StatusError{ErrStatus: status}
	}
	return "", Object{}, garbage("a frame of the type %q", read.Type)
}

// readCutFrame reads a frame with an object that is too large.
func readCutFrame(kind change.Kind, begin []byte) (string, Object, error) {
	kindOfFrame := ""
	walk(begin, func(path, value string) {
		if path == ".type" {
			kindOfFrame = value
		}
	})
	switch EventType(kindOfFrame) {
	case Added, Modified, Deleted:
	default:
		return "", Object{}, errUnknown
	}
	// The API server writes the type first, and then the object.
	_, inner, found := bytes.Cut(begin, []byte(`"object":`))
	if !found {
		return "", Object{}, errUnknown
	}
	object, err := oversized(kind, bytes.TrimLeft(inner, " \t\r\n"))
	return kindOfFrame, object, err
}
