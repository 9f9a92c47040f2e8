//go:build e2e || change

package change

import (
	"math/rand/v2"
	"slices"
)

// kind is what is changed.
type kind string

const (
	addRoute        kind = "add a route"
	removeRoute     kind = "remove a route"
	reorderRoutes   kind = "reorder the routes"
	switchBackend   kind = "switch a route to another backend"
	editRoute       kind = "edit a route"
	swapCertificate kind = "swap the certificate"
	rollBackend     kind = "roll a backend"
	scaleGateway    kind = "scale the gateway"
	rollGateway     kind = "roll the gateway"
	switchListener  kind = "add or remove a listener"
)

// shares are how many of 1,000 changes are of a kind. Whatever the number of changes, the
// gateway is scaled up and down, and everything else happens at least once.
var shares = []share{
	{addRoute, 240, 1},
	{removeRoute, 200, 1},
	{switchBackend, 190, 1},
	{editRoute, 130, 1},
	{swapCertificate, 30, 1},
	{rollBackend, 20, 1},
	{scaleGateway, 12, 2},
	{rollGateway, 8, 1},
}

// sharesOfGateway are those of a Gateway. Listeners are its own.
var sharesOfGateway = append(slices.Clone(shares), share{switchListener, 50, 2})

// share is how many of 1,000 changes are of a kind, and how many there are at least.
type share struct {
	kind          kind
	of1000, least int
}

// change is one of the plan.
type change struct {
	number int
	kind   kind
	// random decides the rest: which route, for example.
	random *rand.Rand
}

// plan returns the changes of a seed. What is left over by the shares reorders routes.
func plan(seed uint64, count int, shares []share) []change {
	kinds := make([]kind, 0, count)
	for _, share := range shares {
		for range max(share.least, share.of1000*count/1000) {
			kinds = append(kinds, share.kind)
		}
	}
	for len(kinds) < count {
		kinds = append(kinds, reorderRoutes)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	changes := make([]change, len(kinds))
	for i, k := range kinds {
		changes[i] = change{number: i + 1, kind: k, random: rand.New(rand.NewPCG(seed, uint64(i+1)))}
	}
	return changes
}

// lasting reports whether a change goes on for a while after it has been asked for: pods
// come and go.
func (k kind) lasting() bool { return k == rollBackend || k == scaleGateway || k == rollGateway }
