//go:build neighbours

package neighbours

import (
	"fmt"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// least is a time that nobody notices. A latency below it is no harm, however short the one alone was.
const least = time.Second

// tenant is somebody with the role "edit" in a namespace, and with no other right.
type tenant struct {
	*livetest.Fixture
	// admin writes what a tenant may not write.
	admin *livecluster.Cluster
}

// newTenant makes a namespace and gives somebody the cluster's own role "edit" in it.
func newTenant(t *testing.T, name string) *tenant {
	t.Helper()
	f := livetest.New(t, cluster)
	user := name + "-" + f.Namespace
	f.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	own := *cluster
	var err error
	if own.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: operator.Scheme()}); err != nil {
		t.Fatal(err)
	}
	own.Config = config
	f.Cluster = &own
	return &tenant{Fixture: f, admin: cluster}
}

// median does the same work a few times, and returns the time that half of it kept to.
func median(times int, work func(i int)) time.Duration {
	took := make([]time.Duration, times)
	for i := range took {
		start := time.Now()
		work(i)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// compare publishes what the work of one tenant took alone and beside the abuse of another. The goal is twice as long at most.
func compare(f *livetest.Fixture, row string, alone, beside time.Duration) {
	f.Helper()
	f.Measured("%s: %v alone, %v beside the abuse", row, alone.Round(time.Millisecond), beside.Round(time.Millisecond))
	if limit := max(2*alone, least); beside > limit {
		f.Errorf("%s took %v beside the abuse, want at most %v", row, beside, limit)
	}
}

// name numbers objects of the same kind.
func name(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
