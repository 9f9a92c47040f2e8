// Package crd has the command crd check: what breaks when a CustomResourceDefinition is changed.
//
//	crd.go      the commands crd and crd check
//	cluster.go  definitions and objects of a cluster
//	files.go    definitions in files
//	view.go     what crd check shows (pure)
package crd
