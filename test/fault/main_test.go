//go:build faulttest

// Package fault_test plays every scenario of every kind with everything that can go
// wrong, one thing at a time. How to read and reproduce it: docs/dev/fault-matrix.md.
package fault_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

var (
	env   *environment.Environment
	bench *scenario.Bench
	table scenario.Table

	// declared are the kinds in testdata, and kinds those of them that are played.
	declared, kinds []scenario.Kind
)

// atOnce is as many as keep two processors busy: with more, every one is later.
var atOnce = flag.Int("places", 16, "in how many cases something may be going on at the same time; the others wait for nothing to happen")

func TestMain(m *testing.M) { environment.Main(suite{m}, &env) }

// suite runs the tests with a recorder beside them, prints the table, and looks whether
// anything is left running.
type suite struct{ *testing.M }

func (s suite) Run() int {
	flag.Parse() // before the tests do it: what they need depends on the flags
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := s.M.Run()
	stop()
	if err := tell(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := errors.Join(panicked(), tooManyAgain(), tooManyMissed()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if left := leftRunning(); left != "" {
		fmt.Fprintln(os.Stderr, "left running after every operator was stopped:\n", left)
		return 1
	}
	return code
}

func prepare(ctx context.Context) error {
	var err error
	if declared, err = scenario.Read("testdata"); err != nil {
		return err
	}
	for _, kind := range declared {
		if *onlyKind == "" || slices.Contains(strings.Split(*onlyKind, ","), kind.Name) {
			kinds = append(kinds, kind)
		}
	}
	if names := strings.Split(*onlyKind, ","); *onlyKind != "" && len(kinds) < len(names) {
		return fmt.Errorf("not all of the kinds %q are in testdata", names)
	}
	if bench, err = newBench(ctx, env, scenario.NewPlaces(*atOnce), &scenario.Times{}); err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		return err
	}
	return errors.Join(env.Client.Create(ctx, role), grantInNoNamespace(ctx, role))
}

// newBench returns a bench on an API server, which it gives the kinds that the scenarios
// need, until the context ends.
func newBench(ctx context.Context, on *environment.Environment, places *scenario.Places, times *scenario.Times) (*scenario.Bench, error) {
	var observed, apart []schema.GroupVersionKind
	for _, kind := range declared {
		for module, files := range kind.Definitions {
			if err := on.InstallModule(ctx, module, files...); err != nil {
				return nil, err
			}
		}
		for _, reference := range kind.Observed {
			if gvk := reference.GroupVersionKind(); !slices.Contains(observed, gvk) {
				observed = append(observed, gvk)
			}
		}
		for _, reference := range kind.ObservedHere {
			apart = append(apart, reference.GroupVersionKind())
		}
	}
	recorder, err := scenario.NewRecorder(ctx, on.Config, cache.Options{Scheme: operator.Scheme()}, observed, apart)
	if err != nil {
		return nil, err
	}
	relay := fault.NewRelay(ctx, on.Config, operator.Scheme())
	return &scenario.Bench{Env: on, Recorder: recorder, Relay: relay, Places: places, Times: times}, nil
}

// tell writes the table to the file that FAULT_TABLE names.
func tell() error {
	file := os.Getenv("FAULT_TABLE")
	if file == "" {
		return nil
	}
	passed, run := table.Total()
	text := fmt.Appendf(nil, "%s\n%d of %d cases passed.\n\n%s\n\n", table.String(), passed, run, bench.Times)
	if again, _ := table.Again(); len(again) > 0 {
		text = fmt.Appendf(text, "%d runs passed only when they were played again:\n- %s\n", len(again), strings.Join(again, "\n- "))
	}
	if missed, _ := table.Missed(); len(missed) > 0 {
		text = fmt.Appendf(text, "In %d cases there was no write to inject the fault at, because fewer writes did:\n- %s\n", len(missed), strings.Join(missed, "\n- "))
	}
	return os.WriteFile(file, text, 0o644)
}

// mayBePlayedAgain is how many of the runs that may be played twice may pass only then,
// in percent. More than that is no accident.
const mayBePlayedAgain = 1

func tooManyAgain() error {
	again, played := table.Again()
	if len(again)*100 > played*mayBePlayedAgain && len(again) > 1 {
		return fmt.Errorf("%d of %d runs passed only when they were played again", len(again), played)
	}
	return nil
}

// mayMiss is how many of the cases with a fault may have no write to inject it at, in
// percent.
const mayMiss = 3

func tooManyMissed() error {
	missed, faulty := table.Missed()
	if len(missed)*100 > faulty*mayMiss && len(missed) > 1 {
		return fmt.Errorf("in %d of %d cases there was no write to inject the fault at", len(missed), faulty)
	}
	return nil
}

// panicked tells of reconciles that panicked: the controller recovers, and goes on.
func panicked() error {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_panics_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if n := metric.GetCounter().GetValue(); n > 0 {
				return fmt.Errorf("%v reconciles panicked", n)
			}
		}
	}
	return nil
}

// ours finds what may not run when no operator does: controllers, and reflectors.
var ours = regexp.MustCompile(`slipway/internal/(controller|kit|operator)\b|controller-runtime/pkg/internal/controller|tools/cache\.\(\*Reflector\)`)

// leftRunning returns the goroutines that should have ended with the operators.
func leftRunning() string {
	deadline := time.Now().Add(20 * time.Second)
	for {
		buffer := make([]byte, 64<<20)
		var left []string
		for _, stack := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
			if ours.MatchString(stack) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
		runtime.Gosched()
	}
}
