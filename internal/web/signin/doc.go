// Package signin says who sends a request: by a token that the cluster accepts, or by a cookie that a log-in with such a token has set.
// It keeps neither: what it remembers of a token is a keyed hash, and the cookie holds the token, sealed.
//
//	authenticate.go  whose token it is
//	session.go       the cookie of a browser
//	seal.go          what clients carry and cannot read
package signin
