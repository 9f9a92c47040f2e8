// Package fair decides whose turn it is where namespaces share places: workers of a queue, or pods of backups. It is pure. Who
// uses it counts the places that each namespace holds.
//
// A place goes to the namespace that holds the fewest. Among those that hold as many, it goes round. In a namespace it goes to
// who came first. Where work cannot be interrupted, Share keeps places free for who comes next.
package fair
