package recorder

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// Change is what became known of one object at one time.
type Change struct {
	// Kind is its kind, at the version that is followed.
	Kind change.Kind
	// Records are what is stored of it. There are none when only the health of the object changed. There are two when the object
	// was replaced by another one of the same name, and then Before is the other one.
	Records []change.Record
	// Before is the last known state, nil when there was none. After is the state now, nil when the object is gone.
	Before, After *change.State
	// Object is After, decoded, nil when there is no After. It must not be changed.
	Object map[string]any
	// Health is how the object does now, without a state when it is gone. HealthBefore is how it did, empty when that is not known.
	Health       health.Verdict
	HealthBefore health.State
	// Time is when it was seen.
	Time time.Time
}

// Effects are what an Observer adds to what is stored of a change. All of it is stored with it, or nothing.
type Effects struct {
	Outbox []store.Message
	Values []store.Value
	// Stored is called once it is stored, by who stores: it must be quick. Nil: nobody is told.
	Stored func()
}

// Observer looks at changes before they are stored.
type Observer interface {
	// Observe is called once for each change that is recorded, and for each change of health, in the order of the changes of an
	// object. It is called by several goroutines, never at the same time for one kind. After a crash it is called again with
	// changes of which nothing was stored. It must be quick: the kind waits for it. More than about 1,000 effects of one change
	// are not stored.
	Observe(ctx context.Context, c Change) Effects
}
