package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/kopia/kopia/snapshot/upload"
)

// Meter shows how far work has come. Its zero value is ready; it may be read at any time, from any goroutine.
type Meter struct {
	files, bytes           atomic.Int64
	totalFiles, totalBytes atomic.Int64
	known                  atomic.Bool
}

// Progress is what a Meter shows.
type Progress struct {
	// Files is how many files are done, Bytes how many bytes of files.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// TotalFiles and TotalBytes are what there is to do, as far as it is known.
	TotalFiles int64 `json:"totalFiles"`
	TotalBytes int64 `json:"totalBytes"`
	// TotalKnown reports whether the totals will not grow any more.
	TotalKnown bool `json:"totalKnown"`
}

// Progress returns how far the work has come.
func (m *Meter) Progress() Progress {
	return Progress{
		Files: m.files.Load(), Bytes: m.bytes.Load(),
		TotalFiles: m.totalFiles.Load(), TotalBytes: m.totalBytes.Load(), TotalKnown: m.known.Load(),
	}
}

// meterOrNone lets callers do without a meter.
func meterOrNone(m *Meter) *Meter {
	if m == nil {
		return &Meter{}
	}
	return m
}

// observer hears from the library what becomes of the files.
type observer struct {
	upload.NullUploadProgress

	meter  *Meter
	cancel func() // ends the upload
	forget func(path string)

	mu         sync.Mutex
	unreadable int64
	examples   []string
	vanished   int64
	fatal      error
}

// HashedBytes is called for bytes that were read.
func (o *observer) HashedBytes(n int64) { o.meter.bytes.Add(n) }

// FinishedFile is called when a file or symbolic link is done.
func (o *observer) FinishedFile(_ string, err error) {
	if err == nil {
		o.meter.files.Add(1)
	}
}

// Error is called for each path that is not in the snapshot. A path that vanished is in order: it is as if the snapshot had
// been made a moment later. What is not an error of the source ends the upload.
func (o *observer) Error(path string, err error, _ bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !isSourceError(err):
		if o.fatal == nil {
			o.fatal = err
		}
		o.cancel()
		return
	case vanished(err):
		o.vanished++
	default:
		o.unreadable++
		if len(o.examples) < maxExamples {
			o.examples = append(o.examples, err.Error())
		}
	}
	o.forget(path)
}

// estimate counts the source beside the work, for the meter. The function that it returns ends that.
func estimate(ctx context.Context, options SnapshotOptions, filter *filter) (stop func()) {
	if options.Meter == nil {
		return func() {}
	}
	source, err := openSource(options.Source, filter)
	if err != nil {
		return func() {} // whoever reads the source says why
	}
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() {
		source.count(ctx, func(files, bytes int64) {
			options.Meter.totalFiles.Store(files)
			options.Meter.totalBytes.Store(bytes)
		})
		options.Meter.known.Store(ctx.Err() == nil)
	})
	return func() {
		cancel()
		counting.Wait()
		_ = source.close()
	}
}
