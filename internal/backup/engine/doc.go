// Package engine keeps backups of folders in an encrypted, deduplicated repository: snapshot, verify, list, restore,
// expire, maintain, delete. It is a thin layer over the library of kopia and knows no Kubernetes.
//
// What the layer adds to the library:
//
//   - An error says what is wrong (Kind): the password, the storage, the source, the data.
//   - A snapshot exists only when everything that it should hold was read. There is no other way to make one, unless the
//     caller allows a partial snapshot, which says so for ever.
//   - What the library does not keep is kept beside the tree of files: extended attributes, ACLs, hard links, named pipes,
//     names that are not UTF-8, times of folders.
//   - A path that another process changes during a backup or a restore leads never out of the source or the target.
//   - Nothing is removed but what the caller named.
//
// The caller sees to it that one process at a time writes to a repository. A killed process leaves no lock behind, and
// what it had not completed is not there.
//
//	location.go      where a repository is
//	storage.go       the storage below the library: time limits, errors, durability, the clock
//	s3.go            objects in a bucket
//	answer.go        what is believed of the server of a bucket
//	repository.go    Create, Open, Close
//	errors.go        the kinds of errors
//	source.go        the tree of files that is read
//	reading.go       what is read of each file
//	filter.go        which paths belong to a snapshot
//	names.go         file names that are no UTF-8
//	attributes.go    what is kept beside the tree of files
//	snapshot.go      Snapshot
//	progress.go      what Snapshot says on the way
//	lost.go          what is missing in the repository, and is read again
//	stream.go        a stream instead of a folder
//	upload.go        what the library writes to, and how it calls a source
//	list.go          List
//	tree.go          the tree of files as it is stored
//	verify.go        Verify
//	verification.go  what is noted of a verification
//	restore.go       Restore
//	target.go        how Restore writes files
//	mark.go          the file in a target that says that a restore has not ended
//	expire.go        Expire
//	maintain.go      Maintain
//	delete.go        Delete
//	manifest.go      the manifest of the source
//	sample.go        which files the manifest tells of
//	compare.go       Compare
//	walk.go          the folder that Compare looks at
//	open.go          opening a path below a folder, and nothing outside
package engine
