//go:build scale

package scale

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// sizes are how much is measured. Every one can be set in the environment.
type sizes struct {
	// apps (BENCH_APPS) is the number of WebApps in the small measurements.
	apps int
	// manyApps (BENCH_MANY_APPS) is the number in the large ones; 0 leaves them out.
	manyApps int
	// rounds (BENCH_ROUNDS) is how often the small number is timed.
	rounds int
	// samples (BENCH_SAMPLES) is how many latencies are taken.
	samples int
	// unrelated (BENCH_UNRELATED) is the number of Secrets and ConfigMaps that belong to
	// nobody; 0 leaves that measurement out.
	unrelated int
	// perNamespace (BENCH_PER_NAMESPACE) is how many WebApps share a namespace.
	perNamespace int
	// backups (BENCH_BACKUPS) is the number of Backups; 0 leaves them out.
	backups int
}

var (
	size    sizes
	results report
)

// TestMain is the benchmark or, when the benchmark starts its own binary again, the
// operator that is measured: a process of its own has a heap of its own.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if os.Getenv(operatorEnv) != "" {
		if err := runOperator(); err != nil {
			fmt.Fprintln(os.Stderr, "operator:", err)
			os.Exit(1)
		}
		return
	}
	size = sizes{
		apps:         number("BENCH_APPS", 1000),
		manyApps:     number("BENCH_MANY_APPS", 10000),
		rounds:       number("BENCH_ROUNDS", 3),
		samples:      number("BENCH_SAMPLES", 300),
		unrelated:    number("BENCH_UNRELATED", 50000),
		perNamespace: number("BENCH_PER_NAMESPACE", 100),
		backups:      number("BENCH_BACKUPS", 500),
	}
	results.describe()
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
