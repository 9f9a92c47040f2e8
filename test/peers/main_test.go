//go:build peers

// Package peers measures Slipway beside other implementations of the Gateway API: on the same cluster, with the same script, in
// turns. hack/test-e2e.sh prepares the cluster, and hack/peers.sh gives it the images of the others. The figures are told by
// the test and are written to bin/peers.md; docs/performance.md has a table of them. Nothing here is a goal that others have to
// meet: what is wrong in an answer is counted, and only Slipway fails the test by it.
//
//	contender_test.go   what is measured, and how it is installed
//	backends_test.go    what is behind the Gateways
//	script_test.go      what is done to each of them, step by step
//	crowd_test.go       many routes: when they serve, when statuses are right, what that costs in writes
//	client_test.go      clients, and what they count
//	processes_test.go   processor time and memory
//	report_test.go      the table
package peers

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) { os.Exit(livetest.Main(m, &cluster)) }
