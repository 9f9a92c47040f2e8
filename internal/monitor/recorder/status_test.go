package recorder

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// The rule no-status asks for the reason. What a controller has written is judged, whatever the definition says.
func TestNobodyWaitsForAStatusThatTheDefinitionDoesNotHave(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	s := begin(t, widgets, func(o *Options) { o.Observer = w })
	last := func() health.Verdict { return w.seen[len(w.seen)-1].Health }
	s.event(supervisor.Added, typed("2", `"spec":{"size":1}`))
	if got := last().Reason; got != health.ReasonNoStatus {
		t.Errorf("nothing is known of the definition: %s", got)
	}
	if err := s.j.SchemaChanged(t.Context(), supervisor.Schema{NoStatus: true}); err != nil {
		t.Fatal(err)
	}
	s.event(supervisor.Modified, typed("3", `"spec":{"size":2}`))
	if got := last(); got.Reason != health.ReasonHasNoStatus || got.State != health.Unknown || !s.r.HasNoStatus(widgets.GroupResource()) {
		t.Errorf("the definition has no status: %+v", got)
	}
	s.event(supervisor.Modified, typed("4", `"status":{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m"}]}`))
	if got := last(); got.State != health.Healthy {
		t.Errorf("there is a status: %+v", got)
	}
	if err := s.j.SchemaChanged(t.Context(), supervisor.Schema{}); err != nil {
		t.Fatal(err)
	}
	s.event(supervisor.Modified, typed("5", `"spec":{"size":3}`))
	if got := last().Reason; got != health.ReasonNoStatus || s.r.HasNoStatus(widgets.GroupResource()) {
		t.Errorf("the definition has a status again: %s", got)
	}
}
