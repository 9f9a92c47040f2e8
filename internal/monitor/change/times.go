package change

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"
)

// Since when a condition is as it is moves without a change of its own, so it is noise in a record. How an object does depends on
// it: what is not ready for long has failed. So it stands beside the object, for each value of the status with a type, in the
// order of Body, as 4 bytes: seconds, and 0 where it does not say.

const (
	conditionSince = "lastTransitionTime"
	// maxTimes is how many values with a type are looked at.
	maxTimes  = 1024
	timeBytes = 4
)

var errNoContent = errors.New("the content of the object is not known")

// secondsOf reads a time of a condition, 0 if it is none.
func secondsOf(text string) uint32 {
	if len(text) > 64 {
		return 0
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() < 0 || at.Unix() > math.MaxUint32 {
		return 0
	}
	return uint32(at.Unix())
}

// packTimes writes what conditions say since when they are so.
func packTimes(status *node) []byte {
	var packed []byte
	if status != nil {
		packed = status.times(nil)
	}
	for len(packed) > 0 && binary.BigEndian.Uint32(packed[len(packed)-timeBytes:]) == 0 {
		packed = packed[:len(packed)-timeBytes]
	}
	if len(packed) == 0 {
		return nil
	}
	return packed
}

func (n *node) times(packed []byte) []byte {
	if _, typed := n.member("type").str(); typed && len(packed) < maxTimes*timeBytes {
		packed = binary.BigEndian.AppendUint32(packed, n.since)
	}
	for i := range n.nodes {
		packed = n.nodes[i].times(packed)
	}
	return packed
}

// Object is the object as it is judged: Body, with what is left out of it because it changes with every write, and says something
// all the same: the generation, and since when conditions are so. Whatever asks how an object does asks this. Of MetadataOnly it is
// the metadata.
func (s *State) Object() (map[string]any, error) {
	object := map[string]any{}
	if len(s.Body) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(s.Body, &object) != nil || object == nil {
		return map[string]any{}, errNoContent
	}
	if metadata, ok := object["metadata"].(map[string]any); ok && s.Generation != 0 {
		metadata["generation"] = s.Generation
	}
	if len(s.Times) > 0 {
		rest := s.Times
		putTimes(object["status"], &rest)
	}
	return object, nil
}

// putTimes goes the way of times.
func putTimes(value any, rest *[]byte) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			putTimes(item, rest)
		}
	case map[string]any:
		if len(*rest) < timeBytes {
			return
		}
		seconds := uint32(0)
		if _, typed := v["type"].(string); typed {
			seconds, *rest = binary.BigEndian.Uint32(*rest), (*rest)[timeBytes:]
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			putTimes(v[key], rest)
		}
		if seconds > 0 {
			v[conditionSince] = time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
		}
	}
}
