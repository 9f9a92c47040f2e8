// Package watch has the command watch: every change of objects as it happens.
//
//	watch.go  the command watch, and one kind that is named
//	kinds.go  kinds that come and go with their definitions
//	store.go  one kind: what was known of its objects, and what is new
//	view.go   what watch prints
package watch
