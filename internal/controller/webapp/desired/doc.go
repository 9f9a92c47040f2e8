// Package desired says what a WebApp leads to: whole apply configurations, computed
// from inputs alone. It imports no client, no clock and no logger.
//
// Whatever is stated here is owned: it is restored when somebody changes it.
// Whatever is left out belongs to others: the replicas of an autoscaled Deployment,
// a service mesh's annotations, the annotation of kubectl rollout restart.
package desired
