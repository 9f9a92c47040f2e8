//go:build postgres

package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// Without a dump, hooks or a volume snapshot the files of a database are read one after the other while it writes them.
// Status says what such a copy is worth. Whether a server starts on it is luck, and nothing that a test could ask for.
func TestALiveCopyOfADatabaseIsSaidToBeNoMore(t *testing.T) {
	t.Parallel()
	f := withDatabase(t)
	f.backup()
	run, from, to := f.completed("live")
	live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
	if live == nil || live.Status != metav1.ConditionTrue || live.Reason != slipwayv1alpha1.ReasonNoVolumeSnapshot ||
		!strings.Contains(live.Message, "at best what a machine has on disk when it loses power") {
		t.Errorf("the condition LiveSource of the run is %+v", live)
	}
	f.Eventually(func() error {
		backup := &slipwayv1alpha1.Backup{}
		if err := f.Get(database, backup); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(backup.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("the condition LiveSource of the Backup is %+v", c)
		}
		return nil
	})

	f.restored("again")
	f.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: server("again", dataFolder)})
	if err := livecluster.Eventually(f.Context(), time.Minute, func() error { return f.serves("again") }); err != nil {
		f.Measured("the server does not start on a live copy: %v", err)
		return
	}
	if err := f.judge("again", from, to); err != nil {
		f.Measured("the server starts on a live copy, and its database is not whole: %v", err)
		return
	}
	f.Measured("the server starts on a live copy, and its database is whole this time")
}
