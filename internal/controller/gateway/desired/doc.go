// Package desired says what a Gateway leads to in the cluster: complete apply
// configurations with deterministic names. It is pure: the same inputs give the same
// objects, and nothing is read but the inputs.
package desired
