//go:build monitorbench

package monitorbench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// sizes are how much is measured. Every one can be set in the environment.
type sizes struct {
	// during (BENCH_SECONDS) is how long changes are made in each measurement.
	during time.Duration
	// objects (BENCH_OBJECTS) are watched in the large measurement of memory, in kinds (BENCH_KINDS) kinds; the small one has a
	// fifth of them.
	objects, kinds int
	// missed (BENCH_MISSED) are the changes that are made while the monitor is cut off.
	missed int
	// definitions (BENCH_DEFINITIONS) are there when the monitor starts.
	definitions int
	// cycles (BENCH_CYCLES) is how often a definition comes and goes.
	cycles int
	// changes (BENCH_CHANGES) are in the store that is asked.
	changes int
}

var (
	size    sizes
	results report
)

// TestMain is the benchmark or, when the benchmark starts its own binary again, what is measured: a process of its own has a
// heap of its own.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if role := os.Getenv(childEnv); role != "" {
		if err := child(role); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		return
	}
	size = sizes{
		during: time.Duration(number("BENCH_SECONDS", 30)) * time.Second, objects: number("BENCH_OBJECTS", 100_000), kinds: number("BENCH_KINDS", 500),
		missed: number("BENCH_MISSED", 20_000), definitions: number("BENCH_DEFINITIONS", 2000), cycles: number("BENCH_CYCLES", 1000),
		changes: number("BENCH_CHANGES", 1_000_000),
	}
	results.LoadBefore, results.Time = load(), time.Now().UTC()
	code := m.Run()
	if err := results.finish(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// number reads a number from the environment.
func number(name string, fallback int) int {
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s is not a number\n", name, text)
		os.Exit(2)
	}
	return value
}

// row is one line of the table.
type row struct {
	What     string `json:"what"`
	Goal     string `json:"goal"`
	Measured string `json:"measured"`
	Met      string `json:"met"`
	// Load is how many processes ran, on average of a minute, when it was measured.
	Load string `json:"load"`
}

// report is what a run found.
type report struct {
	mutex sync.Mutex

	Time       time.Time `json:"time"`
	LoadBefore string    `json:"loadBefore"`
	Rows       []row     `json:"rows"`
}

// tell appends a line that has no goal.
func (r *report) tell(what, measured string, arguments ...any) {
	r.add(row{What: what, Goal: "report", Measured: fmt.Sprintf(measured, arguments...), Met: "-"})
}

// must appends a line whose goal has nothing to do with how fast the machine is. Missing it fails the test.
func (r *report) must(t *testing.T, ok bool, what, goal, measured string, arguments ...any) {
	t.Helper()
	line := row{What: what, Goal: goal, Measured: fmt.Sprintf(measured, arguments...), Met: "yes"}
	if !ok {
		line.Met = "NO"
		t.Errorf("%s: %s, and the goal is %s", what, line.Measured, goal)
	}
	r.add(line)
}

// clearly is how many times worse than its goal a figure must be to fail the test: others may use the machine.
const clearly = 2

// most appends a line with a figure that should be at most its goal.
func (r *report) most(t *testing.T, figure, goal float64, what, goalText, measured string, arguments ...any) {
	t.Helper()
	r.judge(t, figure <= goal, figure > clearly*goal, row{What: what, Goal: goalText, Measured: fmt.Sprintf(measured, arguments...)})
}

// least appends a line with a figure that should be at least its goal.
func (r *report) least(t *testing.T, figure, goal float64, what, goalText, measured string, arguments ...any) {
	t.Helper()
	r.judge(t, figure >= goal, figure < goal/clearly, row{What: what, Goal: goalText, Measured: fmt.Sprintf(measured, arguments...)})
}

func (r *report) judge(t *testing.T, met, failed bool, line row) {
	t.Helper()
	line.Met = "yes"
	if !met {
		line.Met = "NO"
	}
	if failed {
		t.Errorf("%s: %s, and the goal is %s", line.What, line.Measured, line.Goal)
	}
	r.add(line)
}

func (r *report) add(line row) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	line.Load, _, _ = strings.Cut(load(), " ")
	r.Rows = append(r.Rows, line)
	fmt.Printf("%s | goal %s | %s | %s | load %s\n", line.What, line.Goal, line.Measured, line.Met, line.Load)
}

// finish prints the table and appends the report to the file that BENCH_OUT names.
func (r *report) finish() error {
	if len(r.Rows) == 0 {
		return nil
	}
	fmt.Printf("\n%d cores, %s, load average before %s, after %s\n\n", runtime.NumCPU(), runtime.Version(), r.LoadBefore, load())
	fmt.Printf("| what | goal | measured | met | load |\n|---|---|---|---|---|\n")
	for _, line := range r.Rows {
		fmt.Printf("| %s | %s | %s | %s | %s |\n", line.What, line.Goal, line.Measured, line.Met, line.Load)
	}
	path := os.Getenv("BENCH_OUT")
	if path == "" {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(raw, '\n'))
	return err
}

// load is the machine's load average, because what else runs is part of a result.
func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}

// spread is what is said of many times.
type spread []time.Duration

// at returns a share of the times: 0.99 is the 99th percentile.
func (s spread) at(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[max(0, min(len(s)-1, int(math.Ceil(share*float64(len(s))))-1))]
}

func (s spread) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, worst %s (%d)", milliseconds(s.at(0.5)), milliseconds(s.at(0.99)), milliseconds(s.at(1)), len(s))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

const mebibyte = 1 << 20

// eventually tries until there is no error.
func eventually(t *testing.T, patience time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waiting for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// pause waits for a time that belongs to what is measured, such as that in which a server is cut off.
func pause(t *testing.T, during time.Duration) {
	t.Helper()
	timer := time.NewTimer(during)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
