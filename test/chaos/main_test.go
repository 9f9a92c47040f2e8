//go:build chaos

// Package chaos kills what Slipway stands on, and Slipway itself, while applications are
// created, changed and deleted: the operator, the API server and etcd of a local cluster
// with real pods, by SIGKILL. hack/test-e2e.sh prepares the cluster.
//
// A seed decides what is done and killed and when: plan_test.go. What should come of it
// is in model_test.go, and oracle_test.go compares the cluster with it.
package chaos

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
	if cluster, err = livecluster.Connect(); err == nil && !cluster.Local {
		err = fmt.Errorf("CLUSTER=existing: only programs of a local cluster can be killed")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
