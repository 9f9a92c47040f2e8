// Package clitest helps to test commands of kubectl slipway: objects to show, goldens, and running a room's commands without a
// cluster.
//
//	builders.go     a WebApp in many states, and what belongs to it
//	definitions.go  a CustomResourceDefinition before and after a change
//	golden.go       comparing what was printed with a file
//	offline.go      running a command line that needs no cluster
package clitest
