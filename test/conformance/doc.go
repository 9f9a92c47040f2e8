// Package conformance runs the conformance suite of the Gateway API, unmodified, against the operator and the gateway of this
// checkout: docs/dev/gateway-conformance.md. It is a module of its own, because the suite needs libraries that no program of
// ours does.
package conformance
