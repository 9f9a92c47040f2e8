// Package rendezvous has the arithmetic of rendezvous hashing: each candidate has a score for a hash, and the one with
// the highest score is chosen. When a candidate goes, only what had chosen it chooses anew. It is pure, and the same in every
// process.
package rendezvous

import (
	"math"

	"github.com/cespare/xxhash/v2"
)

// Hash returns a hash of a text.
func Hash(text string) uint64 { return xxhash.Sum64String(text) }

// Score returns the score of a candidate for a hash. seed is a hash of the candidate.
func Score(hash, seed uint64) uint64 { return mix(hash ^ seed) }

// Weighted returns the score of a candidate that should be chosen in proportion to its weight. When a weight changes, only the
// share that it means chooses anew. The weight must not be 0.
func Weighted(hash, seed, weight uint64) float64 {
	unit := (float64(Score(hash, seed)>>11) + 0.5) / (1 << 53) // between 0 and 1
	return math.Log(unit) / float64(weight)
}

// mix spreads each bit of a number over all bits, as the last step of splitmix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
