//go:build monitorbench

package monitorbench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/notify"
)

// latencyRate is how many changes are made in a second.
const latencyRate = 300

// TestLatency measures from the answer of the API server to a change until it is on the disk, and until the webhook is called that it
// raises an alarm for.
func TestLatency(t *testing.T) {
	s := startServer(t)
	alarms := &alarmed{at: map[int][]time.Time{}}
	hook := httptest.NewServer(alarms)
	t.Cleanup(hook.Close)
	quiet := false
	if err := s.Client.Create(t.Context(), &slipwayv1alpha1.MonitorRule{
		ObjectMeta: metav1.ObjectMeta{Name: "broken"},
		Spec: slipwayv1alpha1.MonitorRuleSpec{
			When: "has(object.spec.broken) && object.spec.broken == true", Outputs: &slipwayv1alpha1.MonitorOutputs{Event: &quiet, Webhooks: []string{"bench"}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	w := s.newWriter(t, numbered(0), liveObjects/10)
	w.brakes = true
	p := newProcess(t, s.Config, settings{reported: true, more: fmt.Sprintf("webhooks: [{name: bench, url: %q}]\n", hook.URL)})
	p.start()
	p.follows(ownKinds+1, time.Minute)
	p.inside()
	ctx, cancel := context.WithTimeout(t.Context(), size.during)
	defer cancel()
	before, err := p.figures()
	if err != nil {
		t.Fatal(err)
	}
	w.run(ctx, t, 0, latencyRate)
	done := w.taken()
	p.stored(records(before)+len(done), time.Minute)
	pause(t, 3*time.Second)
	p.end(syscall.SIGTERM)

	rate := float64(len(done)) / size.during.Seconds()
	known := reported(t, p.reported)
	var durable, first spread
	late := 0
	wasBroken := map[int]bool{}
	alarms.mutex.Lock()
	defer alarms.mutex.Unlock()
	for _, one := range done {
		at, found := known[one.version]
		if !found {
			t.Errorf("the change at %d is not stored", one.version)
			continue
		}
		durable = append(durable, max(0, at.Sub(one.at)))
		raised := one.broken && !wasBroken[one.object]
		wasBroken[one.object] = one.broken
		if !raised {
			continue
		}
		// An alarm may come before the answer to the write.
		calls := alarms.at[one.object]
		for len(calls) > 0 && calls[0].Before(one.at.Add(-time.Second)) {
			calls = calls[1:]
		}
		if len(calls) == 0 {
			late++
			continue
		}
		first = append(first, max(0, calls[0].Sub(one.at)))
		alarms.at[one.object] = calls[1:]
	}
	results.most(t, durable.at(0.99).Seconds(), 0.2, fmt.Sprintf("change to durable, at %.0f changes/s", rate), "p99 200 ms", "%s", durable)
	results.most(t, first.at(0.99).Seconds(), 1, fmt.Sprintf("change to first alarm (webhook), at %.0f changes/s", rate), "p99 1 s", "%s", first)
	if late > 0 || len(first) == 0 {
		t.Errorf("%d alarms have not come, and %d have", late, len(first))
	}
}

// alarmed takes the calls of a webhook.
type alarmed struct {
	mutex sync.Mutex
	at    map[int][]time.Time
}

func (a *alarmed) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	event := notify.Event{}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil || event.Type != notify.TypeRaised {
		return
	}
	number := 0
	if _, err := fmt.Sscanf(strings.TrimPrefix(event.Data.Object.Name, "object-"), "%d", &number); err != nil {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.at[number] = append(a.at[number], now)
}
