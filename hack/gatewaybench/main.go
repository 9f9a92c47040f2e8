// Command gatewaybench measures slipway-gateway beside nginx, Caddy and Traefik, each on one core, in turns, and
// prints what it found as Markdown. `make bench-gateway` runs it; docs/performance.md says how to read it.
//
//	goals.go    the goals, and whether each was met
//	main.go     flags, and the scenarios
//	measure.go  measuring every proxy in every scenario
//	process.go  a program on one core: its processor time and memory
//	proxy.go    the proxies, and their configurations
//	report.go   the report as Markdown
//	serve.go    the gateway within this program, with a profile
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// scenario is what all proxies are configured to do.
type scenario struct {
	routes   int
	policies bool // API key, rate limit and access log
}

// bench is a run of everything.
type bench struct {
	clock       clock.Clock
	dir         string // for configurations
	proxies     []proxy
	scenarios   []scenario
	rounds      int
	duration    time.Duration
	warmUp      time.Duration
	connections int
	proxyCPU    int
	loadCPU     int
	nice        int
	progress    io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gatewaybench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(ctx, args[1:])
	}
	b := &bench{clock: clock.RealClock{}, progress: os.Stderr}
	flags := flag.NewFlagSet("gatewaybench", flag.ContinueOnError)
	binaries := map[string]*string{}
	for _, p := range known {
		binaries[p.name] = flags.String(p.name, "", "program of "+p.name+"; empty leaves it out")
	}
	plain := flags.String("plain", "1,100,1000,5000", "numbers of routes, without policies")
	policies := flags.String("policies", "1", "numbers of routes, with API key, rate limit and access log")
	profile := flags.String("profile", "", "measure slipway alone, and write a profile of its processor time to this file")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each is measured")
	flags.DurationVar(&b.duration, "duration", 3*time.Second, "how long a measurement is")
	flags.DurationVar(&b.warmUp, "warm-up", time.Second, "load before a measurement")
	flags.IntVar(&b.connections, "connections", 64, "connections of the load, all of them busy")
	flags.IntVar(&b.proxyCPU, "proxy-cpu", 0, "core of the proxy that is measured")
	flags.IntVar(&b.loadCPU, "load-cpu", 1, "core of load and backend")
	flags.IntVar(&b.nice, "nice", 0, "niceness of all programs; with a value below 0, other programs on the machine disturb less")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if b.proxies, err = chosen(binaries, *profile); err != nil {
		return err
	}
	for text, withPolicies := range map[string]bool{*plain: false, *policies: true} {
		if b.scenarios, err = appendScenarios(b.scenarios, text, withPolicies); err != nil {
			return err
		}
	}
	slices.SortFunc(b.scenarios, scenario.compare)
	if b.dir, err = os.MkdirTemp("", "gatewaybench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	results, err := b.measureAll(ctx)
	return errors.Join(err, report(out, b, results))
}

// chosen are the proxies to measure: those that have a program, or slipway alone for a profile.
func chosen(binaries map[string]*string, profile string) ([]proxy, error) {
	if profile != "" {
		p, err := profiled(slipway, profile)
		return []proxy{p}, err
	}
	var proxies []proxy
	for _, p := range known {
		if *binaries[p.name] == "" {
			continue
		}
		binary, err := filepath.Abs(*binaries[p.name])
		if err != nil {
			return nil, err
		}
		p.binary = binary
		proxies = append(proxies, p)
	}
	return proxies, nil
}

func appendScenarios(scenarios []scenario, text string, policies bool) ([]scenario, error) {
	for field := range strings.SplitSeq(text, ",") {
		if field == "" {
			continue
		}
		routes, err := strconv.Atoi(field)
		if err != nil || routes < 1 {
			return nil, fmt.Errorf("%q is not a number of routes", field)
		}
		scenarios = append(scenarios, scenario{routes: routes, policies: policies})
	}
	return scenarios, nil
}

// compare orders scenarios: plain ones first, then by the number of routes.
func (s scenario) compare(other scenario) int {
	if s.policies != other.policies {
		if s.policies {
			return 1
		}
		return -1
	}
	return s.routes - other.routes
}

func (s scenario) String() string {
	text := fmt.Sprintf("%d routes", s.routes)
	if s.routes == 1 {
		text = "1 route"
	}
	if s.policies {
		text += ", key + limit + log"
	}
	return text
}
