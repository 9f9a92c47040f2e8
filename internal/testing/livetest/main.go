package livetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// Main connects to the cluster that a script has prepared, runs the tests of a package, and
// returns the exit code.
func Main(m *testing.M, cluster **livecluster.Cluster) int {
	connected, err := livecluster.Connect()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests on a cluster:", err)
		return 1
	}
	*cluster = connected
	return m.Run()
}
