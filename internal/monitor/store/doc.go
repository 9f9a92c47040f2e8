// Package store keeps what the monitor has seen: the last state of every object, and the history of all changes, on disk, in
// SQLite, in one folder that one process has open.
//
// # What is where
//
// The file state.db has what is known now: kinds with their checkpoints, the last states, messages to send, values, versions of
// definitions, losses. The files changes-YYYY-MM-DD.db, changes-YYYY-MM-DD.1.db and so on have the changes of a day in UTC, or of
// a part of it. When history is too old, or the disk is full, the oldest file goes as a whole. When MaxBytes is reached, the oldest
// changes of the namespace that has the most are taken out of their file.
//
// # What is promised
//
// When Commit returns nil, everything in its batch is on the disk. After a crash at any moment all of a batch is there, or
// nothing, and all batches that were acknowledged are there. So a checkpoint is never ahead of its records, and no record is
// there twice.
//
// SQLite makes a transaction atomic in one file only, and a batch concerns two. So the changes are written first, and then the
// state, which says up to which number the changes are valid. What lies behind that number is not seen, and removed when the
// store is opened.
//
// A snapshot of the volume at one moment can be opened like the folder after a crash. Files that are copied one by one while the
// store is written to may not fit together. The store opens all the same: what does not fit is a Loss.
//
// # When something is wrong
//
// Every error is an Error that says what kind of trouble there is. While there is no space nothing is dropped but the oldest
// history, and a later Commit works as soon as there is space. A damaged file is moved aside under a name with .corrupt-<n>, of
// which three are kept. What can be read of damaged last states goes into a new file. A file that is deleted while it is open
// is put back. What is lost stays in the list of Losses until a batch tells of it.
//
// # Files
//
//	options.go    Options
//	store.go      Open, Close, Stats
//	batch.go      Batch, and how it is encoded before it is written
//	commit.go     Commit, and the one goroutine that writes
//	write.go      how a group of batches is written
//	session.go    the files that are open for writing, and how they are made to agree
//	reconcile.go  which files there are, which are missing, and what can be read of a damaged state
//	recover.go    what is done about errors
//	room.go       the next file, and the end of the oldest
//	usage.go      what each namespace has in the files
//	thin.go       taking out the oldest changes of the namespace that has the most
//	pack.go       a file becomes smaller by what was taken out
//	intern.go     numbers for what repeats
//	states.go     kinds, checkpoints, marks and last states
//	outbox.go     messages, values, definitions
//	query.go      Changes: which changes there are
//	plan.go       how a query reads a file
//	share.go      which of the changes may be seen
//	object.go     Object, as it was at a time
//	count.go      Rate
//	loss.go       Losses
//	readers.go    the files that are open for reading
//	errors.go     Error
//	codec.go      the bytes of a change
//	values.go     the values of a row's columns
//	compress.go   compression with dictionaries
//	schema.go     the tables
//	database.go   a connection to SQLite
//	layout.go     the names of the files
//	held.go       how much the last states of a namespace may hold
package store
