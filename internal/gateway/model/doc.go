// Package model has the names of things that the rooms of the gateway share: what a rule asks of
// a request, the Services that it names, and why something cannot be used. It is plain data. It
// imports no API of Kubernetes and no other room but fieldname.
//
//	backend.go           Service, Backend and the settings of one: where requests go
//	backend_settings.go  settings of the backends of some rules
//	edit.go              what a rule changes: rewrite, header fields, redirect, an own answer
//	problem.go           Fault and Problem: why something is not served as written
//	ref.go               references to Services
//	timeouts.go          how long the parts of an exchange may take
//	retries.go           how often and why a request is sent again
//	tls.go               TLS to backends
//	tls_keys.go          certificates with keys, and how long a key may be
//	transport.go         how far connections are read
package model
