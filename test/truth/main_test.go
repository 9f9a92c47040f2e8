//go:build e2e

// Package truth gets objects into trouble on a real cluster and compares what their status says with what is true: the reason
// and the field that a reader would change, soon after the cluster knows, gone soon after it is mended, and no condition that
// says otherwise. docs/dev/truth.md has the table.
package truth

import (
	"fmt"
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) {
	code := livetest.Main(m, &cluster)
	if err := results.write(os.Getenv("TRUTH_TABLE")); err != nil {
		fmt.Fprintln(os.Stderr, "truth tests:", err)
		code = 1
	}
	os.Exit(code)
}
