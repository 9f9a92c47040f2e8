// Package recorder writes down what the supervisor sees: it turns what happens to objects into records and last states, and puts
// them into the store.
//
// It is the Sink of the supervisor. For each kind there is a journal. It hides secrets first of all, compares an object with its
// last known state, which is read from the store and not held in memory, and says what changed (package change), and how the
// object does now (package health).
//
// # What is promised
//
// What belongs to one event is one unit of the store: the records, the state, the checkpoint, and what the observer added.
// Events of a kind are committed in their order, several at a time while the store is busy. So a crash at any moment leaves the
// store as it was after some event, and the API server sends the ones after it again. An event that was stored before changes
// nothing.
//
// Nothing is dropped. What waits for the store has a bound in each journal and in all together. When it is reached, the calls of
// the journal block, and with them the watch. A store that fails is tried again until it works.
//
// A list after a gap is compared with the stored states. What is found that way says so, and since when: the time of such a
// change is known as a range only. A gap is a record of its kind.
//
// # Files
//
//	recorder.go    Recorder, its options and its end
//	sink.go        Known, Open and Gone, and the journals
//	journal.go     an event
//	settle.go      what nobody wrote, and who wrote the rest
//	list.go        a list, and gaps
//	state.go       the state before, and the state after
//	pipe.go        what waits for the store
//	part.go        what is stored together
//	commit.go      how it gets there, and what happens when the store fails
//	loss.go        what the store has lost
//	observer.go    Observer, which adds to what is stored
//	visit.go       Look, Add and Stored, for an Observer that acts by itself
//	live.go        Subscribe, for who wants to see records as they come
//	due.go         when time alone changes how objects do
//	health.go      how objects do, and what time alone changes about it
//	definition.go  definitions, their versions, and what a change of them breaks
//	check.go       the check of all objects after a change of their definition
//	figures.go     Figures, for metrics
//	plant_off.go   no loss on purpose, in every build but one
//	plant_on.go    a loss on purpose, in the build of one test
package recorder
