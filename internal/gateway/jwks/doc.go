// Package jwks fetches the public keys of issuers in the background and keeps the last
// good ones, whatever happens to the routes that use them.
package jwks
