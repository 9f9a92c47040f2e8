// Package store keeps responses of backends in memory, as RFC 9111 has it for a shared cache, and gives them to requests that
// would have got the same.
//
// A response is only given to a request whose fields are those of the request that brought it. Of a few fields, with which every
// browser differs, the backend has to say by Vary that they matter. So what a client sends in any other field, such as a cookie,
// its credentials or X-Original-Url, does not reach another client by way of the cache. What it sends in one of those few does,
// if the backend looks at it and does not say so.
//
//	request.go    what is asked, and which requests are the same
//	control.go    reads Cache-Control, and other fields about time
//	rules.go      decides what may be kept, and what may be given to whom
//	lookup.go     looks for a response, gives it, and has it confirmed
//	recording.go  keeps a response while it comes
//	entry.go      a response, and what it costs
//	store.go      has the responses, by page
//	room.go       keeps them within the room that there is, and shares it out
//
// A page is what a Service has at a host and a target. It may have several responses, for requests with different fields.
package store
