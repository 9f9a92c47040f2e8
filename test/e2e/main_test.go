//go:build e2e

// Package e2e proves what Slipway does, on real pods in a real cluster. It uses the cluster that KUBECONFIG names, with the
// operator installed; hack/test-e2e.sh prepares both.
//
// Tests that disturb the operator itself, or measure without company, are not parallel: they run before all others.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) {
	var err error
	if cluster, err = livecluster.Connect(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
