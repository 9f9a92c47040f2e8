package change

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/redact"
)

var errNoName = errors.New("it has no metadata.name that can be read")

// Reduce makes the state of an object of its JSON, as it comes from a list or a watch. It hides secrets first of all; then it
// leaves out noise, and writes what remains in one way. The same content gives the same Body and Hash, in whatever order it came.
//
// If it is in doubt what the object holds, the state has the metadata only, and Reason says why. An error means that not even the
// name of the object is known. Neither has a value of the object in its text.
//
// What an object in a list does not say, its kind does: Body always has apiVersion and kind.
func Reduce(raw []byte, kind Kind, s *Schema, policy *Policy) (State, error) {
	if policy == nil {
		return State{}, errNoPolicy
	}
	text := string(raw)
	root, err := decode(text)
	if err != nil {
		return reduceMetadata(text, err, kind, policy)
	}
	metadata := root.member("metadata")
	if metadata.memberText("name") == "" {
		return State{}, errNoName
	}
	state, w := begin(metadata, kind, s, policy)
	managers := metadata.remove("managedFields")
	w.reduce(&root, kind)
	if w.doubt {
		return reduceMetadata(text, errDuplicate, kind, policy)
	}
	w.finish(&state, &root, "")
	state.Managers = w.managers(managers)
	return state, nil
}

// begin reads who an object is, and makes a walk for it.
func begin(metadata *node, kind Kind, s *Schema, policy *Policy) (State, *walk) {
	state := State{
		Namespace:       metadata.memberText("namespace"),
		Name:            metadata.memberText("name"),
		UID:             types.UID(metadata.memberText("uid")),
		ResourceVersion: metadata.memberText("resourceVersion"),
		Created:         readCreated(metadata.memberText("creationTimestamp")),
	}
	if generation := metadata.member("generation"); generation != nil && generation.typ == numberNode {
		state.Generation, _ = strconv.ParseInt(generation.text, 10, 64)
	}
	identity := string(state.UID)
	if identity == "" {
		identity = kind.Group + "/" + kind.Resource + "/" + state.Namespace + "/" + state.Name
	}
	w := &walk{policy: policy, marker: policy.marker(identity), schema: s}
	w.coreSecret = kind.Group == "" && kind.Kind == "Secret"
	w.seed = binary.BigEndian.Uint64(w.marker.sum("seed of noise"))
	return state, w
}

func (w *walk) root() place {
	return place{schema: w.schema, path: hashStart, secret: []*rules{w.policy.secret}, noise: []*rules{w.policy.noise}}
}

// reduce hides and leaves out.
func (w *walk) reduce(root *node, kind Kind) {
	apiVersion := kind.Version
	if kind.Group != "" {
		apiVersion = kind.Group + "/" + kind.Version
	}
	root.set(stringValue("apiVersion", apiVersion))
	root.set(stringValue("kind", kind.Kind))
	metadata := root.member("metadata")
	for name := range bookkeeping {
		metadata.remove(name)
	}
	w.value(root, w.root(), redact.Plain)
}

// finish writes what is left.
func (w *walk) finish(state *State, root *node, content string) {
	state.Body = root.encode(make([]byte, 0, 1024))
	sum := sha256.New()
	_, _ = sum.Write(state.Body)
	_, _ = sum.Write([]byte(content))
	copy(state.Hash[:], sum.Sum(nil))
	state.Noise = packNoise(w.noise)
	state.Times = packTimes(root.member("status"))
	state.Redacted = w.redacted
}

// safeMetadata are the members of metadata that are read when the object as a whole cannot be.
var safeMetadata = []string{
	"name", "namespace", "uid", "resourceVersion", "generation", "generateName", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "finalizers", "ownerReferences", "labels", "annotations",
}

// reduceMetadata makes a state of an object that cannot be read. It has those members of the metadata that can be. Its hash is of the
// rest, too, so that no change of it goes unseen.
func reduceMetadata(text string, reason error, kind Kind, policy *Policy) (State, error) {
	var metadataText string
	rest := text
	if span, ok := findMember(text, "metadata"); ok {
		metadataText = text[span.start:span.end]
		rest = text[:span.start] + text[span.end:]
	}
	metadata := node{key: "metadata", typ: objectNode}
	for _, name := range safeMetadata {
		span, ok := findMember(metadataText, name)
		if !ok {
			continue
		}
		value, err := decode(metadataText[span.start:span.end])
		if err == nil {
			value.key = name
			metadata.set(value)
		}
	}
	if metadata.memberText("name") == "" {
		return State{}, fmt.Errorf("%w: %w", errNoName, reason)
	}
	state, w := begin(&metadata, kind, nil, policy)
	state.MetadataOnly, state.Reason = true, reason.Error()
	root := node{typ: objectNode, nodes: []node{metadata}}
	w.reduce(&root, kind)
	if w.doubt {
		return State{}, fmt.Errorf("%w: %w", errNoName, errDuplicate)
	}
	w.finish(&state, &root, w.marker.text(rest))
	if span, ok := findMember(metadataText, "managedFields"); ok {
		if managers, err := decode(metadataText[span.start:span.end]); err == nil {
			state.Managers = w.managers(&managers)
		}
	}
	return state, nil
}
