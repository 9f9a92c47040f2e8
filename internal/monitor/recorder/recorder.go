package recorder

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// Options are what a recorder needs. Store, Policy, Clock and Log must be set.
type Options struct {
	// Store keeps everything. It is open, and closed by who opened it, after Close of the recorder.
	Store *store.Store
	// Policy says what is a secret and what is noise.
	Policy *change.Policy
	// Observer adds to what is stored, such as alarms. Nil: nobody does.
	Observer Observer
	// Profiles say how objects of known kinds do. Nil: those that Slipway brings.
	Profiles *health.Profiles
	// MaxWaiting is how many bytes wait for the store at most, all kinds together. Default 32 MiB. An object counts three times
	// its size as JSON, for what is made of it.
	MaxWaiting int64
	// CommitInterval is how much time lies between the commits of a kind at least, for changes to gather. Default 0: none. A change that
	// comes after a pause is committed at once, and so are many.
	CommitInterval time.Duration
	// ChecksPerSecond is how many objects are checked in a second after their definition has changed. Default 1,000.
	ChecksPerSecond int
	// Committed is told of each commit: how long it took, and how many events it had. It must not block. Nil: nobody is.
	Committed func(took time.Duration, events int)
	// Clock is the time, and Log takes lines.
	Clock supervisor.Clock
	Log   *slog.Logger
}

const (
	defaultWaiting = 32 << 20
	defaultChecks  = 1000
	// tick is how often checkpoints of quiet kinds are stored.
	tick = 5 * time.Second
	// rememberedStates and rememberedBytes bound the states that are held in memory: those of objects that changed last, when
	// they are not large.
	rememberedStates = 1024
	rememberedBytes  = 8 << 10
)

// Recorder is a supervisor.Sink. Make it with New, run it with Run, and end it with Close.
type Recorder struct {
	options Options
	store   *store.Store
	clock   clock.WithTicker
	log     *slog.Logger
	// work is the context of what has to be finished once it was begun. stop ends it.
	work context.Context
	stop context.CancelFunc
	// group are the goroutines that commit.
	group   sync.WaitGroup
	waiting *semaphore.Weighted
	// recent holds the states of objects that changed last, by objectKey.
	recent  *lru.Cache
	trouble trouble
	live    live
	counts  counts
	due     dueList
	checks  checks

	// gate is held for reading by each commit, and for writing while checkpoints are taken back. epoch counts how often that was.
	gate  sync.RWMutex
	epoch atomic.Int64

	mutex    sync.Mutex
	journals map[schema.GroupResource]*journal
	// stored are the kinds that the store knew at the start.
	stored map[schema.GroupResource]store.KindState
}

// New makes a recorder. The values of the context are used, its end is not: Close ends the recorder. An error says which option
// is missing.
func New(ctx context.Context, options Options) (*Recorder, error) {
	if options.Store == nil || options.Policy == nil || options.Clock == nil || options.Log == nil {
		return nil, errors.New("a recorder needs a store, a policy, a clock and a log")
	}
	if options.MaxWaiting <= 0 {
		options.MaxWaiting = defaultWaiting
	}
	if options.ChecksPerSecond <= 0 {
		options.ChecksPerSecond = defaultChecks
	}
	if options.Profiles == nil {
		options.Profiles = health.Shipped()
	}
	r := &Recorder{
		options: options, store: options.Store, clock: options.Clock, log: options.Log,
		waiting: semaphore.NewWeighted(options.MaxWaiting), recent: lru.New(rememberedStates),
		journals: map[schema.GroupResource]*journal{}, stored: map[schema.GroupResource]store.KindState{},
	}
	r.work, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.trouble.clock, r.trouble.log = options.Clock, options.Log
	r.due.woken = make(chan struct{}, 1)
	r.checks.woken = make(chan struct{}, 1)
	return r, nil
}

// Run does what is to be done beside the events, until the context ends: it stores checkpoints of quiet kinds, tells of what the
// store has lost, follows time, and checks objects after a change of their definition. Start it before the supervisor.
func (r *Recorder) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { r.followTime(ctx) })
	group.Go(func() { r.runChecks(ctx) })
	group.Go(func() { r.followLosses(ctx) })
	ticker := r.clock.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			for _, j := range r.all() {
				j.pipe.kick(true)
			}
		}
	}
}

// Close stores what waits, until the context ends, and ends the recorder. No journal may be called any more. An error means that
// something waits still: the API server sends it again after the next start.
func (r *Recorder) Close(ctx context.Context) error {
	var err error
	for _, j := range r.all() {
		if failed := j.pipe.drain(ctx); failed != nil {
			err = failed
			break
		}
	}
	r.stop()
	r.group.Wait()
	r.live.end()
	return err
}

// all returns the journals.
func (r *Recorder) all() []*journal {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all := make([]*journal, 0, len(r.journals))
	for _, j := range r.journals {
		all = append(all, j)
	}
	return all
}
