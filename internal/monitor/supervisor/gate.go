package supervisor

import (
	"context"
	"sync"

	"k8s.io/client-go/util/flowcontrol"
)

// gate limits what all followers together ask for.
type gate struct {
	rate flowcontrol.RateLimiter
	// Kinds of which the last list got no answer have places of their own, so that they do not take those of others.
	places, slowPlaces chan struct{}
}

func newGate(lists int, startsPerSecond float32) *gate {
	return &gate{
		rate:   flowcontrol.NewTokenBucketRateLimiter(startsPerSecond, int(max(1, startsPerSecond))),
		places: make(chan struct{}, lists), slowPlaces: make(chan struct{}, max(1, lists/3)),
	}
}

// turn waits until one more kind may be started.
func (g *gate) turn(ctx context.Context) error { return g.rate.Wait(ctx) }

// enter waits for the place of a list. leave gives it back, and may be called twice.
func (g *gate) enter(ctx context.Context, slow bool) (leave func(), err error) {
	places := g.places
	if slow {
		places = g.slowPlaces
	}
	select {
	case places <- struct{}{}:
		return sync.OnceFunc(func() { <-places }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
