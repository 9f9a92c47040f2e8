package table

import (
	"fmt"
	"math"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
)

// PickFor chooses a backend in proportion to the weights. Equal hashes get the same one. When a weight changes, only the
// share that it means moves.
func (r *Route) PickFor(hash uint64) (*WeightedBackend, Lack) {
	if len(r.shares) < 2 {
		return r.Pick(hash)
	}
	best, highest, before := 0, math.Inf(-1), uint64(0)
	for i := range r.shares {
		s := &r.shares[i]
		if score := rendezvous.Weighted(hash, s.seed, s.sum-before); score > highest {
			best, highest = i, score
		}
		before = s.sum
	}
	return r.take(&r.shares[best])
}

// seedOf returns the seed of a backend. It does not depend on the place in the list. before are the earlier backends: of one
// that is named twice, each has a seed of its own.
func seedOf(ref *model.BackendRef, before []model.BackendRef) uint64 {
	name, times := ref.ID(), 0
	for i := range before {
		if before[i].ID() == name {
			times++
		}
	}
	return rendezvous.Hash(fmt.Sprintf("%s#%d", name, times))
}
