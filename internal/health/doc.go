// Package health judges objects: healthy, progressing, failed, terminating or unknown, and
// why. It is pure: objects in, verdicts out. It imports no client, no clock and no logger.
//
// Reasons and messages are stable: at every retry the same problem has the same text, so a
// condition made from it does not flap. So they contain no counters, times and ports, and
// alternating states of the same problem (ErrImagePull and ImagePullBackOff) look the same.
//
// Of judges an object of any kind, as it is decoded from JSON. The others judge one built-in kind
// by its Go type. docs/health.md says how; hack/healthdoc writes its tables from the data here.
//
//   - health.go: the states, and what a verdict is
//   - object.go: Of: deletion, an old status, the user's expressions
//   - profile.go, path.go: what is known about kinds: rules, tests of fields, and paths to them
//   - shipped.go, profiles_*.go: the profiles that Slipway brings
//   - generic.go, condition.go, words.go, polarity.go: the conventions that all kinds share
//   - typed.go: Of for the kinds below
//   - deployment.go, job.go, autoscaler.go: Deployments, Jobs, HorizontalPodAutoscalers
//   - pod.go, probe.go, event.go, spec.go: pods, what they answer, what their events and spec add
//   - refusal.go, quota.go: why the API server refused a pod
package health
