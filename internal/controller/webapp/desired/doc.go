// Package desired says what a WebApp leads to: whole apply configurations, computed
// from inputs alone. It imports no client, no clock and no logger.
//
// Whatever is stated here is owned: it is restored when somebody changes it.
// Whatever is left out belongs to others: the replicas of an autoscaled Deployment,
// a service mesh's annotations, the annotation of kubectl rollout restart.
//
//	children.go    Service, HorizontalPodAutoscaler, PodDisruptionBudget and PersistentVolumeClaim
//	config.go      volumes of the pod: storage and files
//	deployment.go  the Deployment and its pod template
//	desired.go     inputs, names and labels that all children have in common
//	hooks.go       the annotation by which pods allow hooks of Backups
//	permit.go      whether a stored pod template may do more than a WebApp may
//	revision.go    revisions, their names, and the ControllerRevision that keeps one
//	template.go    the pod template of a revision, as this release or an older one builds it
package desired
