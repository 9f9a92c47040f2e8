//go:build e2e || change

package change

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// interval is the time between two changes, unless a change takes longer.
	interval = 800 * time.Millisecond
	// limit is the default of LIMIT.
	limit = 20 * time.Minute
)

// TestNothingIsLostWhileAGatewayChanges makes CHANGES changes (default 40) from SEED
// (default: a random one), and goes on until there were REQUESTS requests and STREAMS
// streams (default 10000, 20000 with a Gateway, and 20), RATE of the requests a second (default 450), for at most
// LIMIT seconds (default 1200). An APIGateway and a Gateway change at the same time; FRONT=APIGateway or Gateway picks one.
func TestNothingIsLostWhileAGatewayChanges(t *testing.T) {
	for name, made := range map[string]struct {
		front    func() front
		shares   []share
		requests int
	}{
		"APIGateway": {func() front { return &ofAPIGateway{} }, shares, 10_000},
		"Gateway":    {func() front { return &ofGateway{} }, sharesOfGateway, 20_000},
	} {
		if only := os.Getenv("FRONT"); only != "" && only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nothingIsLost(t, made.front(), made.shares, made.requests)
		})
	}
}

func nothingIsLost(t *testing.T, front front, shares []share, defaultRequests int) {
	t.Helper()
	seed, changes := uint64(setting(t, "SEED", int(rand.Uint32()))), setting(t, "CHANGES", 40)
	requests, streams, rate := setting(t, "REQUESTS", defaultRequests), setting(t, "STREAMS", 20), setting(t, "RATE", 450)
	measured(t, "seed %d, %d changes (again: make bench-gateway-change SEED=%d CHANGES=%d)", seed, changes, seed, changes)
	bound := time.Duration(setting(t, "LIMIT", int(limit/time.Second))) * time.Second
	r := newRun(t, rate, front)

	start := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { r.load(ctx) })
	wait.Go(func() { r.stream(ctx) })
	defer func() { // before the pods end, and before the report
		stop()
		wait.Wait()
		r.tell(start)
	}()

	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for _, c := range plan(seed, changes, shares) {
		<-ticker.C
		if time.Since(start) > bound {
			t.Errorf("after %v there were %d changes, want %d", bound, c.number-1, changes)
			return
		}
		r.carryOut(c)
		if c.number%100 == 0 {
			requests := r.record.sum(isRequest)
			t.Logf("%d changes and %d requests in %v", c.number, requests.good+requests.failed, time.Since(start).Round(time.Second))
		}
	}
	measured(t, "%d changes in %v", changes, time.Since(start).Round(time.Second))
	r.record.begin("after the last change")
	r.settled()
	for r.record.sum(isRequest).good < requests || r.record.sum(isStream).good < streams {
		<-ticker.C
		if time.Since(start) > bound {
			t.Errorf("after %v there were too few requests or streams: want %d and %d", bound, requests, streams)
			break
		}
	}
}

func isStream(protocol string) bool { return !isRequest(protocol) }

// tell prints what came of it, and fails the test if anything was lost.
func (r *run) tell(start time.Time) {
	r.Helper()
	for _, line := range r.record.lines() {
		measured(r.T, "%s", line)
	}
	requests, streams := r.record.sum(isRequest), r.record.sum(isStream)
	measured(r.T, "%d of %d requests failed, %d of %d streams were cut, in %v",
		requests.failed, requests.good+requests.failed, streams.failed, streams.good+streams.failed, time.Since(start).Round(time.Second))
	if requests.failed+streams.failed > 0 {
		r.Errorf("something was lost:\n%s", r.record.report())
	}
	if restarted := r.record.find("RESTARTED"); len(restarted) > 0 {
		r.Errorf("containers were started again:\n%s", strings.Join(restarted, "\n"))
	}
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// measured logs a number that the project publishes; hack/testsum shows these lines.
func measured(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("measured: "+format, args...)
}
