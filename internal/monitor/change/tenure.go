package change

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Tenure is a namespace as it is now. A namespace that was deleted and made again under the same name is another one, with another
// UID: nothing of the one before belongs to it.
type Tenure struct {
	UID types.UID
	// Created is its creationTimestamp, in whole seconds.
	Created time.Time
	// ResourceVersion is that of the namespace when it was read, so it is not older than its creation.
	ResourceVersion string
}

// Origin is what is known about when an object came to be.
type Origin struct {
	// Created is its creationTimestamp, in whole seconds, zero if it is not known.
	Created time.Time
	// Versions are resource versions at which it is known to have been there. What is no number proves nothing.
	Versions []string
}

// Has reports whether an object that is or was in a namespace of the name belongs to this one. The API server sets the times of both, and
// takes nothing new into a namespace that is being deleted, so what is older than the namespace is from the one before. In the second
// in which the namespace was made only the order of the resource versions tells. What is not known does not belong to it.
func (t *Tenure) Has(o Origin) bool {
	if t == nil || t.Created.IsZero() || o.Created.IsZero() {
		return false
	}
	switch made, begun := o.Created.Unix(), t.Created.Unix(); {
	case made > begun:
		return true
	case made < begun:
		return false
	}
	for _, version := range o.Versions {
		if isNewer(version, t.ResourceVersion) {
			return true
		}
	}
	return false
}

// isNewer compares resource versions as the numbers that they are.
func isNewer(a, b string) bool {
	first, err := strconv.ParseUint(a, 10, 64)
	second, err2 := strconv.ParseUint(b, 10, 64)
	return err == nil && err2 == nil && first > second
}

// CreatedIn returns the creationTimestamp of an object of which this is the JSON, and the zero time if it has none that can be read.
func CreatedIn(body []byte) time.Time {
	text := string(body)
	metadata, found := findMember(text, "metadata")
	if !found {
		return time.Time{}
	}
	text = text[metadata.start:metadata.end]
	member, found := findMember(text, "creationTimestamp")
	if !found {
		return time.Time{}
	}
	value, err := strconv.Unquote(text[member.start:member.end])
	if err != nil {
		return time.Time{}
	}
	return readCreated(value)
}

func readCreated(text string) time.Time {
	created, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return created.UTC()
}
