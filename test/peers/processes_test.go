//go:build peers

package peers

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// process is one that a contender consists of. It tells of itself at /metrics of a port, by the names that client libraries of
// Prometheus have for every program.
type process struct {
	plane string
	port  int32
	pod   func() (*corev1.Pod, error)
}

// use is what a process has used.
type use struct {
	seconds float64 // of processor time, since it started
	bytes   float64 // resident now
}

// usage asks every process.
func usage(f *livetest.Fixture, processes []process) map[string]use {
	f.Helper()
	used := map[string]use{}
	for _, p := range processes {
		pod, err := p.pod()
		if err != nil {
			f.Fatal(err)
		}
		text, err := livecluster.Ask(f.Context(), livecluster.NewHTTPClient(), livecluster.Address(pod.Status.PodIP, p.port)+"/metrics")
		if err != nil {
			f.Fatalf("%s: %v", p.plane, err)
		}
		seconds, errSeconds := sample(text, "process_cpu_seconds_total")
		bytes, errBytes := sample(text, "process_resident_memory_bytes")
		if errSeconds != nil || errBytes != nil {
			f.Fatalf("%s: %v %v", p.plane, errSeconds, errBytes)
		}
		used[p.plane] = use{seconds, bytes}
	}
	return used
}

// sample returns the value of a metric without labels.
func sample(text, name string) (float64, error) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}
