//go:build e2e

package e2e

import "testing"

// The pods of backups compute, and have more weight than pods that ask for no processor. So these tests run beside each other,
// and not beside those that count requests that were dropped.
func TestBackups(t *testing.T) {
	t.Run("ADrillPassesUntilTheRepositoryIsDamaged", testADrillPassesUntilTheRepositoryIsDamaged)
	t.Run("ADumpIsBackedUpAndRestored", testADumpIsBackedUpAndRestored)
	t.Run("ADumpThatFailsLeavesNoCopy", testADumpThatFailsLeavesNoCopy)
	t.Run("ARunThatCannotSucceedSaysWhy", testARunThatCannotSucceedSaysWhy)
	t.Run("WhatIsTakenFromABackupIsTold", testWhatIsTakenFromABackupIsTold)
	t.Run("HooksRunInTheApplicationAroundItsBackup", testHooksRunInTheApplicationAroundItsBackup)
	t.Run("ARunWhosePodIsLostIsMadeByAnotherOne", testARunWhosePodIsLostIsMadeByAnotherOne)
	t.Run("TheVolumeOfAnApplicationIsBackedUpOnScheduleAndRestored", testTheVolumeOfAnApplicationIsBackedUpOnScheduleAndRestored)
	t.Run("ARestoreBringsBackWhatItIsAskedFor", testARestoreBringsBackWhatItIsAskedFor)
	t.Run("ARepositoryIsRestoredAfterEverythingElseIsGone", testARepositoryIsRestoredAfterEverythingElseIsGone)
}
