// Package token checks JSON Web Tokens with the public keys of their issuer. It does not
// fetch keys, and the caller passes the time.
//
//	token.go    checking a token
//	keys.go     the public keys of an issuer
//	claims.go   what a token says
//	require.go  whether a token has a claim that is asked for
package token
