package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// readyTimeout is how long a proxy may take until it serves all its routes.
const readyTimeout = 30 * time.Second

// result is one measurement.
type result struct {
	Scenario scenario      `json:"-"`
	Proxy    string        `json:"-"`
	Requests int64         `json:"requests"`
	Micros   int64         `json:"micros"`
	Errors   int64         `json:"errors"` // without a response, and responses other than 2xx and 3xx
	P50      int64         `json:"p50"`    // microseconds
	P99      int64         `json:"p99"`    // microseconds
	CPU      time.Duration `json:"-"`      // of the proxy, while it was measured
	Others   float64       `json:"-"`      // share of the proxy's core that everything else took meanwhile
	Idle     int64         `json:"-"`      // bytes of memory before the first load
	Loaded   int64         `json:"-"`      // bytes of memory after it
}

// rate is requests per second.
func (r result) rate() float64 { return float64(r.Requests) / (float64(r.Micros) / 1e6) }

// cost is microseconds of the core per request.
func (r result) cost() float64 { return float64(r.CPU.Microseconds()) / float64(r.Requests) }

// measureAll measures every proxy in every scenario, in turns. Together with an error it
// returns what was measured before.
func (b *bench) measureAll(ctx context.Context) ([]result, error) {
	backendPort, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	backend.binary = "nginx"
	serving, err := b.start(ctx, b.loadCPU, backend, newSettings(b.dir, scenario{}, 0, backendPort))
	if err != nil {
		return nil, err
	}
	defer serving.stop()
	var results []result
	for round := range b.rounds {
		for _, s := range b.scenarios {
			// A random order, so that no proxy always runs after the same one.
			order := rand.Perm(len(b.proxies))
			for _, i := range order {
				got, err := b.measure(ctx, b.proxies[i], s, backendPort)
				if err != nil {
					return results, fmt.Errorf("%s, %s: %w", b.proxies[i].name, s, err)
				}
				fmt.Fprintf(b.progress, "round %d: %s, %s: %.0f requests/s, %.1f us of the core each, p99 %d us\n",
					round+1, s, got.Proxy, got.rate(), got.cost(), got.P99)
				results = append(results, got)
			}
		}
		got, err := b.measureBackend(ctx, serving, backendPort)
		if err != nil {
			return results, err
		}
		results = append(results, got)
	}
	return results, nil
}

// measureBackend loads the backend without a proxy.
func (b *bench) measureBackend(ctx context.Context, serving *process, port int) (result, error) {
	c := newSettings(b.dir, scenario{routes: 1}, port, port)
	if err := writeLoad(c); err != nil {
		return result{}, err
	}
	return b.loadTwice(ctx, serving, c)
}

func (b *bench) measure(ctx context.Context, p proxy, s scenario, backendPort int) (result, error) {
	port, err := freePort(ctx)
	if err != nil {
		return result{}, err
	}
	c := newSettings(b.dir, s, port, backendPort)
	if err := writeLoad(c); err != nil {
		return result{}, err
	}
	running, err := b.start(ctx, b.proxyCPU, p, c)
	if err != nil {
		return result{}, err
	}
	defer running.stop()
	if err := b.waitReady(ctx, running, c); err != nil {
		return result{}, err
	}
	idle, err := running.memory()
	if err != nil {
		return result{}, err
	}
	got, err := b.loadTwice(ctx, running, c)
	if err != nil {
		return result{}, err
	}
	got.Scenario, got.Proxy, got.Idle = s, p.name, idle
	if got.Errors > 0 {
		return result{}, fmt.Errorf("%d of %d requests failed", got.Errors, got.Requests)
	}
	got.Loaded, err = running.memory()
	return got, err
}

// loadTwice warms the program up and then measures it.
func (b *bench) loadTwice(ctx context.Context, p *process, c settings) (result, error) {
	if _, err := b.load(ctx, c, b.warmUp); err != nil {
		return result{}, err
	}
	before, busyBefore, err := b.used(p)
	if err != nil {
		return result{}, err
	}
	start := b.clock.Now()
	got, err := b.load(ctx, c, b.duration)
	if err != nil {
		return result{}, err
	}
	took := b.clock.Since(start)
	after, busyAfter, err := b.used(p)
	got.CPU = after - before
	got.Others = max(0, float64(busyAfter-busyBefore-got.CPU)/float64(took))
	return got, err
}

// used is the processor time that the program has used, and how long the proxy's core was busy.
func (b *bench) used(p *process) (program, core time.Duration, err error) {
	if program, err = p.cpu(); err != nil {
		return 0, 0, err
	}
	core, err = busy(b.proxyCPU)
	return program, core, err
}

// load runs the load generator once.
func (b *bench) load(ctx context.Context, c settings, duration time.Duration) (result, error) {
	// wrk takes whole seconds.
	seconds := strconv.Itoa(int(max(duration.Round(time.Second), time.Second) / time.Second))
	command := b.command(ctx, b.loadCPU, "wrk", "-t", "1", "-c", strconv.Itoa(b.connections), "-d", seconds+"s",
		"-s", filepath.Join(c.Dir, "load.lua"), fmt.Sprintf("http://127.0.0.1:%d/", c.Port))
	command.Env = append(os.Environ(), "BENCH_PATHS="+filepath.Join(c.Dir, "paths"), "BENCH_KEY="+apiKey)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return result{}, fmt.Errorf("wrk: %w", err)
	}
	// The script's line comes after wrk's own report.
	text := strings.TrimSpace(string(output))
	var got result
	if err := json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &got); err != nil {
		return result{}, fmt.Errorf("wrk said %q: %w", text, err)
	}
	if got.Requests == 0 {
		return result{}, errors.New("wrk: no request was answered")
	}
	return got, nil
}

// waitReady waits until the first and the last route answer.
func (b *bench) waitReady(ctx context.Context, p *process, c settings) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	first, last := c.Hosts[0], c.Hosts[len(c.Hosts)-1]
	for _, route := range [][2]string{{first.Name, first.Paths[0]}, {last.Name, last.Paths[len(last.Paths)-1]}} {
		for {
			err := ask(ctx, c.Port, route[0], route[1])
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				p.stop()
				return fmt.Errorf("not ready: %w: %s", err, p.stderr)
			case <-p.ended:
				return fmt.Errorf("ended: %s", p.stderr)
			case <-b.clock.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// ask sends a request on a connection of its own and wants the backend's whole answer.
func ask(ctx context.Context, port int, host, path string) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Host, request.Close = host, true
	request.Header.Set("X-Api-Key", apiKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || len(body) != bodySize {
		return fmt.Errorf("status %d and %d bytes", response.StatusCode, len(body))
	}
	return nil
}
