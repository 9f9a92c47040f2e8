// Package token checks JSON Web Tokens with the public keys of their issuer. It fetches
// nothing and knows no time of its own.
package token
