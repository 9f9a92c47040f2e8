// Package health evaluates objects: healthy, progressing, failed, terminating or unknown, and
// why. It is pure: objects in, verdicts out. It imports no client, no clock and no logger.
//
// Reasons and messages are stable: at every retry the same problem has the same text, so a
// condition made from it does not flap. So they contain no counters, times and ports, and
// alternating states of the same problem (ErrImagePull and ImagePullBackOff) look the same.
//
// Evaluate takes an object of any kind, as it is decoded from JSON. The others evaluate one built-in kind
// by its Go type. docs/health.md says how; hack/healthdoc writes its tables from the data here.
//
//	health.go             the states, and what a verdict is
//	object.go             Of: deletion, an old status, the user's expressions
//	profile.go            Profile: what is known about some kinds, as rules and tests of fields
//	path.go               finding values at a path of an object
//	shipped.go            the profiles that Slipway brings, and short ways to write one
//	generic.go            evaluating an object by conventions that all kinds share
//	condition.go          what conditions say
//	words.go              what words in a status say
//	polarity.go           which condition types and words are good and which are bad
//	typed.go              Of for the kinds below
//	deployment.go         Deployments
//	job.go                Jobs
//	autoscaler.go         HorizontalPodAutoscalers
//	pod.go                pods
//	probe.go              what a pod answers to its probes
//	event.go              what events say about a pod
//	spec.go               what the spec of a pod adds: memory limits, claims, scheduling
//	refusal.go            why the API server refused a pod
//	quota.go              what the API server says when a quota is exceeded
//	profiles_workload.go  profiles of kinds of Kubernetes that run pods
//	profiles_cluster.go   profiles of the other kinds of Kubernetes
//	profiles_delivery.go  profiles of cert-manager, Flux, Argo and Tekton
//	profiles_platform.go  profiles of Crossplane, the Gateway API, databases, Knative, Cluster API and others
//	profiles_further.go   profiles of kinds that follow no convention, or one of their own
//	profiles_words.go     profiles of kinds whose status has a field with words of its own
//	profiles_slipway.go   profiles of Slipway's own kinds
//	start.go              why a container cannot be started
//	registry.go           why an image cannot be pulled
//	fields.go             which field of a WebApp or a Backup decides about a pod
//	refusal_cause.go      which quota or LimitRange refused it, and whether it still would
package health
