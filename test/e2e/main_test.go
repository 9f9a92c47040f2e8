//go:build e2e

// Package e2e proves what Slipway does, on real pods in a real cluster. It uses the cluster that KUBECONFIG names, with the
// operator installed; hack/test-e2e.sh prepares both.
//
// Tests that disturb the operator itself, or measure without company, are not parallel: they run before all others.
package e2e

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) { os.Exit(livetest.Main(m, &cluster)) }
