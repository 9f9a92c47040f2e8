//go:build monitororacle

package monitor

import (
	"cmp"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

var resources = []string{"apples", "pears", "plums", "figs"}

const (
	shortRun   = 20 * time.Second
	plantedRun = 5 * time.Second
	// attempts is how often the monitor is given time to come to the end, and settle how long each time.
	attempts = 6
	settle   = 3 * time.Second
)

// run lets a program record while things go wrong, and compares.
func run(t *testing.T, program string, during time.Duration, trouble bool, attempts int) result {
	t.Helper()
	if program == "" {
		t.Fatal("MONITOR and MONITOR_PLANTED have to name the programs: see make test-monitor-oracle")
	}
	text := cmp.Or(os.Getenv("SEED"), strconv.FormatInt(time.Now().UnixNano(), 10))
	t.Logf("SEED=%s", text)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	seed := hash.Sum64()
	g := newGenerator(t, seed)
	way := newProxy(t, apiServer(t))
	p := newProcess(t, program, env.Config, way, g.group)
	for _, resource := range resources {
		g.define(resource)
	}
	p.start()
	p.ready()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var writers sync.WaitGroup
	for i, resource := range resources {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				g.write(t.Context(), resource, random)
				wait(ctx, time.Duration(random.IntN(30))*time.Millisecond)
			}
		})
	}
	for trouble && ctx.Err() == nil {
		g.disturb(ctx, p, way)
		wait(ctx, time.Duration(500+g.random.IntN(1500))*time.Millisecond)
	}
	<-ctx.Done()
	writers.Wait()
	g.lookUpAll(t.Context())
	return g.conclude(t, p, attempts)
}

// apiServer is where the API server is.
func apiServer(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Or(address.Host, env.Config.Host)
}

func wait(ctx context.Context, during time.Duration) {
	timer := time.NewTimer(during)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// disturb does one thing to the monitor or to what it watches.
func (g *generator) disturb(ctx context.Context, p *process, way *proxy) {
	resource := resources[g.random.IntN(3)] // of the last one only the monitor is disturbed
	what := g.random.IntN(6)
	g.t.Logf("%s: %s", []string{"kill", "cut", "forget", "describe", "turn", "make anew"}[what], resource)
	switch what {
	case 0:
		p.end(syscall.SIGKILL)
		wait(ctx, time.Duration(g.random.IntN(1000))*time.Millisecond)
		p.start()
	case 1:
		way.setCut(true)
		wait(ctx, time.Duration(500+g.random.IntN(2000))*time.Millisecond)
		way.setCut(false)
	case 2: // the API server makes the cache of a kind anew, and etcd has no history: what goes on from before gets 410
		p.end(syscall.SIGKILL)
		g.describe(resource)
		wait(ctx, time.Second)
		if err := env.Compact(g.t.Context()); err != nil {
			g.t.Error(err)
		}
		p.start()
	case 3:
		g.describe(resource)
	case 4:
		g.turn(resource)
	case 5:
		g.undefine(resource)
		wait(ctx, time.Duration(g.random.IntN(500))*time.Millisecond)
		g.define(resource)
	}
}

// conclude waits until the monitor has come to the end, and compares. What it has not recorded by then is missing.
func (g *generator) conclude(t *testing.T, p *process, attempts int) result {
	t.Helper()
	var last result
	for range attempts {
		if p.command == nil {
			p.start()
		}
		p.ready()
		wait(t.Context(), settle)
		p.end(syscall.SIGTERM)
		var err error
		if last, err = g.compare(t.Context(), p.folder); err != nil {
			t.Fatal(err)
		}
		if !last.wrong() {
			break
		}
	}
	t.Logf("%d writes, %d records, %d gaps, %d revisions missing in gaps, %d objects outlived their definition; wrong: %d states, %d deletions, %d twice, %d in the wrong order, %d revisions",
		g.writes, last.Records, last.Gaps, last.InGaps, last.Returned, last.States, last.Deletes, last.Duplicates, last.Order, last.Revisions)
	return last
}

func TestOracle(t *testing.T) {
	during := shortRun
	if text := os.Getenv("DURATION"); text != "" {
		var err error
		if during, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if found := run(t, os.Getenv("MONITOR"), during, true, attempts); found.wrong() {
		t.Errorf("%q", found.Examples)
	}
}

// A monitor that forgets something is found out.
func TestAPlantedDropIsFound(t *testing.T) {
	if found := run(t, os.Getenv("MONITOR_PLANTED"), plantedRun, false, 1); !found.wrong() {
		t.Error("nothing is found of a monitor that forgets changes")
	}
}
