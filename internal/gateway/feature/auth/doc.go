// Package auth says how clients authenticate: by API key, password, token, an external Service, or a log-in at a provider. It is pure.
//
//	auth.go       Policy and the five ways
//	compile.go    checking and completing what a rule asks for
//	names.go      which Secret is read
//	oidc.go       log-ins at an OpenID Connect provider
//	read.go       reading a spec with the contents of its Secrets
//	read_oidc.go  reading log-ins
//	setting.go    Setting
package auth
