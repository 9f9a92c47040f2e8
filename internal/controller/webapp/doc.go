// Package webapp is the controller of WebApp.
//
// Reconcile loads everything into a scope, works out which revision should run, applies the children, judges the rollout,
// keeps good revisions, and writes a status that is computed once from the scope. Every file does one of these:
//
//	controller.go  Reconcile, the table of contents
//	kind.go        what others ask of the kind: its name, cache, metrics and rights for people
//	setup.go       what is watched, and how an event finds its WebApp
//	scope.go       what one reconcile knows, and loading it
//	config.go      the content of referenced Secrets and ConfigMaps, as a hash
//	config_use.go  one use of a Secret or ConfigMap: what is recorded and what was read (pure)
//	revision.go    which revision should run; keeping good ones
//	template.go    the pod template of a revision, as it was stored
//	names.go       names of revisions, remembered
//	children.go    applying and deleting children
//	fields.go      the field of the WebApp that a refused field of a child comes from (pure)
//	pods.go        the events of pods that do not say what is wrong
//	rollout.go     judging a rollout (pure)
//	volume.go      what there is to say about the volume (pure)
//	status.go      status from the scope (pure)
//	metrics.go     what is measured
//
// Package desired says what a WebApp leads to. What other kinds have too is in package kit.
package webapp
