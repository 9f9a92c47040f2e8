// Package endstate tells what a cluster came to: objects without what differs from run
// to run although nothing else does, which are identities, versions, times and
// addresses. Two ways to the same end have equal end states. The package is pure and
// knows no kind.
package endstate
