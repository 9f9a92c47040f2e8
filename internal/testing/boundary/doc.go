// Package boundary derives from the schema of a CustomResourceDefinition which values
// every property is worth trying with: left out, its default, its bounds, what lies
// just beyond them, lists and maps from empty to full, and so on.
//
// What a schema cannot tell, such as which strings a rule in CEL accepts, comes from a
// Hint. The package is pure and knows no kind.
//
//	boundary.go  walking the schema
//	valid.go     values that are accepted
//	invalid.go   values that are refused
//	place.go     putting a value into an object
package boundary
