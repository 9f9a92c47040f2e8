//go:build postgres

// Package postgres backs up a real database, PostgreSQL, while clients write to it, restores it, starts another server on
// what was restored, and looks whether it is whole: every page and index, and the sums of the accounts. hack/test-e2e.sh
// prepares the cluster, hack/debian-image.sh the image.
//
// database_test.go runs the server and its clients, judge_test.go says what whole means, and there is a file for each way
// of backing up.
package postgres

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) { os.Exit(livetest.Main(m, &cluster)) }
