package change

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// maxNoise is how many values of noise are told apart in an object. All further count as one.
const maxNoise = 512

// conditionTimes are the members of conditions that move without a meaning: the status or reason says what happened.
var conditionTimes = map[string]bool{
	"lastHeartbeatTime": true, conditionSince: true, "lastUpdateTime": true, "lastProbeTime": true,
}

// noisyKeys are annotations that tell only who is alive.
var noisyKeys = map[string]bool{
	"control-plane.alpha.kubernetes.io/leader":         true,
	"endpoints.kubernetes.io/last-change-trigger-time": true,
}

// bookkeeping are members of an object's metadata that change with every write.
var bookkeeping = map[string]bool{"resourceVersion": true, "managedFields": true, "generation": true, "selfLink": true}

// isCondition reports whether an object is one by what it has.
func isCondition(n *node) bool {
	_, hasType := n.member("type").str()
	_, hasStatus := n.member("status").str()
	return hasType && hasStatus
}

func isConditions(name string) bool {
	return strings.HasSuffix(name, "onditions")
}

// noise is a value that was left out: which one, and what it was. Both are hashes, since only changes are counted.
type noise struct{ path, value uint32 }

// noiseBytes is the size of one in State.Noise.
const noiseBytes = 8

// packNoise writes noise in the order of the paths.
func packNoise(values []noise) []byte {
	if len(values) == 0 {
		return nil
	}
	slices.SortFunc(values, func(a, b noise) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.value, b.value))
	})
	if len(values) > maxNoise {
		rest := noise{path: ^uint32(0)}
		for _, v := range values[maxNoise-1:] {
			rest.value = rest.value*31 + v.path ^ v.value
		}
		values = append(values[:maxNoise-1], rest)
	}
	packed := make([]byte, 0, noiseBytes*len(values))
	for _, v := range values {
		packed = binary.BigEndian.AppendUint32(packed, v.path)
		packed = binary.BigEndian.AppendUint32(packed, v.value)
	}
	return packed
}

// noiseChanges counts the values of noise that came, went or changed.
func noiseChanges(before, after []byte) int64 {
	var count int64
	for len(before) >= noiseBytes && len(after) >= noiseBytes {
		order := cmp.Compare(binary.BigEndian.Uint32(before), binary.BigEndian.Uint32(after))
		if order != 0 || binary.BigEndian.Uint32(before[4:]) != binary.BigEndian.Uint32(after[4:]) {
			count++
		}
		if order <= 0 {
			before = before[noiseBytes:]
		}
		if order >= 0 {
			after = after[noiseBytes:]
		}
	}
	return count + int64(len(before)/noiseBytes+len(after)/noiseBytes)
}

const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

// hashText adds a text to an FNV-1a hash.
func hashText(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * hashPrime
	}
	return (hash ^ 0xff) * hashPrime
}

func hashNumber(hash uint64, number int) uint64 {
	return (hash ^ uint64(number)) * hashPrime
}

// fold makes a hash of 32 bits of one of 64.
func fold(hash uint64) uint32 { return uint32(hash>>32) ^ uint32(hash) }
