// Package webapp is the controller of WebApp.
//
// One pass of Reconcile loads everything into a scope, works out which revision
// should run, applies the children, judges the rollout, keeps good revisions, and
// writes a status that is computed once from the scope. Every file but the desired
// package beside it does one of these:
//
//	controller.go  Reconcile, the table of contents
//	setup.go       what is watched, and how an event finds its WebApp
//	scope.go       what one pass knows, and loading it
//	config.go      the content of referenced Secrets and ConfigMaps, as a hash
//	revision.go    which revision should run; keeping good ones
//	names.go       names of revisions, remembered
//	children.go    applying and deleting children
//	rollout.go     judging a rollout (pure)
//	volume.go      what there is to say about the volume (pure)
//	status.go      status from the scope (pure)
//	metrics.go     what is measured
package webapp
