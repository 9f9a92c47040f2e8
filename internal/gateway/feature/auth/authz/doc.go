// Package authz speaks envoy.service.auth.v3 with a Service that decides about requests. It makes the bytes of a question and reads
// those of an answer; it sends nothing. An answer is what another program says, so everything in it is checked:
//
//	question.go  what the Service is asked
//	answer.go    what it answers
//	status.go    whether its call has succeeded
package authz
