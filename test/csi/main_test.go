//go:build csi

// Package csi proves that backups read CSI volumes from snapshots of them, and leave none behind, on real pods and with the
// real snapshot controller. hack/test-e2e.sh prepares the cluster, with the CSI driver of hack/csi.
package csi

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) { os.Exit(livetest.Main(m, &cluster)) }
