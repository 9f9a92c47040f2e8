package store

import (
	"context"
	"sync/atomic"
	"time"
)

// request is something for the one goroutine that writes.
type request struct {
	// batch is stored, and state runs in the same transaction of the state, if it is set.
	batch *prepared
	state func(*session) error
	// taken is set by who is first: the writer, or the caller who gives up.
	taken atomic.Bool
	done  chan error
}

func (r *request) size() int {
	if r.batch == nil {
		return 0
	}
	return len(r.batch.records)
}

// Commit stores a batch and returns when it is on the disk. An error means that nothing of it is stored, and it may be given
// again.
//
// Commits at the same time share the cost of writing. While the disk is full, or there is other trouble, Commit returns the
// error at once: who calls slows down and tries again. The end of the context is heeded until the batch is being written.
func (s *Store) Commit(ctx context.Context, batch Batch) error {
	p, err := s.prepare(&batch)
	if err != nil {
		return err
	}
	return s.submit(ctx, &request{batch: p})
}

// update changes the state of the store in a transaction, together with the commits of others.
func (s *Store) update(ctx context.Context, f func(*session) error) error {
	return s.submit(ctx, &request{state: f})
}

func (s *Store) submit(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	// Without this a closed store would take a request now and then, because select picks at random.
	select {
	case <-s.closing:
		return &Error{Trouble: Closed, What: "the store was closed"}
	default:
	}
	select {
	case s.requests <- r:
	case <-s.closing:
		return &Error{Trouble: Closed, What: "the store was closed"}
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if !r.taken.CompareAndSwap(false, true) {
			return <-r.done // it is being written: the answer is near, and it is the truth
		}
		return ctx.Err()
	}
}

const (
	// maxGroup is how many requests a group has at most, and groupBytes about how many bytes.
	maxGroup   = 1000
	groupBytes = 2 * mebibyte
	// tendEvery is how often the files are looked after while nobody commits.
	tendEvery = time.Minute
)

// writer is the goroutine that writes. It owns the session.
type writer struct {
	store   *Store
	session *session
	// suspicious asks for a thorough look at the files when they are opened again.
	suspicious bool
	// aside are files that were moved aside since their loss was noted, and salvage is where the last states may still be read.
	aside   map[string]Trouble
	salvage string
	// dropped is when history was last given up because the disk was full.
	dropped time.Time
	// given are the files that went for it and that the state still knows.
	given []string
	// before is how many requests the group before had.
	before int
	// samples are recent payloads, for the next dictionary.
	samples samples
}

func (w *writer) run() {
	s := w.store
	defer close(s.closed)
	defer w.endSession()
	ticker := s.options.Clock.NewTicker(tendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-ticker.C():
			w.tend()
		case first := <-s.requests:
			w.serve(w.gather(first))
		}
	}
}

// gather collects the requests that are written together.
func (w *writer) gather(first *request) []*request {
	s := w.store
	group := []*request{first}
	changes, bytes := first.size(), cost(first)
	timer := s.options.Clock.NewTimer(s.options.BatchWait)
	defer timer.Stop()
	for len(group) < maxGroup && changes < s.options.BatchSize && bytes < groupBytes {
		var next *request
		if len(group) < w.before {
			// As many as before may come again. If not all do, the time ends the waiting.
			select {
			case next = <-s.requests:
			case <-timer.C():
			case <-s.closing:
			}
		} else {
			select {
			case next = <-s.requests:
			default:
			}
		}
		if next == nil {
			break
		}
		group = append(group, next)
		changes += next.size()
		bytes += cost(next)
	}
	w.before = len(group)
	return group
}

func cost(r *request) int64 {
	if r.batch == nil {
		return 0
	}
	return r.batch.cost
}

// serve writes a group and answers everybody in it.
func (w *writer) serve(group []*request) {
	kept := group[:0]
	for _, r := range group {
		if r.taken.CompareAndSwap(false, true) {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return
	}
	err := w.attempt(func() error { return w.session.write(kept) }, groupCost(kept))
	for _, r := range kept {
		r.done <- err
	}
}

func groupCost(group []*request) (sum int64) {
	for _, r := range group {
		sum += cost(r)
	}
	return sum
}
