package backup

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// course is a run as one who waits sees it.
func course() []transfer {
	left := metav1.NewTime(clitest.Now.Add(90 * time.Second))
	half := &slipwayv1alpha1.TransferProgress{Percent: 50, Bytes: 512 << 20, TotalBytes: 1 << 30, EstimatedCompletionTime: &left}
	running := transfer{Object: "backuprun/shop-data-now-x", Phase: "Running", Reason: "Transferring", Message: `reading "shop-data"`, Attempt: 1}
	atHalf, again, completed := running, running, running
	atHalf.Progress = half
	again.Attempt = 2
	completed.Phase, completed.Reason, completed.Message = "Completed", "Verified", "every copy was read back"
	return []transfer{{Object: running.Object}, {Object: running.Object}, running, atHalf, atHalf, again, completed}
}

func TestAChangeIsShownOnce(t *testing.T) {
	tests := map[string]struct {
		terminal bool
		output   command.Format
		want     string
	}{
		"lines": {output: command.FormatTable, want: `    0.0s  waits for the operator
    0.0s  Running    Transferring: reading "shop-data"
    0.0s   50%  512.0 MiB of 1.0 GiB, 90s left
    0.0s  Running    Transferring: reading "shop-data" (attempt 2)
`},
		"a bar, which goes before the next line": {terminal: true, output: command.FormatTable, want: `    0.0s  waits for the operator
    0.0s  Running    Transferring: reading "shop-data"
` + clearLine + `          [############............]  50%  512.0 MiB of 1.0 GiB, 90s left` + clearLine +
			`    0.0s  Running    Transferring: reading "shop-data" (attempt 2)
`},
		"for a program, also the end": {terminal: true, output: command.FormatJSON, want: `{"object":"backuprun/shop-data-now-x","namespace":""}
{"object":"backuprun/shop-data-now-x","namespace":"","phase":"Running","reason":"Transferring","message":"reading \"shop-data\"","attempt":1}
{"object":"backuprun/shop-data-now-x","namespace":"","phase":"Running","reason":"Transferring","message":"reading \"shop-data\"","attempt":1,"progress":{"percent":50,"bytes":536870912,"totalBytes":1073741824,"estimatedCompletionTime":"2026-11-20T12:01:30Z"}}
{"object":"backuprun/shop-data-now-x","namespace":"","phase":"Running","reason":"Transferring","message":"reading \"shop-data\"","attempt":2}
{"object":"backuprun/shop-data-now-x","namespace":"","phase":"Completed","reason":"Verified","message":"every copy was read back","attempt":1}
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			s := &transferScreen{out: out, output: test.output, terminal: test.terminal, clock: clocktesting.NewFakePassiveClock(clitest.Now), start: clitest.Now}
			for _, seen := range course() {
				if err := s.show(seen); err != nil {
					t.Fatal(err)
				}
			}
			s.close()
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestABarIsAlwaysOfOneWidth(t *testing.T) {
	for percent, done := range map[int32]int{-1: 0, 0: 0, 3: 0, 50: 12, 99: 23, 100: 24, 101: 24} {
		if got := bar(percent); len(got) != barWidth+2 || strings.Count(got, "#") != done {
			t.Errorf("%d: got %s, want %d of %d", percent, got, done, barWidth)
		}
	}
}

// What a server or a file name says must not move the cursor.
func TestAMessageCannotWriteToTheTerminal(t *testing.T) {
	t.Parallel()
	evil := transfer{Phase: "Failed", Reason: "Unreachable", Message: "it says \x1b[2J\nhello"}
	if got := evil.state(); strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("got %q", got)
	}
}

func TestWhatCameOfIt(t *testing.T) {
	start, end, source := clitest.Ago(5*time.Minute), clitest.Ago(2*time.Minute), clitest.Ago(24*time.Hour)
	run := runTransfer(&slipwayv1alpha1.BackupRun{Status: slipwayv1alpha1.BackupRunStatus{
		Phase: slipwayv1alpha1.BackupCompleted, Files: 12, Bytes: 2048, AddedBytes: 100, Unreadable: 3, StartTime: &start, CompletionTime: &end,
		Verification: &slipwayv1alpha1.BackupVerification{Mode: slipwayv1alpha1.VerifySample, Time: end},
	}})
	restore := restoreTransfer(&slipwayv1alpha1.Restore{
		Spec: slipwayv1alpha1.RestoreSpec{Target: slipwayv1alpha1.RestoreTarget{Claim: "again"}},
		Status: slipwayv1alpha1.RestoreStatus{
			Phase: slipwayv1alpha1.BackupCompleted, Files: 12, Bytes: 2048, SourceTime: &source, OwnersNotKept: 4, AttributesNotKept: 5,
			StartTime: &start, CompletionTime: &end,
		},
	})
	for want, got := range map[string]transfer{
		"12 files, 2.0 KiB (100 B added), 3 paths missing, verified (Sample), in 3m":                                  run,
		"12 files, 2.0 KiB in pvc/again, as of 2026-11-19T12:00:00Z, 4 owners not kept, 5 attributes not kept, in 3m": restore,
	} {
		if got.outcome != want || !got.ended() {
			t.Errorf("got %q, want %q", got.outcome, want)
		}
	}
}
