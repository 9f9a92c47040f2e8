package v1alpha1

// Condition types that only WebApp has.
const (
	// ConditionRolledBack is True from a rollback until something else is asked for. Its
	// reason is why the rollout failed. It is absent otherwise.
	ConditionRolledBack = "RolledBack"
	// ConditionPaused is True while spec.paused keeps the operator from changing anything. It
	// is absent otherwise.
	ConditionPaused = "Paused"
)

// Reasons of a WebApp's conditions.
const (
	// ReasonScaledToZero: replicas is 0, so nothing runs, as asked.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonRolloutInProgress: pods of the wanted revision are being started.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonRolloutComplete: every pod is of the wanted revision.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRollingBack: the last good revision is being restored.
	ReasonRollingBack = "RollingBack"
	// ReasonRolledBack: the last good revision runs in place of the one that failed.
	ReasonRolledBack = "RolledBack"
	// ReasonRolloutFailed: the rollout failed, and spec.rollout.onFailure is Hold or
	// there is no earlier revision to return to.
	ReasonRolloutFailed = "RolloutFailed"
	// ReasonProgressDeadlineExceeded: the rollout made no progress within its deadline.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonReplicasNotReady: fewer pods serve than asked for.
	ReasonReplicasNotReady = "ReplicasNotReady"
	// ReasonReplicasReady: at least one pod serves.
	ReasonReplicasReady = "ReplicasReady"

	// ReasonSecretNotFound: a referenced Secret does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonConfigMapNotFound: a referenced ConfigMap does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonKeyNotFound: a referenced Secret or ConfigMap lacks a key that is used.
	ReasonKeyNotFound = "KeyNotFound"
	// ReasonImmutableReplaced: a referenced Secret or ConfigMap is immutable and was deleted and made again with other
	// content, which the nodes do not give to pods while pods of the earlier one run.
	ReasonImmutableReplaced = "ImmutableReplaced"
	// ReasonVolumePending: the volume is not bound, and a pod or another size waits for it.
	ReasonVolumePending = "VolumePending"
	// ReasonVolumeResizeRefused: the cluster does not let the volume have the size that
	// spec.storage.size asks for.
	ReasonVolumeResizeRefused = "VolumeResizeRefused"
	// ReasonTemplateRefused: a stored pod template says what no WebApp can ask for, so that
	// the pods were built from the stored spec. Of events only.
	ReasonTemplateRefused = "TemplateRefused"
)
