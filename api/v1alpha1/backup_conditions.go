package v1alpha1

// Condition types of Backup, BackupRun and Restore.
const (
	// ConditionVerified is True when the newest run completed, so that its copies were read back.
	ConditionVerified = "Verified"
	// ConditionRPOMet is True while the newest verified copy is as new as the schedule promises: not older than the time
	// between two runs, and what a run may take. RPO is short for recovery point objective.
	ConditionRPOMet = "RPOMet"
	// ConditionRetentionApplied is True when after the newest completed run those copies were removed that are not to be
	// kept.
	ConditionRetentionApplied = "RetentionApplied"
	// ConditionSuspended is True while spec.suspend lets no run start. It is absent otherwise.
	ConditionSuspended = "Suspended"
	// ConditionLiveSource is True when a volume was read while pods could write to it, so that the copy is at best what a
	// machine has on disk when it loses power. It is absent otherwise.
	ConditionLiveSource = "LiveSource"
	// ConditionHookAfterFailed is True when the after hook could not be run in a pod, though its before hook had been begun: the
	// workload may still be held. It is absent otherwise.
	ConditionHookAfterFailed = "HookAfterFailed"
	// ConditionDrillPassed is True when the newest drill restored a copy that is as the source was. It is absent where
	// spec.verify.drill is not set.
	ConditionDrillPassed = "DrillPassed"
	// ConditionOwnersNotKept is True when files were restored to another owner than they had. It is absent otherwise.
	ConditionOwnersNotKept = "OwnersNotKept"
)

// Reasons of a Backup's conditions, and of a run's and a restore's phase.
const (
	// ReasonVerified: every copy of the run was read back.
	ReasonVerified = "Verified"
	// ReasonRestored: everything was written and is on disk.
	ReasonRestored = "Restored"
	// ReasonNoRun: no run has ended yet.
	ReasonNoRun = "NoRun"
	// ReasonQueued: the run waits until others have ended, of this Backup or in the cluster.
	ReasonQueued = "Queued"
	// ReasonRepositoryBusy: another Job or pod of the Backup may still write to the repository, and one at a time may.
	ReasonRepositoryBusy = "RepositoryBusy"
	// ReasonTargetBusy: another Job or pod may still write to the volume that is restored to, and one at a time may.
	ReasonTargetBusy = "TargetBusy"
	// ReasonTransferring: a pod reads or writes the volume.
	ReasonTransferring = "Transferring"
	// ReasonVerifying: a pod reads the copy back.
	ReasonVerifying = "Verifying"
	// ReasonRetrying: an attempt failed, and another one begins soon.
	ReasonRetrying = "Retrying"
	// ReasonRunFailed: the newest run failed.
	ReasonRunFailed = "RunFailed"
	// ReasonSuspended: spec.suspend lets no run start, or stops the rule.
	ReasonSuspended = "Suspended"
	// ReasonWithinObjective: the newest verified copy is as new as the schedule promises.
	ReasonWithinObjective = "WithinObjective"
	// ReasonCopyTooOld: the newest verified copy is older than the schedule promises.
	ReasonCopyTooOld = "CopyTooOld"
	// ReasonNoCopy: there is no verified copy.
	ReasonNoCopy = "NoCopy"
	// ReasonNoSchedule: there is no schedule, so nothing is promised.
	ReasonNoSchedule = "NoSchedule"
	// ReasonRetentionApplied: what is not to be kept was removed.
	ReasonRetentionApplied = "RetentionApplied"
	// ReasonRetentionPending: copies that are not to be kept are being removed.
	ReasonRetentionPending = "RetentionPending"
	// ReasonNoRetention: neither spec.retention nor spec.retentionPolicy is set, so everything is kept.
	ReasonNoRetention = "NoRetention"
	// ReasonRetentionFailed: old copies could not be removed.
	ReasonRetentionFailed = "RetentionFailed"
	// ReasonMassDeletion: more copies would be removed at once than without a confirmation.
	ReasonMassDeletion = "MassDeletion"
	// ReasonNoVolumeSnapshot: the volume is read while pods may write to it, because no snapshot of it is taken.
	ReasonNoVolumeSnapshot = "NoVolumeSnapshot"
	// ReasonNotPermitted: the pod is not allowed to set owners, or the volume does not take them.
	ReasonNotPermitted = "NotPermitted"
	// ReasonKeyMade: a password was made. Of events only.
	ReasonKeyMade = "KeyMade"
	// ReasonRepositoryLeft: a repository that was to be deleted with its Backup could not be, and stays.
	ReasonRepositoryLeft = "RepositoryLeft"
	// ReasonSlotMissed: times of the schedule went by without a run. Of events only.
	ReasonSlotMissed = "SlotMissed"
)

// Reasons of a drill.
const (
	// ReasonDrillPassed: the newest drill restored a copy that is as the source was.
	ReasonDrillPassed = "DrillPassed"
	// ReasonDrillFailed: it did not. Of Ready.
	ReasonDrillFailed = "DrillFailed"
	// ReasonNoDrill: no drill has ended yet.
	ReasonNoDrill = "NoDrill"
	// ReasonSnapshotMissing: the copy that status tells of is not in the repository, or was not verified there.
	ReasonSnapshotMissing = "SnapshotMissing"
	// ReasonSnapshotStale: the newest verified copy is older than status or the schedule promises.
	ReasonSnapshotStale = "SnapshotStale"
	// ReasonSnapshotDiffers: the copy in the repository is of another run, volume or time than status tells.
	ReasonSnapshotDiffers = "SnapshotDiffers"
	// ReasonManifestMissing: the copy has no manifest of its source to compare with.
	ReasonManifestMissing = "ManifestMissing"
	// ReasonManifestDiffers: the manifest of the copy is not the one that was written with it.
	ReasonManifestDiffers = "ManifestDiffers"
	// ReasonNothingRestored: the copy holds files, and none was restored.
	ReasonNothingRestored = "NothingRestored"
	// ReasonNothingCompared: no file could be compared, so nothing is proved.
	ReasonNothingCompared = "NothingCompared"
	// ReasonFileMissing: a file of the source was not restored.
	ReasonFileMissing = "FileMissing"
	// ReasonContentDiffers: what was restored holds something else than the source did.
	ReasonContentDiffers = "ContentDiffers"
	// ReasonModeDiffers: a file or folder was restored with another mode.
	ReasonModeDiffers = "ModeDiffers"
	// ReasonLinkDiffers: a symbolic link was restored that points elsewhere, or one instead of something else.
	ReasonLinkDiffers = "LinkDiffers"
	// ReasonDrillCommandFailed: the command of spec.verify.drill ended with an exit code other than 0.
	ReasonDrillCommandFailed = "DrillCommandFailed"
)

// Reasons why a run or a restore waits or fails.
const (
	// ReasonBackupNotFound: there is no such Backup.
	ReasonBackupNotFound = "BackupNotFound"
	// ReasonBackupReplaced: the run is of a Backup that was deleted, and the one that has its name now is another.
	ReasonBackupReplaced = "BackupReplaced"
	// ReasonOtherController: the run is controlled by something else than its Backup.
	ReasonOtherController = "OtherController"
	// ReasonRunNotFound: there is no such BackupRun, or it has no verified copy.
	ReasonRunNotFound = "RunNotFound"
	// ReasonSourceNotFound: the claim or the workload that spec.source names does not exist.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonDestinationNotFound: the claim or the bucket that spec.destination names does not exist.
	ReasonDestinationNotFound = "DestinationNotFound"
	// ReasonContainerNotFound: the workload that spec.source names has no container that spec.dump or spec.hooks names.
	ReasonContainerNotFound = "ContainerNotFound"
	// ReasonPriorityClassNotFound: the PriorityClass that the spec names does not exist.
	ReasonPriorityClassNotFound = "PriorityClassNotFound"
	// ReasonStorageClassNotFound: the StorageClass that the spec names does not exist.
	ReasonStorageClassNotFound = "StorageClassNotFound"
	// ReasonSourceHasNoVolume: the workload that spec.source names has no volume.
	ReasonSourceHasNoVolume = "SourceHasNoVolume"
	// ReasonVolumeNotBound: the claim has no volume yet.
	ReasonVolumeNotBound = "VolumeNotBound"
	// ReasonVolumeInUse: the volume can be mounted by one pod only, and one uses it.
	ReasonVolumeInUse = "VolumeInUse"
	// ReasonTargetNotFound: the claim that spec.target names does not exist.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonKeyMissing: the encryption Secret does not exist, though a repository was made with it.
	ReasonKeyMissing = "KeyMissing"
	// ReasonDeadlineExceeded: it took longer than spec.deadline.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonPodPending: the pod could not start for 10 minutes.
	ReasonPodPending = "PodPending"
	// ReasonPodLost: the pod ended without a result: it was deleted, evicted, or its node went away. Or the container that runs
	// the command of spec.dump was ended from outside.
	ReasonPodLost = "PodLost"

	// ReasonWrongPassword: the password does not open the repository.
	ReasonWrongPassword = "WrongPassword"
	// ReasonWrongRepository: the destination holds another repository than the one that was used before.
	ReasonWrongRepository = "WrongRepository"
	// ReasonPathNotFound: a path that the spec names is not in the volume, or not in the copy.
	ReasonPathNotFound = "PathNotFound"
	// ReasonRepositoryNotFound: the repository or the copy does not exist.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonDestinationNotEmpty: the place of a new repository holds something else.
	ReasonDestinationNotEmpty = "DestinationNotEmpty"
	// ReasonUnreachable: the destination does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonAccessDenied: the destination refuses the credentials.
	ReasonAccessDenied = "AccessDenied"
	// ReasonNoSpace: the destination, the target or the cache is full.
	ReasonNoSpace = "NoSpace"
	// ReasonSourceUnreadable: something of the volume could not be read.
	ReasonSourceUnreadable = "SourceUnreadable"
	// ReasonSourceEmpty: the volume holds no file.
	ReasonSourceEmpty = "SourceEmpty"
	// ReasonHalfRestored: a restore into the volume has not ended, so that the volume may hold half of a copy.
	ReasonHalfRestored = "HalfRestored"
	// ReasonDumpFailed: the command of spec.dump failed, or did not say that it ended well.
	ReasonDumpFailed = "DumpFailed"
	// ReasonTargetNotEmpty: the target of a restore holds something.
	ReasonTargetNotEmpty = "TargetNotEmpty"
	// ReasonTargetUnwritable: the target of a restore takes no files.
	ReasonTargetUnwritable = "TargetUnwritable"
	// ReasonCorrupt: data in the repository is damaged or missing.
	ReasonCorrupt = "Corrupt"
	// ReasonMoverFailed: the program that moves the data failed in a way that it does not know.
	ReasonMoverFailed = "MoverFailed"
)

// Reasons of hooks.
const (
	// ReasonQuiesced: pods could write to the volume, and the before hook had succeeded in all of them.
	ReasonQuiesced = "Quiesced"
	// ReasonHookRunning: the before hooks run.
	ReasonHookRunning = "HookRunning"
	// ReasonReleasing: the attempt has ended, and the after hooks run.
	ReasonReleasing = "Releasing"
	// ReasonHooksDisabled: the operator runs no hooks.
	ReasonHooksDisabled = "HooksDisabled"
	// ReasonHookNotAllowed: a pod does not allow the command of a hook.
	ReasonHookNotAllowed = "HookNotAllowed"
	// ReasonHookFailed: the command of a hook ended with another exit code than 0, or not in time.
	ReasonHookFailed = "HookFailed"
	// ReasonHookInterrupted: nobody knows how the command of a hook ended, or it could not be started.
	ReasonHookInterrupted = "HookInterrupted"
	// ReasonHookLeft: a run went before its after hook had run. Of events only.
	ReasonHookLeft = "HookLeft"
	// ReasonPodGone: the pod of a hook has gone.
	ReasonPodGone = "PodGone"
)
