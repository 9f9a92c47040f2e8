package supervisor

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// State is how a kind is covered. Only Live is covered.
type State string

const (
	// Pending is a kind that cannot be followed yet: its definition is not established, or it is not served, or it waits
	// for its turn.
	Pending State = "Pending"
	// Listing is a kind of which the objects are listed: at first, or after a gap.
	Listing State = "Listing"
	// Live is a kind of which every change is seen as it happens.
	Live State = "Live"
	// Behind is a kind that was live. Changes are not lost but come later: the API server is silent, or the store does
	// not keep up.
	Behind State = "Behind"
	// Refused is a kind that may not be read.
	Refused State = "Refused"
	// Failing is a kind that the API server fails to give, or gives in a form that nobody understands.
	Failing State = "Failing"
	// Excluded is a kind that is not followed because nobody wants it, or because there are too many.
	Excluded State = "Excluded"
	// Stopping is a kind that is about to be followed no more.
	Stopping State = "Stopping"
)

// Counts are of one kind, since the monitor follows it.
type Counts struct {
	// Events and Bookmarks were delivered by watches, Listed are objects of lists.
	Events, Bookmarks, Listed int64
	// Lists and Watches were begun.
	Lists, Watches int64
	// Gaps were reported to the sink, as the reason of a list or as lost.
	Gaps int64
	// Duplicates were left out.
	Duplicates int64
	// Oversized are objects with more bytes than the limit.
	Oversized int64
	// Bytes were read.
	Bytes int64
}

// KindCoverage is how one kind is covered.
type KindCoverage struct {
	// Kind is the kind, at the version that is followed.
	Kind change.Kind
	// State is how it is covered, since Since. Reason says why it is not Live, in one line of at most 512 bytes.
	State  State
	Since  time.Time
	Reason string
	// LastSeen is when the API server last said something about the kind. A quiet kind is seen about once in a minute.
	// It is zero when nothing was ever seen.
	LastSeen time.Time
	// ResourceVersion is up to where everything was reported to the sink.
	ResourceVersion string
	// Lag is how long the oldest change that was sent, and that the sink has not taken, may have waited.
	Lag time.Duration
	// Counts are what has been done.
	Counts Counts
}

// Coverage says what is seen, and what is not.
type Coverage struct {
	// Time is now.
	Time time.Time
	// Definitions is how the definitions themselves are covered. While they are not Live, new kinds may be unknown.
	Definitions KindCoverage
	// Complete reports whether the definitions have been read: Kinds are all there are.
	Complete bool
	// Kinds are sorted by group and resource.
	Kinds []KindCoverage
}

const (
	// maxReason bounds what others have written.
	maxReason = 512
	// behindAfter is the lag from which a kind counts as behind.
	behindAfter = 5 * time.Second
	// drainedAfter is how long a read must wait for it to be known that there was nothing to read.
	drainedAfter = time.Millisecond
)

// status is how one kind is covered, as its follower writes it down. It is safe for concurrent use.
type status struct {
	clock clock.PassiveClock

	mutex sync.Mutex
	now   KindCoverage
	// reading is since when a read waits, zero when none does. drained is when the stream was last known to be empty.
	reading, drained time.Time
}

func newStatus(clock clock.PassiveClock, kind change.Kind, state State, reason string) *status {
	s := &status{clock: clock}
	s.now.Kind = kind
	s.set(state, reason)
	return s
}

// kind returns the kind. It never changes.
func (s *status) kind() change.Kind { return s.now.Kind }

// set writes a state down, and returns the one before.
func (s *status) set(state State, reason string) State {
	reason = text.Cut(text.Printable(redact.Clean(reason)), maxReason)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.now.State
	if before != state {
		s.now.Since = s.clock.Now()
	}
	s.now.State, s.now.Reason = state, reason
	return before
}

// count changes the counts.
func (s *status) count(change func(*Counts)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.now.Counts)
}

// markSeen notes that the API server sent something.
func (s *status) markSeen() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now.LastSeen = s.clock.Now()
	s.drained = s.now.LastSeen
}

// reached writes down up to where everything was reported to the sink.
func (s *status) reached(resourceVersion string, change func(*Counts)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now.ResourceVersion = resourceVersion
	change(&s.now.Counts)
}

// reads writes down that a read begins, and has that it has ended with so many bytes.
func (s *status) reads() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reading = s.clock.Now()
}

func (s *status) has(n int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.clock.Now()
	if now.Sub(s.reading) >= drainedAfter {
		s.drained = now
	}
	s.reading = time.Time{}
	s.now.Counts.Bytes += int64(n)
	if n > 0 {
		s.now.LastSeen = now
	}
}

// lastDrained returns when the stream was last known to be empty.
func (s *status) lastDrained() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.drained
}

// quiet returns for how long a read has waited, counted from a time at the earliest.
func (s *status) quiet(from time.Time) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.reading.IsZero() {
		return 0
	}
	if s.reading.After(from) {
		from = s.reading
	}
	return s.clock.Since(from)
}

// is reports whether that is the state.
func (s *status) is(state State) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now.State == state
}

// snapshot returns how the kind is covered now.
func (s *status) snapshot() KindCoverage {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	seen, now := s.now, s.clock.Now()
	if seen.State != Live && seen.State != Listing {
		return seen
	}
	waits := !s.reading.IsZero() && now.Sub(s.reading) >= drainedAfter
	if !waits && !s.drained.IsZero() {
		seen.Lag = now.Sub(s.drained)
	}
	if seen.State == Live && seen.Lag > behindAfter {
		seen.State, seen.Since, seen.Reason = Behind, s.drained, "the store does not keep up"
	}
	return seen
}

// board holds the status of all kinds. It is safe for concurrent use.
type board struct {
	mutex    sync.Mutex
	complete bool
	kinds    []*status
	byKind   map[schema.GroupResource]*status
}

func (b *board) publish(kinds []*status, complete bool) {
	byKind := make(map[schema.GroupResource]*status, len(kinds))
	for _, one := range kinds {
		byKind[one.kind().GroupResource()] = one
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.kinds, b.byKind, b.complete = kinds, byKind, complete
}

func (b *board) find(kind schema.GroupResource) *status {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.byKind[kind]
}

func (b *board) read() ([]*status, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.kinds, b.complete
}

// Coverage returns what is seen now. It costs some microseconds for each kind, asks nobody, and may be called at any time.
func (s *Supervisor) Coverage() Coverage {
	kinds, complete := s.board.read()
	all := Coverage{
		Time: s.options.Clock.Now(), Definitions: s.definitionsStatus.snapshot(), Complete: complete,
		Kinds: make([]KindCoverage, 0, len(kinds)),
	}
	for _, one := range kinds {
		all.Kinds = append(all.Kinds, s.withTrouble(one.snapshot()))
	}
	slices.SortFunc(all.Kinds, func(a, b KindCoverage) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Resource, b.Kind.Resource))
	})
	return all
}

// CoverageOf returns how one kind is covered now, and whether the supervisor knows it. It costs the same however many kinds there are.
func (s *Supervisor) CoverageOf(kind schema.GroupResource) (KindCoverage, bool) {
	one := s.board.find(kind)
	if one == nil {
		return KindCoverage{}, false
	}
	return s.withTrouble(one.snapshot()), true
}

// withTrouble says of a kind that is read that nothing of it is stored. A failure that passes within seconds is none.
func (s *Supervisor) withTrouble(seen KindCoverage) KindCoverage {
	if s.options.Trouble == nil {
		return seen
	}
	reason, since := s.options.Trouble()
	return troubled(seen, s.options.Clock.Now(), reason, since)
}

func troubled(seen KindCoverage, now time.Time, reason string, since time.Time) KindCoverage {
	if reason == "" || now.Sub(since) < behindAfter || seen.State != Live && seen.State != Behind && seen.State != Listing {
		return seen
	}
	seen.State, seen.Since, seen.Reason = Behind, since, reason
	seen.Lag = max(seen.Lag, now.Sub(since))
	return seen
}
