// Package endstate returns the end state of a cluster: its objects without what differs from
// run to run anyway, which are identities, versions, times and addresses. Two runs with the
// same result have equal end states. The package is pure and knows no kind.
package endstate
