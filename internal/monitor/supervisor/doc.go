// Package supervisor decides which kinds of objects are watched, watches them, and says how well they are covered.
//
// The CustomResourceDefinitions say which kinds there are. They are watched themselves, so a kind begins and ends with its
// definition, and nothing polls. One goroutine compares the kinds that are wanted with those that are followed, and starts
// and stops followers. It waits for nobody. Each kind has a follower of its own, which one goroutine runs: it lists the
// objects or goes on from a stored resource version, watches, and tells a Sink. So a kind in trouble harms no other.
//
// A follower is not client-go's Reflector, for these reasons (v0.37, tools/cache/reflector.go). The Reflector always lists
// first: it cannot begin with a stored resource version. It keeps a whole list in memory, decoded, before it gives it away.
// It logs an error of its store and goes on, so a store that refuses an object loses it. It lists with a context of its own,
// so a list that hangs does not end with the follower. And it tells the store neither why it lists nor whether a list is the
// first one, so a gap cannot be recorded. A follower reads the same protocol: JSON values of a stream, one at a time, which
// it passes on as bytes. It asks for pages and not for a streamed list (sendInitialEvents), because a page can be asked for
// again in a smaller size, and because the memory that a list needs is that of one object here.
//
// What is reported to a Sink, whatever the API server does, as long as the Sink keeps what it takes: at the end its objects are
// those of the API server; no deletion is missed; and a change that is missed lies in a time that was reported as a gap.
// A follower in doubt (resource versions out of order, garbage that comes again and again, history that is forgotten) lists
// all objects and tells why.
//
// The API server forgets the history of a kind when its definition is edited: it makes its cache anew, and a watch that goes
// on from before is answered with 410. So an edit of a definition often leads to a list of that kind.
//
//	supervisor.go   Supervisor: options, the goroutine that decides, and what it starts and ends
//	plan.go         what is wanted, and what is to be done, as pure functions
//	definition.go   what is kept of a definition, and the version that is followed
//	status.go       whether the objects of a definition have a status
//	definitions.go  the definitions that are known
//	builtin.go      kinds that Kubernetes brings
//	sink.go         Sink and Journal: what is reported
//	follower.go     the life of a follower
//	mail.go         what a follower is told from outside
//	list.go         a list, page by page
//	watch.go        a watch, frame by frame
//	failure.go      what follows from an error, and how long to wait
//	coverage.go     how each kind is covered
//	gate.go         limits of what all followers ask for
//	guard.go        limits of how long one request waits
//	client.go       requests, and the limit of what the network holds for a watch
//	stream.go       JSON values out of a stream
//	page.go         the items out of a page of a list
//	object.go       the identity of an object, also of one that is too large
package supervisor
