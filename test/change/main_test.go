//go:build e2e || change

// Package change changes a gateway, its backends and its certificate all the time while
// clients of every protocol use it through its Service, on real pods, and fails when
// one of them notices. hack/test-e2e.sh prepares the cluster.
//
// A seed decides what is changed and in which order: plan_test.go. act_test.go does it.
// The clients are in requests_test.go and streams_test.go; what they note is in
// record_test.go.
package change

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) { os.Exit(livetest.Main(m, &cluster)) }
