package store

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

const (
	mebibyte = 1 << 20

	// Slack is by how much the files may be larger than MaxBytes together for a moment, in bytes: while a group is written, its
	// pages are in the log of the database and in the database itself.
	Slack = 16 * mebibyte

	// MinBytes is the least that MaxBytes may be.
	MinBytes = 32 * mebibyte
)

// Patch applies fields to a body: what was Added or Changed gets New, what was Removed goes. change.Patch is one.
type Patch func(body []byte, fields []change.Field) ([]byte, error)

// Options say where a store is and what it may use. What is zero gets its default.
type Options struct {
	// Dir is the folder. It is made if it is not there, and belongs to the store: one process at a time opens it, and nobody else
	// puts files into it. Required.
	Dir string
	// MaxBytes is how large all files of the folder may be together, in bytes, but for Slack. The oldest changes of the namespace
	// that has the most go first. The last states of objects, the outbox and the values never go: if they alone need more, Commit
	// returns NoSpace. The contents of the last states have half of it at most, shared among namespaces: see held.go. While a file is packed its copy is there too, which has about an eighth of MaxBytes at most. Default 2 GiB, at
	// least MinBytes.
	MaxBytes int64
	// MaxAge is how long a change is kept. A file goes as a whole, when its last change is older. Default 0: as long as there is
	// space. At least a minute.
	MaxAge time.Duration
	// BatchWait is how long a group of commits waits for others, so that they share the cost of a write to disk. It waits only
	// while fewer callers have come than to the group before. Default 20 ms, at most 1 s.
	BatchWait time.Duration
	// BatchSize is with how many changes a group is written at once. A larger Batch is a group of its own. Default 500, at most 10,000.
	BatchSize int
	// SnapshotEvery is after how many changes of an object its whole content is stored beside them, as it is at its first change in
	// each file. Default 20, at most 1,000.
	SnapshotEvery int
	// SnapshotShare is which part of what a namespace has in a file the whole contents may take, in percent, beyond an eighth of that
	// part of a file. When they have it, Object works backwards from what is stored later. Default 50, at most 90.
	SnapshotShare int
	// DefinitionVersions is how many versions of a definition are kept. Default 10, at most 1,000.
	DefinitionVersions int
	// Patch is needed by Object only.
	Patch Patch
	// Clock is the time. Default: the real one.
	Clock clock.WithTicker
	// Logger is told what goes wrong and what is dropped. Default: nobody.
	Logger logr.Logger

	// hasty leaves out waiting for the disk, for tests that do not ask what a crash leaves.
	hasty bool
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, invalid("a store needs a folder")
	}
	number(&o.MaxBytes, 2048*mebibyte)
	number(&o.BatchWait, 20*time.Millisecond)
	number(&o.BatchSize, 500)
	number(&o.SnapshotEvery, 20)
	number(&o.SnapshotShare, 50)
	number(&o.DefinitionVersions, 10)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	switch {
	case o.MaxBytes < MinBytes:
		return o, invalid("MaxBytes is %d, and must be %d at least", o.MaxBytes, MinBytes)
	case o.MaxAge < 0 || (o.MaxAge > 0 && o.MaxAge < time.Minute):
		return o, invalid("MaxAge is %s, and must be 0, or a minute at least", o.MaxAge)
	case o.BatchWait < 0 || o.BatchWait > time.Second:
		return o, invalid("BatchWait is %s, and must be between 0 and 1s", o.BatchWait)
	case o.BatchSize < 1 || o.BatchSize > 10_000:
		return o, invalid("BatchSize is %d, and must be between 1 and 10000", o.BatchSize)
	case o.SnapshotEvery < 1 || o.SnapshotEvery > 1000:
		return o, invalid("SnapshotEvery is %d, and must be between 1 and 1000", o.SnapshotEvery)
	case o.SnapshotShare < 1 || o.SnapshotShare > 90:
		return o, invalid("SnapshotShare is %d, and must be between 1 and 90", o.SnapshotShare)
	case o.DefinitionVersions < 1 || o.DefinitionVersions > 1000:
		return o, invalid("DefinitionVersions is %d, and must be between 1 and 1000", o.DefinitionVersions)
	}
	return o, nil
}

func number[T ~int | ~int64](value *T, standard T) {
	if *value == 0 {
		*value = standard
	}
}

// fileBytes is with how many bytes of several namespaces a file of changes is full, and the next one of the day begins: see isFull.
func (o Options) fileBytes() int64 {
	return min(max(o.MaxBytes/16, 4*mebibyte), 256*mebibyte)
}

// snapshotBytes is how many bytes of a file may be whole contents.
func (o Options) snapshotBytes() int64 {
	return o.fileBytes() * int64(o.SnapshotShare) / 100
}
