// Package jwks fetches the public keys of token issuers in the background (package
// published).
//
//	jwks.go  the registry, and how a key set is fetched
package jwks
