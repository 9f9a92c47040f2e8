package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
)

// The API server's trust in the webhooks is an object of the cluster. An operator that may not
// read it would end every two minutes.
func TestWebhooksAreRefusedWhereTheOperatorHasNoRightInTheCluster(t *testing.T) {
	_, err := NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, Options{
		Namespaces: []string{"team-a"}, WebhookPort: 9443, WebhookHost: "slipway-webhook.slipway-system.svc",
	}, Seams{})
	if err == nil || !strings.Contains(err.Error(), "--webhook-port") || !strings.Contains(err.Error(), "--namespaces") {
		t.Errorf("it starts with %v, want an error that names both flags", err)
	}
}

func TestTheMonitorIsRefusedWhereTheOperatorHasNoRightInTheCluster(t *testing.T) {
	_, err := NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, Options{Namespaces: []string{"team-a"}, MonitorKinds: true}, Seams{})
	if err == nil || !strings.Contains(err.Error(), "--monitor") || !strings.Contains(err.Error(), "--namespaces") {
		t.Errorf("it starts with %v, want an error that names both flags", err)
	}
}

// What docs/reliability.md promises follows from three numbers, whatever the moment of
// the crash is.
func TestTheStandbyTakesOverInTime(t *testing.T) {
	const afterCrash, afterRelease = 18 * time.Second, 3 * time.Second
	options := managerOptions(Options{LeaderElection: true}, Seams{})
	duration, deadline, retry := *options.LeaseDuration, *options.RenewDeadline, *options.RetryPeriod

	longestPause := time.Duration((1 + leaderelection.JitterFactor) * float64(retry))
	// One pause until the standby has seen the last renewal, one until it looks again after
	// the Lease has run out.
	if worst := duration + 2*longestPause; worst > afterCrash {
		t.Errorf("after a crash the standby acts up to %v later, want at most %v", worst, afterCrash)
	}
	// A leader that is told to end needs some of the time to finish its reconciles.
	if longestPause > afterRelease-time.Second {
		t.Errorf("after a release the standby acts up to %v later, want at most %v", longestPause, afterRelease-time.Second)
	}
	if !options.LeaderElectionReleaseOnCancel {
		t.Error("a leader that ends does not release the Lease")
	}
	if gap := duration - retry - deadline; gap < 3*time.Second {
		t.Errorf("an old leader ends %v before a new one begins, want at least 3 s", gap)
	}
}
