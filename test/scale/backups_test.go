//go:build scale

package scale

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/controller/backuprun"
	"github.com/slipway-dev/slipway/internal/testing/requests"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// runsKept is how many runs a Backup keeps where its spec says nothing.
const runsKept = 10

// TestBackups measures what many Backups cost the operator, each with as many runs that have ended as it keeps.
func TestBackups(t *testing.T) {
	if size.backups == 0 {
		t.Skip("BENCH_BACKUPS is 0")
	}
	s := startServer(t)
	namespaces := s.namespaces(t, "backups", max(1, size.backups/10))
	p := startOperator(t, s)
	ended := s.oneRun(t)
	p.rest(t)
	without := p.memory(t)
	p.stop(t)

	backups := s.makeBackups(t, namespaces, size.backups, ended)
	p = startOperator(t, s)
	s.keepAll(t, p, len(backups))
	measureTouched(t, s, p, backups)
	p.stop(t)
	measureBackupsRestart(t, s, backups, without)
}

// oneRun lets the operator make one run, and returns the status that it ends with.
func (s *server) oneRun(t *testing.T) slipwayv1alpha1.BackupRunStatus {
	t.Helper()
	namespace := s.namespaces(t, "sample", 1)[0]
	s.withVolume(t, namespace)
	sample := &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"},
		Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket/prefix"},
	}
	if err := s.client.Create(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	var ended slipwayv1alpha1.BackupRunStatus
	s.eventually(t, "the end of a run", func() error {
		if err := s.playJobs(t, client.InNamespace(namespace)); err != nil {
			return err
		}
		runs := &slipwayv1alpha1.BackupRunList{}
		if err := s.client.List(t.Context(), runs, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range runs.Items {
			if runs.Items[i].Status.Phase == slipwayv1alpha1.BackupCompleted {
				ended = runs.Items[i].Status
				return nil
			}
		}
		return fmt.Errorf("none of %d runs has completed", len(runs.Items))
	})
	return ended
}

// withVolume makes what a Backup needs.
func (s *server) withVolume(t *testing.T, namespace string) {
	t.Helper()
	err := errors.Join(
		s.client.Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-data", Namespace: namespace},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}),
		s.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "slipway-backup", Namespace: namespace},
			StringData: map[string]string{"accessKeyID": "a", "secretAccessKey": "b"},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// makeBackups makes Backups with runs of the last days, all of which have ended in the same way. No operator is there
// meanwhile, so it makes no Job for them.
func (s *server) makeBackups(t *testing.T, namespaces []string, n int, ended slipwayv1alpha1.BackupRunStatus) []*slipwayv1alpha1.Backup {
	t.Helper()
	for _, namespace := range namespaces {
		s.withVolume(t, namespace)
	}
	// The next slot is half a day away.
	slot := time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Minute)
	backups := make([]*slipwayv1alpha1.Backup, n)
	for i := range backups {
		backups[i] = &slipwayv1alpha1.Backup{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("backup-%03d", i), Namespace: namespaces[i%len(namespaces)]},
			Spec: slipwayv1alpha1.BackupSpec{
				Source: "shop-data", Destination: "s3://bucket/prefix", RetentionPolicy: "30d",
				Schedule: fmt.Sprintf("%d %d * * *", slot.Minute(), slot.Hour()),
			},
		}
	}
	err := each(backups, func(b *slipwayv1alpha1.Backup) error {
		if err := s.client.Create(t.Context(), b); err != nil {
			return err
		}
		// The operator makes it before the first run. Later it would say that the password of the copies is gone.
		if err := s.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.EncryptionSecret()}, StringData: map[string]string{"password": "secret"},
		}); err != nil {
			return err
		}
		for day := range runsKept {
			if err := s.makeRun(t, b, slot.AddDate(0, 0, -day), ended); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("make Backups: %v", err)
	}
	return backups
}

// makeRun makes a run as the operator does, and gives it a status as the operator does.
func (s *server) makeRun(t *testing.T, of *slipwayv1alpha1.Backup, slot time.Time, ended slipwayv1alpha1.BackupRunStatus) error {
	raw, err := json.Marshal(desired.Run(of, slot))
	if err != nil {
		return err
	}
	run := &slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: *desired.Run(of, slot).GetName()}}
	if err := s.client.Patch(t.Context(), run, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(backup.FieldManager)); err != nil {
		return err
	}
	run.Status = ended
	return s.client.Status().Update(t.Context(), run, client.FieldOwner(backuprun.FieldManager))
}

// playJobs lets every Job that has not ended end well.
func (s *server) playJobs(t *testing.T, where ...client.ListOption) error {
	jobs := &batchv1.JobList{}
	if err := s.client.List(t.Context(), jobs, where...); err != nil {
		return err
	}
	cluster := &workload.Cluster{Client: s.client}
	return each(jobs.Items, func(job batchv1.Job) error {
		if len(job.Status.Conditions) > 0 || !job.DeletionTimestamp.IsZero() {
			return nil
		}
		return client.IgnoreNotFound(cluster.Move(t.Context(), &job, nil))
	})
}

// keepAll plays the Jobs that remove old copies, until every Backup is at rest.
func (s *server) keepAll(t *testing.T, p *process, n int) {
	t.Helper()
	s.eventually(t, "the removal of old copies", func() error {
		if err := s.playJobs(t); err != nil {
			return err
		}
		backups := &slipwayv1alpha1.BackupList{}
		if err := s.client.List(t.Context(), backups); err != nil {
			return err
		}
		kept := 0
		for i := range backups.Items {
			if backups.Items[i].Status.Retention != nil {
				kept++
			}
		}
		if kept <= n { // the sample is one more
			return fmt.Errorf("%d of %d Backups are done", kept, n+1)
		}
		return nil
	})
	p.rest(t)
}

// eventually tries until there is no error.
func (s *server) eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.After(10 * time.Minute)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waiting for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// measureTouched makes the operator look at every Backup and every run again.
func measureTouched(t *testing.T, s *server, p *process, backups []*slipwayv1alpha1.Backup) {
	t.Helper()
	before := p.rest(t)
	touched := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/touched":"yes"}}}`))
	runs := &slipwayv1alpha1.BackupRunList{}
	if err := s.client.List(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(
		each(backups, func(b *slipwayv1alpha1.Backup) error {
			return s.client.Patch(t.Context(), b.DeepCopy(), touched, stranger)
		}),
		each(runs.Items, func(run slipwayv1alpha1.BackupRun) error {
			return s.client.Patch(t.Context(), &run, touched, stranger)
		}),
	)
	if err != nil {
		t.Fatalf("touch every Backup and run: %v", err)
	}
	p.await(t, "a reconcile of everything", func(now state) bool {
		return now.Reconciles-before.Reconciles >= len(backups)+len(runs.Items) && now.Waiting == 0
	})
	after := p.rest(t)
	made, reconciles := after.requests().Since(before.requests()), after.Reconciles-before.Reconciles
	results.requests(fmt.Sprintf("%d reconciles of Backups and runs at steady state", reconciles), made.String())
	results.add(row{
		What: fmt.Sprintf("steady state, %d Backups with %d runs each, every Backup and every run touched by a stranger", len(backups), runsKept),
		Goal: "0 writes, 0 live reads",
		Measured: fmt.Sprintf("%d writes, %d live reads, %d events in %d reconciles (%.2f ms CPU each)", made.Writes(), liveReads(made),
			made.Sum(requests.Events), reconciles, (after.CPU-before.CPU).Seconds()*1000/float64(reconciles)),
		Values: map[string]float64{"writes": float64(made.Writes()), "reads": float64(liveReads(made)), "reconciles": float64(reconciles)},
	}, met(nothing(made)))
	if !nothing(made) {
		t.Errorf("at steady state the operator made requests: %s", made)
	}
}

func liveReads(made requests.Counts) int { return made.Sum(requests.Reads, requests.Lists) }

func nothing(made requests.Counts) bool {
	return made.Writes()+liveReads(made)+made.Sum(requests.Events) == 0
}

// measureBackupsRestart starts the operator with everything there already.
func measureBackupsRestart(t *testing.T, s *server, backups []*slipwayv1alpha1.Backup, without memory) {
	t.Helper()
	total := len(backups) * (1 + runsKept)
	p := launchOperator(t, s)
	p.await(t, "a reconcile of everything", func(now state) bool { return now.Synced > 0 && now.Reconciles >= total && now.Waiting == 0 })
	after := p.rest(t)
	made := after.requests()
	reads := made.Sum(requests.Reads)
	what := fmt.Sprintf("%d Backups with %d runs each", len(backups), runsKept)
	results.requests("restart with "+what, made.String())
	results.add(row{
		What: "restart with " + what + ": requests", Goal: "0 writes, 0 live reads",
		Measured: fmt.Sprintf("%d writes, %d live reads, %d events, %d errors in %d reconciles (%.1f s CPU)",
			made.Writes(), reads, made.Sum(requests.Events), after.Errors, after.Reconciles, after.CPU.Seconds()),
		Values: map[string]float64{"writes": float64(made.Writes()), "reads": float64(reads), "reconciles": float64(after.Reconciles)},
	}, met(made.Writes()+reads+made.Sum(requests.Events) == 0))
	if made.Writes()+reads+made.Sum(requests.Events) > 0 {
		t.Errorf("the restarted operator made requests: %s", made)
	}
	with := p.memory(t)
	p.profile(t, "heap-backups.prof", "heap")
	more := mib(with.Resident) - mib(without.Resident)
	results.add(row{
		What: "memory for " + what, Goal: "60 MB more than without",
		Measured: fmt.Sprintf("%.1f MiB more resident (%.0f to %.0f MiB, at most %.0f), heap %.1f MiB more (%.1f to %.1f)", more,
			mib(without.Resident), mib(with.Resident), mib(p.peak()), mib(with.Heap)-mib(without.Heap), mib(without.Heap), mib(with.Heap)),
		Values: map[string]float64{"moreMiB": more, "residentMiB": mib(with.Resident), "heapMiB": mib(with.Heap), "peakMiB": mib(p.peak())},
	}, met(with.Resident <= without.Resident+60e6))
	p.stop(t)
}
