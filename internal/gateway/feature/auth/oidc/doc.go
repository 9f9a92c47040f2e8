// Package oidc logs browsers in at an OpenID Connect provider: the authorization code flow with PKCE. It keeps no state. What
// it must remember is in cookies that only it can read.
//
//	box.go       encrypts what the cookies hold
//	cookies.go   divides it into cookies and puts it together again
//	session.go   what a cookie holds
//	browser.go   tells requests of pages from others, and where a browser may be sent
//	provider.go  reads what a provider publishes about itself
//	client.go    makes a client of a configuration
//	login.go     begins and ends a log-in
//	tokens.go    gets tokens from a provider and checks them
//	refresh.go   renews each session once at a time
//	traffic.go   bounds the requests for tokens
package oidc
