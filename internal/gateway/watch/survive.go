package watch

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// survival keeps a pod alive when making a table panics. The same objects would end it again after its restart, and all other pods
// with it. It belongs to the goroutine of the loop.
type survival struct {
	// applying is set while a table replaces another. A panic then may leave half of both, so the pod must end.
	applying bool
	// broken is set while what was served before stands in for what panics.
	broken bool
	last   string // the panic that was logged last
}

// survived calls something that makes a table. It returns the text of a panic, which is empty without one.
func (f *follower) survived(call func() time.Time) (again time.Time, panicked string) {
	defer func() {
		if f.survival.applying {
			return
		}
		cause := recover()
		if cause == nil {
			return
		}
		panicked = "panic" // its text may have a part of a Secret, and this is published
		if err, is := cause.(runtime.Error); is {
			panicked = err.Error()
		}
		if text := fmt.Sprint(cause); text != f.survival.last {
			f.survival.last = text
			f.log.Error("making a table has failed, which is a defect of the gateway", "panic", text, "stack", string(debug.Stack()))
		}
	}()
	return call(), ""
}

// broke says what it means for a generation.
func broke(generation int64, panicked string) *document.Rejected {
	return &document.Rejected{
		Generation: generation, Reason: slipwayv1alpha1.ReasonImageIncompatible,
		Message: "this release of the gateway has a defect and cannot serve the newest objects (" + panicked + "), its log says where",
	}
}

// steps are what looking at the current state consists of.
type steps struct {
	look   func() time.Time
	reject func(panicked string)
	// last serves what was served before, with its endpoints of now. Nil: nothing was.
	last func() time.Time
	tell func()
}

// survive looks. If that panics, it serves what was served before.
func (f *follower) survive(s steps) time.Time {
	again, panicked := f.survived(s.look)
	if panicked == "" {
		f.survival.last = ""
		return again
	}
	s.reject(panicked)
	if s.last != nil {
		f.survival.broken = true
		again, panicked = f.survived(s.last)
		f.survival.broken = false
		if panicked == "" {
			return again
		}
	}
	s.tell()
	return time.Time{}
}

// safeLook is look, which does not panic.
func (s *Source) safeLook(ctx context.Context) time.Time {
	all := steps{
		look:   func() time.Time { return s.look(ctx) },
		reject: func(panicked string) { s.rejected = broke(s.seen.generation, panicked) },
		tell:   func() { s.publish(s.told.Problems) },
	}
	if served := s.served; served != nil {
		all.last = func() time.Time { return s.serve(ctx, served) }
	}
	return s.survive(all)
}

// safeLook is look, which does not panic.
func (s *GatewaySource) safeLook(ctx context.Context) time.Time {
	all := steps{
		look:   func() time.Time { return s.look(ctx) },
		reject: func(panicked string) { s.rejected = broke(s.seen.generation, panicked) },
		tell:   func() { s.tell(s.document()) },
	}
	if served := s.served; served != nil {
		all.last = func() time.Time { return s.serve(ctx, served) }
	}
	return s.survive(all)
}
