// Package optional has the kinds that a cluster need not have. A watch on a kind that does not exist holds an operator up
// when it starts, so each of these kinds has a cache and a client of its own, which are made when it is found.
//
//	kinds.go  which kinds, and what is told of their events
//	find.go   looking for them, and whether they may be read
//	read.go   reading them
package optional
