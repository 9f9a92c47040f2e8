// Package jwks fetches the public keys of token issuers in the background. It keeps the
// last good keys, also when the routes that use them change.
package jwks
