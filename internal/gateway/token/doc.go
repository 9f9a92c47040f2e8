// Package token checks JSON Web Tokens with the public keys of their issuer. It does not
// fetch keys, and the caller passes the time.
package token
