// Package change turns what a watch says about an object into what people ask for: which field changed, from what to what, and
// who most likely did it.
//
// It is pure: no client, no clock, no logger. Secrets are taken out first, before anything is hashed, queued or stored. What
// changes all the time and means nothing (noise) is folded and counted.
//
//   - record.go: what a change is, as every other part of the monitor sees it
package change
