package backuprun

import (
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// Of a dump nobody knows how much there will be.
func TestTheProgressOfADumpIsHowMuchCame(t *testing.T) {
	for want, progress := range map[string]slipwayv1alpha1.TransferProgress{
		"0%": {}, "1.5 MiB": {Bytes: 3 << 19}, "25%": {Percent: 25, Bytes: 1, TotalBytes: 4},
	} {
		if got := (&scope{}).summary(slipwayv1alpha1.BackupRunStatus{Progress: &progress}).Progress; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A run that is told what it does says so of a dump, which reads no volume.
func TestWhatARunOfADumpSaysItDoes(t *testing.T) {
	volume, dump := does(slipwayv1alpha1.BackupVolume{Claim: "dump"}), does(slipwayv1alpha1.BackupVolume{Claim: "dump", Dump: "shop.sql"})
	for _, step := range []mover.Step{mover.StepSnapshot, mover.StepVerify} {
		if volume[step] == "" || dump[step] == "" || volume[step] == dump[step] {
			t.Errorf("of %s it is %q and %q", step, volume[step], dump[step])
		}
	}
}
