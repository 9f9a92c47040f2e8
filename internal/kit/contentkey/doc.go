// Package contentkey keys the hashes of content that must not be guessed: whoever reads a
// hash and not the key cannot try a value out. An installation has one key, in a Secret in
// the operator's own namespace. It is made when it is needed for the first time, and never
// overwritten. Hashes of different namespaces and objects have keys that are derived from
// it, so that equal content in two places does not look equal.
package contentkey
