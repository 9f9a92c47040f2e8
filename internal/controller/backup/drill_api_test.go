//go:build apitest

package backup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var drilling = []mover.Step{mover.StepRestore, mover.StepCompare}

// withDrill has drills by hand, or by a schedule.
func withDrill(schedule string) func(*slipwayv1alpha1.Backup) {
	return func(b *slipwayv1alpha1.Backup) {
		b.Spec.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{Schedule: schedule}}
	}
}

func (f *fixture) move(job *batchv1.Job, change func(mover.Step, *mover.Result) *mover.Result) {
	f.Helper()
	if err := f.cluster.Move(f.Context(), job, change); err != nil {
		f.Fatal(err)
	}
}

// ask asks for a drill.
func (f *fixture) ask(value string) {
	f.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, slipwayv1alpha1.AnnotationDrill, value)
	backup := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}}
	if err := env.Client.Patch(f.Context(), backup, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		f.Fatal(err)
	}
}

// copied makes a Backup with a drill and its first copy, and sees the removal of old copies through.
func (f *fixture) copied(change ...func(*slipwayv1alpha1.Backup)) *slipwayv1alpha1.Backup {
	f.Helper()
	f.backup(append([]func(*slipwayv1alpha1.Backup){withDrill("")}, change...)...)
	f.move(f.job(copying...), nil)
	f.move(f.job(mover.StepMaintain), nil)
	return f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionUnknown, slipwayv1alpha1.ReasonNoDrill),
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
			has(b, slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionTrue, slipwayv1alpha1.ReasonNoRetention),
		)
	})
}

// drillJobs are the Jobs of drills that are not being deleted.
func (f *fixture) drillJobs() []batchv1.Job {
	f.Helper()
	list := &batchv1.JobList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace), client.HasLabels{slipwayv1alpha1.LabelDrill}); err != nil {
		f.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(job batchv1.Job) bool { return !job.DeletionTimestamp.IsZero() })
}

func (f *fixture) drillConfig(job *batchv1.Job) mover.Drill {
	f.Helper()
	for _, text := range job.Spec.Template.Annotations {
		var config mover.Config
		if json.Unmarshal([]byte(text), &config) == nil && len(config.Drill.Volumes) > 0 {
			return config.Drill
		}
	}
	f.Fatalf("the Job has no configuration of a drill: %v", job.Spec.Template.Annotations)
	return mover.Drill{}
}

func TestADrillPassesFailsAndRecovers(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.copied()
	f.ask("one")
	job := f.job(drilling...)
	run := f.runs()[0]
	volume := run.Status.Volumes[0]
	want := mover.DrillVolume{
		Volume: "shop-data", Snapshot: volume.SnapshotID, Run: string(run.UID) + "/shop-data", SourceTime: volume.SourceTime.UTC(), Manifest: volume.ManifestDigest,
	}
	config := f.drillConfig(job)
	if len(config.Volumes) != 1 || config.Volumes[0] != want || volume.ManifestDigest == "" || !config.NotBefore.Equal(volume.SourceTime.Time) {
		t.Errorf("the drill expects %+v, want %+v", config, want)
	}
	f.move(job, nil)
	backup := f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed),
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
			f.hasDrillJobs(0),
		)
	})
	d := backup.Status.Drill
	if d.Phase != slipwayv1alpha1.BackupCompleted || d.LastTime == nil || !d.LastTime.Equal(d.LastSuccessTime) || d.ComparedFiles != 3 || d.ComparedBytes != 1000 ||
		d.Run != run.Name || d.SnapshotID != volume.SnapshotID || d.NextTime != nil {
		t.Errorf("the drill is %+v", d)
	}

	f.ask("two")
	f.move(f.job(drilling...), func(step mover.Step, r *mover.Result) *mover.Result {
		if step == mover.StepCompare {
			return &mover.Result{Command: "compare", Kind: "ContentDiffers", Message: "\"a\" holds something else than was read from the source"}
		}
		return r
	})
	failed := f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionFalse, slipwayv1alpha1.ReasonContentDiffers),
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonDrillFailed),
			f.hasDrillJobs(1), // with its log
		)
	})
	if s := failed.Status; s.Drill.LastSuccessTime == nil || s.Drill.ComparedFiles != 0 || s.Summary.Reason != slipwayv1alpha1.ReasonDrillFailed || s.Phase != slipwayv1alpha1.BackupCompleted {
		t.Errorf("status is %+v", s)
	}
	environment.Eventually(t, func() error { return f.hasEvent(slipwayv1alpha1.ReasonDrillFailed, "ContentDiffers") })

	f.ask("three")
	again := f.job(drilling...)
	// While it goes on, what the last one came to stays true.
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if b.Status.Drill.Phase != slipwayv1alpha1.BackupRunning {
			return fmt.Errorf("the drill is %+v", b.Status.Drill)
		}
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionFalse, slipwayv1alpha1.ReasonContentDiffers),
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonDrillFailed),
			f.hasDrillJobs(1),
		)
	})
	f.move(again, nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed),
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
			f.hasDrillJobs(0),
		)
	})
	environment.Eventually(t, func() error { return f.hasEvent(slipwayv1alpha1.ReasonDrillPassed, "is as the source was") })
}

func (f *fixture) hasDrillJobs(want int) error {
	if jobs := f.drillJobs(); len(jobs) != want {
		return fmt.Errorf("there are %d Jobs of drills, want %d", len(jobs), want)
	}
	return nil
}

func (f *fixture) hasEvent(reason, says string) error {
	list := &eventsv1.EventList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Reason == reason && strings.Contains(list.Items[i].Note, says) {
			return nil
		}
	}
	return fmt.Errorf("there is no event %s that says %q", reason, says)
}

// Whatever a Job says: a drill passes only when both steps say that they did what was asked for.
func TestADrillThatProvesNothingFails(t *testing.T) {
	env.StartOperator(t, nil)
	say := func(step mover.Step, change func(*mover.Result)) func(mover.Step, *mover.Result) *mover.Result {
		return func(s mover.Step, r *mover.Result) *mover.Result {
			if s == step {
				change(r)
			}
			return r
		}
	}
	tests := map[string]struct {
		change func(mover.Step, *mover.Result) *mover.Result
		reason string
	}{
		"no file compared":       {say(mover.StepCompare, func(r *mover.Result) { r.Drill.Files = 0 }), slipwayv1alpha1.ReasonNothingCompared},
		"another repository":     {say(mover.StepCompare, func(r *mover.Result) { r.RepositoryID = "other" }), slipwayv1alpha1.ReasonWrongRepository},
		"the copy is damaged":    {say(mover.StepRestore, func(r *mover.Result) { r.OK, r.Kind, r.Message = false, "Corrupt", "a pack is missing" }), slipwayv1alpha1.ReasonCorrupt},
		"the copy is missing":    {say(mover.StepRestore, func(r *mover.Result) { r.OK, r.Kind, r.Message = false, "SnapshotMissing", "it is gone" }), slipwayv1alpha1.ReasonSnapshotMissing},
		"an unknown kind":        {say(mover.StepRestore, func(r *mover.Result) { r.OK, r.Kind, r.Message = false, "New", "?" }), slipwayv1alpha1.ReasonRetrying},
		"nothing told":           {say(mover.StepCompare, func(r *mover.Result) { r.Drill = nil }), slipwayv1alpha1.ReasonRetrying},
		"fewer volumes compared": {say(mover.StepCompare, func(r *mover.Result) { r.Drill.Volumes = 0 }), slipwayv1alpha1.ReasonRetrying},
		"fewer volumes restored": {func(_ mover.Step, r *mover.Result) *mover.Result { r.Drill.Volumes = 2; return r }, slipwayv1alpha1.ReasonRetrying},
		"a killed step":          {func(mover.Step, *mover.Result) *mover.Result { return nil }, slipwayv1alpha1.ReasonRetrying},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.copied()
			f.ask("one")
			f.move(f.job(drilling...), tc.change)
			backup := f.wait(func(b *slipwayv1alpha1.Backup) error {
				if b.Status.Drill.Reason != tc.reason {
					return fmt.Errorf("the drill is %+v, want %s", b.Status.Drill, tc.reason)
				}
				return nil
			})
			if d := backup.Status.Drill; d.LastSuccessTime != nil || d.ComparedFiles != 0 || (tc.reason == slipwayv1alpha1.ReasonRetrying) != (d.Attempt == 2) {
				t.Errorf("the drill is %+v", d)
			}
			if meta.IsStatusConditionTrue(backup.Status.Conditions, slipwayv1alpha1.ConditionDrillPassed) {
				t.Error("it has passed")
			}
		})
	}
}

// A slot that went by is made up for, once, however many operators there are, and an old one is not made up for.
func TestASlotHasOneDrill(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.copied(withDrill("0 4 * * 0"))
	if backup.Status.Drill.LastSlot == nil || backup.Status.Drill.NextTime == nil {
		t.Fatalf("the drill is %+v", backup.Status.Drill)
	}
	f.missed(15 * 24 * time.Hour)
	env.StartOperator(t, nil)
	first := f.job(drilling...)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if d := b.Status.Drill; d.Phase != slipwayv1alpha1.BackupRunning || d.LastSlot.Before(&backup.CreationTimestamp) == d.LastSlot.After(time.Now()) {
			return fmt.Errorf("the drill is %+v", d)
		}
		return f.hasDrillJobs(1)
	})
	f.move(first, nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed), f.hasDrillJobs(0))
	})
	environment.Quiet(t, 1500*time.Millisecond, func() string { return fmt.Sprint(len(f.drillJobs())) })
	if jobs := f.drillJobs(); len(jobs) != 0 {
		t.Errorf("there is another drill: %v", jobs[0].Name)
	}
}

// missed has the Backup know no slot since then, as after a time without an operator.
func (f *fixture) missed(since time.Duration) {
	f.Helper()
	patch := fmt.Sprintf(`{"status":{"drill":{"lastSlot":%q}}}`, time.Now().Add(-since).UTC().Format(time.RFC3339))
	backup := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}}
	if err := env.Client.Status().Patch(f.Context(), backup, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		f.Fatal(err)
	}
}

// A drill reads, so a run may begin beside it. It does not begin beside one, and what removes old copies waits for it.
func TestADrillAndOtherJobsOfTheRepository(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.copied()
	run := func(name string) {
		f.create(&slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"}})
	}
	run("shop-second")
	second := f.job(copying...)
	f.ask("one")
	none := func(why string) {
		t.Helper()
		environment.Quiet(t, time.Second, func() string { return fmt.Sprint(len(f.drillJobs())) })
		if jobs := f.drillJobs(); len(jobs) != 0 {
			t.Fatalf("a drill began beside %s", why)
		}
	}
	none("a run")
	f.move(second, nil)
	drill := f.job(drilling...)
	if got := f.drillConfig(drill).Volumes[0].Run; !strings.HasSuffix(got, "/shop-data") || strings.HasPrefix(got, string(f.runs()[0].UID)) == strings.HasPrefix(got, string(f.runs()[1].UID)) {
		t.Errorf("the drill is of %q", got)
	}
	if d := f.wait(func(*slipwayv1alpha1.Backup) error { return nil }).Status.Drill; d.Run != "shop-second" {
		t.Errorf("the drill is of %q, want the newest run", d.Run)
	}

	run("shop-third")
	third := f.job(copying...)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"retentionPolicy":"30d"}}`))
	if err := env.Client.Patch(t.Context(), &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}}, patch); err != nil {
		t.Fatal(err)
	}
	f.move(third, nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionFalse, slipwayv1alpha1.ReasonRetentionPending)
	})
	all := func() string {
		list := &batchv1.JobList{}
		if err := env.Client.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
			return err.Error()
		}
		var steps []string
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp.IsZero() {
				steps = append(steps, fmt.Sprint(workload.StepsOf(&list.Items[i])))
			}
		}
		return strings.Join(steps, " ")
	}
	environment.Quiet(t, time.Second, all)
	if jobs := all(); strings.Contains(jobs, "expire") {
		t.Fatalf("old copies are removed while a drill reads: %s", jobs)
	}
	f.move(drill, nil)
	f.move(f.job(mover.StepExpire), nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionTrue, slipwayv1alpha1.ReasonRetentionApplied),
			has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed),
		)
	})
}

func TestADrillIsTakenOutOfTheSpec(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.copied()
	f.ask("one")
	f.job(drilling...)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"verify":{"drill":null}}}`))
	if err := env.Client.Patch(t.Context(), backup, patch); err != nil {
		t.Fatal(err)
	}
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if c := meta.FindStatusCondition(b.Status.Conditions, slipwayv1alpha1.ConditionDrillPassed); c != nil || b.Status.Drill != nil {
			return fmt.Errorf("status still tells of drills: %+v, %+v", c, b.Status.Drill)
		}
		return f.hasDrillJobs(0)
	})
}

// The repository is not deleted beside a drill that reads it.
func TestABackupIsDeletedWhileADrillReads(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.copied(func(b *slipwayv1alpha1.Backup) { b.Spec.DeletionPolicy = slipwayv1alpha1.DeletionDelete })
	f.ask("one")
	f.job(drilling...)
	if err := env.Client.Delete(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	deleting := f.job(mover.StepDelete)
	if err := f.hasDrillJobs(0); err != nil {
		t.Error(err)
	}
	f.move(deleting, nil)
	environment.Eventually(t, func() error {
		err := f.get("shop", &slipwayv1alpha1.Backup{})
		if err == nil {
			return errors.New("the Backup is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// Without a copy there is nothing to restore. That is a failure when somebody asks.
func TestADrillWithoutACopy(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup(withDrill(""), func(b *slipwayv1alpha1.Backup) { b.Spec.Suspend = true })
	f.ask("one")
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionFalse, slipwayv1alpha1.ReasonNoCopy)
	})
}

func TestABackupWithADrillAtSteadyStateWritesNothing(t *testing.T) {
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	backup := f.copied(withDrill("0 4 31 12 *"))
	f.ask("one")
	f.move(f.job(drilling...), nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(has(b, slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed), f.hasDrillJobs(0))
	})
	quiet := func() {
		environment.Quiet(t, 1500*time.Millisecond, func() string { return counter.Counts().In(f.namespace).String() })
	}
	quiet()
	before := counter.Counts()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	if err := env.Client.Patch(t.Context(), backup, patch); err != nil {
		t.Fatal(err)
	}
	quiet()
	if made := counter.Counts().Since(before).In(f.namespace); len(made) != 0 {
		t.Errorf("another look at a Backup with nothing to do cost %v, want nothing", made)
	}
}

func TestWhatTheSchemaRefusesOfADrill(t *testing.T) {
	f := newFixture(t)
	class, none := "fast", resource.MustParse("0")
	tests := map[string]struct {
		change func(*slipwayv1alpha1.BackupDrill)
		want   string
	}{
		"everything": {func(d *slipwayv1alpha1.BackupDrill) {
			d.Schedule, d.Image, d.Command, d.Deadline = "0 4 * * 0", "postgres:15", []string{"pg_amcheck"}, "1h"
			d.Scratch = &slipwayv1alpha1.DrillScratch{StorageClassName: &class}
		}, ""},
		"a command without an image": {func(d *slipwayv1alpha1.BackupDrill) { d.Command = []string{"true"} }, "needs spec.verify.drill.image"},
		"an image with a space":      {func(d *slipwayv1alpha1.BackupDrill) { d.Image = "a b" }, "must not hold white space"},
		"a deadline of seconds":      {func(d *slipwayv1alpha1.BackupDrill) { d.Deadline = "10s" }, "must be at least 1m"},
		"a class of no claim": {func(d *slipwayv1alpha1.BackupDrill) {
			d.Scratch = &slipwayv1alpha1.DrillScratch{Type: slipwayv1alpha1.ScratchEmptyDir, StorageClassName: &class}
		}, "does not go with type EmptyDir"},
		"a scratch of nothing": {func(d *slipwayv1alpha1.BackupDrill) { d.Scratch = &slipwayv1alpha1.DrillScratch{Size: &none} }, "size must be greater than 0"},
		"another type":         {func(d *slipwayv1alpha1.BackupDrill) { d.Scratch = &slipwayv1alpha1.DrillScratch{Type: "Host"} }, "Unsupported value"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backup := &slipwayv1alpha1.Backup{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace},
				Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket/prefix"},
			}
			withDrill("")(backup)
			tc.change(backup.Spec.Verify.Drill)
			err := env.Client.Create(t.Context(), backup, client.DryRunAll)
			if (tc.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
