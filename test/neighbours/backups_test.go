//go:build neighbours

package neighbours

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// manyDumps is more than there are places for runs.
const manyDumps = 12

// dumped makes an application and a Backup of what a command of its image writes.
func (t *tenant) dumped(name string, command ...string) {
	t.Create(&slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: slipwayv1alpha1.BackupSpec{
			Source: "webapp/shop", Schedule: "0 2 * * *", Destination: "s3://backups", RetentionPolicy: "30d",
			Deadline: "24h",
			Dump:     &slipwayv1alpha1.BackupDump{Command: command, Name: "orders.sql"},
		},
	})
}

func TestDumpsThatHangDoNotTakeThePlacesOfAnother(t *testing.T) {
	quiet, greedy := newTenant(t, "quiet"), newTenant(t, "greedy")
	for _, tenant := range []*tenant{quiet, greedy} {
		tenant.StartS3()
		tenant.app("shop")
		tenant.reported("shop")
	}
	quiet.dumped("small", "/slipway-demo", "dump", "10")
	backup := func(name string) {
		quiet.StartRun("small", name)
		quiet.Completed(name)
	}
	backup("first") // makes the repository
	alone := median(3, func(i int) { backup(name("alone", i)) })

	for i := range manyDumps {
		greedy.dumped(name("hangs", i), "/slipway-demo") // the server, which never ends and writes nothing
		greedy.StartRun(name("hangs", i), name("hangs", i))
	}
	greedy.Eventually(func() error {
		runs := &slipwayv1alpha1.BackupRunList{}
		if err := greedy.Cluster.List(greedy.Context(), runs, client.InNamespace(greedy.Namespace)); err != nil {
			return err
		}
		phases := map[slipwayv1alpha1.BackupPhase]int{}
		for i := range runs.Items {
			phases[runs.Items[i].Status.Phase]++
		}
		if phases[slipwayv1alpha1.BackupRunning] == 0 || phases[""] > 0 {
			return fmt.Errorf("the dumps that hang are %v", phases)
		}
		return nil
	})
	beside := median(3, func(i int) { backup(name("beside", i)) })
	compare(quiet.Fixture, fmt.Sprintf("a backup completes beside %d dumps of another tenant that hang", manyDumps), alone, beside)
}
