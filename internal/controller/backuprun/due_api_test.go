//go:build apitest

package backuprun_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// atATime is how many runs the operator lets run at a time.
const atATime = 10

// Backups that are due in the same minute have their turn one after the other: never more Jobs than may run at a time, none
// forgotten, and each costs as many writes as a run that is alone. make test-backup-faults does it with 500.
func TestHundredsOfBackupsThatAreDueAtOnce(t *testing.T) {
	due := 40
	if text := os.Getenv("DUE"); text != "" {
		var err error
		if due, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	for n := range due {
		name := fmt.Sprintf("due-%03d", n)
		f.create(&slipwayv1alpha1.Backup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
			// Without a schedule it is due at once, and once.
			Spec: slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket/prefix"},
		})
	}
	q := &queue{fixture: f, done: map[string]bool{}}
	for q.ended < due {
		before := q.ended
		environment.Eventually(t, func() error {
			if err := q.look(); err != nil {
				return err
			}
			if q.ended == before {
				return fmt.Errorf("%d of %d have ended", q.ended, due)
			}
			return nil
		})
	}
	made := counter.Counts().In(f.namespace)
	t.Logf("measured: %d Backups due at once: at most %d Jobs at a time, %v", due, q.most, made)
	if len(q.done) != due {
		t.Errorf("%d Jobs for %d Backups", len(q.done), due)
	}
	if writes := made.Sum(requests.Status); writes > 12*due {
		t.Errorf("%d statuses were written for %d Backups", writes, due)
	}
	if q.most < 2 {
		t.Error("no two ran at a time, so the test proves nothing")
	}
}

// As many runs as may run at a time wait for a Secret that nobody makes, or for the time of another attempt. The next one is not
// kept waiting by them.
func TestARunThatCannotGoOnHoldsNoPlace(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	for n := range atATime {
		name := fmt.Sprintf("stuck-%d", n)
		backup := &slipwayv1alpha1.Backup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
			Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Schedule: "0 2 * * *", Destination: "s3://bucket/prefix", Suspend: true},
		}
		if n > 1 {
			backup.Spec.Encryption = &slipwayv1alpha1.LocalReference{Name: "nobody-makes-it"}
		}
		f.create(backup)
		f.create(&slipwayv1alpha1.BackupRun{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: name},
		})
		if n > 1 {
			f.wait(name, slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSecretNotFound)
			continue
		}
		err := f.cluster.Move(t.Context(), f.job(name+"-0-1"), func(_ mover.Step, r *mover.Result) *mover.Result {
			return &mover.Result{Command: r.Command, Kind: "Unreachable", Message: "nobody answers"}
		})
		if err != nil {
			t.Fatal(err)
		}
		f.wait(name, slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying)
	}
	f.run("shop-now")
	f.job("shop-now-0-1")
}

// Twelve runs of one namespace have pods that never end, as a dump may for the 24 hours of its deadline. The run of another
// namespace has its pod at once, and the status of those that wait says by which rule they do.
func TestRunsThatNeverEndLeaveAPlaceForAnotherNamespace(t *testing.T) {
	env.StartOperator(t, nil)
	hog, first, other := newFixture(t), newFixture(t), newFixture(t)
	began := time.Now()
	first.run("alone")
	first.job("alone-0-1")
	alone := time.Since(began)
	for n := range atATime + 2 {
		name := fmt.Sprintf("hangs-%02d", n)
		hog.create(&slipwayv1alpha1.Backup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: hog.namespace},
			Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Schedule: "0 2 * * *", Destination: "s3://bucket/prefix", Suspend: true, Deadline: "24h"},
		})
		hog.create(&slipwayv1alpha1.BackupRun{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: hog.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: name},
		})
	}
	running, queued := 0, ""
	environment.Eventually(t, func() error {
		runs := &slipwayv1alpha1.BackupRunList{}
		if err := env.Client.List(t.Context(), runs, client.InNamespace(hog.namespace)); err != nil {
			return err
		}
		running, queued = 0, ""
		waits := 0
		for i := range runs.Items {
			switch status := runs.Items[i].Status; {
			case status.Phase == slipwayv1alpha1.BackupRunning:
				running++
			case status.Reason == slipwayv1alpha1.ReasonQueued:
				waits++
				queued = status.Message
			}
		}
		if running+waits != atATime+2 || running == 0 {
			return fmt.Errorf("%d run and %d wait", running, waits)
		}
		return nil
	})
	began = time.Now()
	other.run("beside")
	other.job("beside-0-1")
	t.Logf("measured: a run has its Job after %v alone, after %v beside %d that hang (of %d that want to)", alone, time.Since(began), running, atATime+2)
	if running != atATime/2 {
		t.Errorf("%d runs of one namespace have a place, want half of %d", running, atATime)
	}
	if want := "only while more are free than it has"; !strings.Contains(queued, want) {
		t.Errorf("a run that waits says %q, want %q in it", queued, want)
	}
}

// queue lets the Jobs of all runs succeed, and counts.
type queue struct {
	*fixture
	done        map[string]bool // Jobs
	ended, most int
}

// look ends the Jobs that run, and counts the runs that have ended.
func (q *queue) look() error {
	var jobs batchv1.JobList
	if err := env.Client.List(q.Context(), &jobs, client.InNamespace(q.namespace)); err != nil {
		return err
	}
	active := slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return !isOfARun(&job) || hasEnded(&job) })
	if q.most = max(q.most, len(active)); q.most > atATime {
		q.Fatalf("%d Jobs run at a time", q.most)
	}
	for i := range active {
		if q.done[active[i].Name] {
			continue
		}
		if err := q.cluster.Move(q.Context(), &active[i], nil); client.IgnoreNotFound(err) != nil {
			return err
		}
		q.done[active[i].Name] = true
	}
	var runs slipwayv1alpha1.BackupRunList
	if err := env.Client.List(q.Context(), &runs, client.InNamespace(q.namespace)); err != nil {
		return err
	}
	q.ended = 0
	for i := range runs.Items {
		switch runs.Items[i].Status.Phase {
		case slipwayv1alpha1.BackupCompleted:
			q.ended++
		case slipwayv1alpha1.BackupFailed:
			q.Fatalf("%s failed: %s", runs.Items[i].Name, runs.Items[i].Status.Message)
		}
	}
	return nil
}

// isOfARun tells the Jobs of runs from those that free space.
func isOfARun(job *batchv1.Job) bool {
	for _, owner := range job.OwnerReferences {
		if owner.Kind == "BackupRun" {
			return true
		}
	}
	return false
}

func hasEnded(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			return true
		}
	}
	return false
}
