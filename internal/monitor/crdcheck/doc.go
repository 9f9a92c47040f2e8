// Package crdcheck says what a changed CustomResourceDefinition breaks: which findings there are between two definitions, and
// what happens to an object that exists when the changed one is applied.
//
// It is pure: no client, no clock, no logger. Objects are evaluated with the packages with which the API server evaluates them. An API
// server lets an invalid value through when a write leaves it as it is (ratcheting, on by default since Kubernetes 1.30), and so
// does this package. What is not let through, though the value did not change:
//
//   - rules of x-kubernetes-validations with oldSelf, and rules that end in an error, such as a missing key;
//   - whatever is wrong with an embedded object's apiVersion, kind and metadata;
//   - the replicas of the subresource scale.
//
// The items of a list of type map are looked at one by one. Every other list is one value: a change of one item makes all of it
// count as changed. Within allOf, anyOf, oneOf and not, nothing is let through by itself, only with the field that has them.
// Duplicates in a list of type set or map are let through as long as the stored object has a duplicate anywhere.
//
//	finding.go      Finding, its severities and its codes
//	compare.go      Compare, and what is compared of a whole definition
//	versions.go     what is compared of a version, its schema aside
//	schema.go       the walk along two schemas
//	constraints.go  values that are allowed: types, enums, bounds, patterns, formats
//	structure.go    what is kept of an object, defaults, and how lists and maps are merged
//	junctors.go     allOf, anyOf, oneOf and not
//	rules.go        x-kubernetes-validations
//	path.go         how a field is named
//	jsontext.go     values in messages, and whether two are the same
//	limits.go       what is refused because it would take too long
//	cost.go         how much work the check of an object is
//	checker.go      Checker, and how it is made of a definition
//	read.go         an object as the API server reads it: pruned, coerced and defaulted
//	validate.go     what the API server says of a write
//	verdict.go      Verdict
//	evaluate.go     how an object is evaluated
//	refused.go      whether the API server accepts the definition at all
package crdcheck
