//go:build neighbours

package neighbours

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// cluster is the one that the tests run on. TestMain connects to it.
var cluster *livecluster.Cluster

func TestMain(m *testing.M) { os.Exit(livetest.Main(m, &cluster)) }
