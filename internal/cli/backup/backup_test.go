package backup

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

func TestParseBackup(t *testing.T) {
	for _, argument := range []string{"data", "backup/data", "backups/data", "bk/data", "Backup/data", "backup.slipway.dev/data"} {
		if got, err := parseBackup(argument); err != nil || got != "data" {
			t.Errorf("%q: got %q, %v", argument, got, err)
		}
	}
	for _, argument := range []string{"webapp/data", "backup/", "backup/data/x", "", "/data"} {
		if got, err := parseBackup(argument); err == nil {
			t.Errorf("%q: got %q, want an error", argument, got)
		}
	}
}

// The API server adds five characters. Jobs are named after runs and Restores.
func TestNamesAreShortEnough(t *testing.T) {
	for backup, want := range map[string]string{
		"data":                   "data-restore-",
		strings.Repeat("a", 40):  strings.Repeat("a", 38) + "-restore-",
		strings.Repeat("a-", 20): strings.Repeat("a-", 18) + "a-restore-",
	} {
		if got := generateName(backup, "restore"); got != want || len(got)+5 > maxTransferName {
			t.Errorf("%s: got %s, want %s", backup, got, want)
		}
	}
}

func TestBackupListing(t *testing.T) {
	copyOf := func(claim, id string, verified bool) slipwayv1alpha1.BackupVolume {
		return slipwayv1alpha1.BackupVolume{Claim: claim, SnapshotID: id, Verified: verified, Files: 1200, Bytes: 3 << 30, AddedBytes: 5 << 20}
	}
	run := func(name, backup string, since time.Duration, phase slipwayv1alpha1.BackupPhase, reason string, volumes ...slipwayv1alpha1.BackupVolume) slipwayv1alpha1.BackupRun {
		start, end := clitest.Ago(since), clitest.Ago(since-4*time.Minute)
		r := slipwayv1alpha1.BackupRun{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", CreationTimestamp: start},
			Spec:       slipwayv1alpha1.BackupRunSpec{Backup: backup},
			Status:     slipwayv1alpha1.BackupRunStatus{Phase: phase, Reason: reason, StartTime: &start, Volumes: volumes},
		}
		if r.Ended() {
			r.Status.CompletionTime = &end
		}
		if phase == slipwayv1alpha1.BackupCompleted {
			r.Status.Verification = &slipwayv1alpha1.BackupVerification{Mode: slipwayv1alpha1.VerifyFull, Time: end}
		}
		return r
	}
	last, next := clitest.Ago(26*time.Hour), metav1.NewTime(clitest.Now.Add(22*time.Hour))
	backups := []slipwayv1alpha1.Backup{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-data", Namespace: "team-a"},
			Status: slipwayv1alpha1.BackupStatus{
				LastBackupTime: &last, NextRunTime: &next, Summary: slipwayv1alpha1.BackupSummary{Reason: slipwayv1alpha1.ReasonRunFailed},
			},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "team-a"}},
	}
	runs := []slipwayv1alpha1.BackupRun{
		run("shop-data-1", "shop-data", 26*time.Hour, slipwayv1alpha1.BackupCompleted, "Verified", copyOf("a", "9d2e1c4b8a7f6053", true), copyOf("b", "0a1b2c3d4e5f6071", true)),
		run("shop-data-2", "shop-data", 2*time.Hour, slipwayv1alpha1.BackupFailed, "Unreachable"),
		run("shop-data-3", "shop-data", time.Minute, slipwayv1alpha1.BackupRunning, "Verifying", copyOf("a", "77aa1c4b8a7f6053", false), slipwayv1alpha1.BackupVolume{Claim: "b"}),
		run("of-another", "gone", time.Minute, slipwayv1alpha1.BackupRunning, "Verifying"),
	}
	views := backupViews(backups, runs)
	clitest.Golden(t, "backup/ls.txt", func(out *bytes.Buffer) error { return printBackups(out, views, clitest.Now) })
	output := command.FormatYAML
	clitest.Golden(t, "backup/ls.yaml", func(out *bytes.Buffer) error { return output.Print(out, views) })
}

func TestRestoreOfFlags(t *testing.T) {
	asOf := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		change func(*restoreOptions)
		want   func(*slipwayv1alpha1.RestoreSpec)
		refuse string
	}{
		"the newest copy": {want: func(*slipwayv1alpha1.RestoreSpec) {}},
		"of a time": {
			change: func(o *restoreOptions) { o.asOf = "2026-05-01T12:00:00Z" },
			want:   func(s *slipwayv1alpha1.RestoreSpec) { s.AsOf = &asOf },
		},
		"of an ID, over what is there": {
			change: func(o *restoreOptions) { o.snapshot, o.overwrite = "9d2e1c4b8a7f6053", true },
			want:   func(s *slipwayv1alpha1.RestoreSpec) { s.Snapshot, s.Overwrite = "9d2e1c4b8a7f6053", true },
		},
		"some paths, however they are written": {
			change: func(o *restoreOptions) { o.paths = []string{"/uploads/", "etc/a b,c"} },
			want:   func(s *slipwayv1alpha1.RestoreSpec) { s.Paths = []slipwayv1alpha1.BackupPath{"uploads", "etc/a b,c"} },
		},
		"one of several volumes, to a new one": {
			change: func(o *restoreOptions) { o.volume, o.create, o.to = "a", "10Gi", "pvc/again" },
			want: func(s *slipwayv1alpha1.RestoreSpec) {
				s.Volume = &slipwayv1alpha1.LocalReference{Name: "a"}
				s.Target.Create = &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse("10Gi")}
			},
		},
		"as root": {
			change: func(o *restoreOptions) { o.asRoot = true },
			want: func(s *slipwayv1alpha1.RestoreSpec) {
				s.Mover = &slipwayv1alpha1.BackupMover{RunAs: slipwayv1alpha1.MoverRoot}
			},
		},
		"nowhere":          {change: func(o *restoreOptions) { o.to = "" }, refuse: "--to is required"},
		"a time and an ID": {change: func(o *restoreOptions) { o.asOf, o.snapshot = "2026-05-01T12:00:00Z", "9d" }, refuse: "--as-of and --snapshot exclude"},
		"a vague time":     {change: func(o *restoreOptions) { o.asOf = "yesterday" }, refuse: `--as-of "yesterday" is not a time`},
		"no size":          {change: func(o *restoreOptions) { o.create = "big" }, refuse: `--create "big" is not a size`},
		"over a new one":   {change: func(o *restoreOptions) { o.create, o.overwrite = "1Gi", true }, refuse: "--create and --overwrite exclude"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &restoreOptions{to: "again"}
			if test.change != nil {
				test.change(o)
			}
			got, err := o.restore("shop-data")
			if test.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), test.refuse) {
					t.Errorf("got %v, want an error with %q", err, test.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := slipwayv1alpha1.RestoreSpec{
				Backup: &slipwayv1alpha1.LocalReference{Name: "shop-data"}, Target: slipwayv1alpha1.RestoreTarget{Claim: "again"},
			}
			test.want(&want)
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
