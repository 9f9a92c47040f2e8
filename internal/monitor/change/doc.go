// Package change turns what a watch says about an object into what people ask for: which field changed, from what to what, and
// who most likely did it.
//
// It is pure: no client, no clock, no logger. Secrets are taken out first, before anything is hashed, queued or stored. What
// changes all the time and means nothing (noise) is folded and counted.
//
// Reduce makes a State of the JSON of an object, and Records says what follows from the state before and the one after:
//
//	after, err := change.Reduce(raw, kind, schema, policy)
//	records, folded := change.Records(before, &after, change.Context{Kind: kind, Schema: schema, Time: clock.Now()})
//
// The state after is stored in any case; folded is kept until the next record of the object.
//
// # Limits
//
// An object over MaxBytes, MaxDepth or MaxValues is not read, but for its metadata. A comparison has at most MaxFields fields. A value
// has at most MaxFieldValue bytes. All work grows with the size of what comes in, and no faster.
//
// # Files
//
//	record.go         what a change is, as every other part of the monitor sees it
//	follow.go         which records follow from two states: Records
//	reduce.go         the state of an object: Reduce
//	redact.go         the walk over an object that hides secrets
//	place.go          where in an object a value is
//	managers.go       the same walk over managedFields
//	noise.go          what is noise, and how changes of it are counted
//	times.go          since when conditions are so, beside the state, and the object as it is judged: State.Object
//	policy.go         what is configured: further secrets, noise, the key of the hashes
//	rules.go          paths that were configured, as a tree
//	schema.go         what the schema of a definition says about lists and secrets
//	shape.go          how items of a list are told apart, by schema or by what they look like; canonical order
//	compare.go        the fields in which two states differ
//	align.go          which items of two lists are the same
//	patch.go          the state after a change from the one before and the fields: Patch
//	path.go           the paths of fields
//	attribute.go      who made a change, by managedFields: Attribute
//	written.go        what nobody wrote, because the definition has changed: Written
//	node.go           values of JSON
//	decode.go         reading JSON strictly and within bounds
//	decode_escape.go  escapes in strings of JSON
//	encode.go         writing JSON in one way only
//	find.go           the metadata of an object that cannot be read
//	tenure.go         whether an object belongs to a namespace as it is now, or to an earlier one of the same name
package change
