// Package server is the monitor's HTTP API, and serves its page: docs/monitor-api.md says what each endpoint returns, and what
// protects it.
//
// What is promised: an answer has nothing of a change, an object or a gap of a kind that the user may not list, in its namespace
// or everywhere, and what may not be seen is refused like what does not exist. Rights are asked for before the history is. When
// the API server does not answer, nothing is shown.
//
// Who signs in, what may be listed, which requests are let in and how files are served is in internal/web. This package says what
// the monitor answers.
//
//	options.go      Options, and what the server reads
//	server.go       New, HTTPServer, and which endpoints there are
//	starting.go     what is answered before the history is open
//	grants.go       rights as the history asks for them
//	params.go       the parameters of requests
//	view.go         how old an answer is
//	failure.go      what a user is told of an error
//	list.go         kinds and coverage
//	changes.go      changes and history
//	gaps.go         gaps and rate
//	object.go       an object, now or at a time
//	health.go       how objects do
//	index.go        what is kept for that
//	definitions.go  versions of definitions and what they change
//	rules.go        rules and alarms
//	stream.go       changes as they come
package server
