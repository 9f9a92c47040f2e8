package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func folderSize(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// fills is called by a test that fills a store. With the race detector, SQLite takes ten times as long for that, and they are run
// without it: see hack/make/test.mk. Several run at a time.
func fills(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("it fills a store, which takes too long with the race detector")
	}
	t.Parallel()
}

// noise is JSON that does not get smaller.
func noise(random *rand.Rand, bytes int) json.RawMessage {
	text := make([]byte, 0, bytes+16)
	text = append(text, '"')
	var bits uint64
	for i := range bytes {
		if i%10 == 0 {
			bits = random.Uint64()
		}
		text = append(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[bits&63])
		bits >>= 6
	}
	return append(text, '"')
}

// bulk is a batch of large changes.
func bulk(random *rand.Rand, rv *int, at time.Time, changes, objects, bytes int) Batch {
	b := Batch{Kind: widgets}
	for range changes {
		*rv++
		record, state := edit(widgets, random.IntN(objects), *rv, nil, at)
		record.Type = change.Updated
		record.Fields = []change.Field{{Path: ".x", Op: change.Changed, Old: noise(random, bytes), New: noise(random, bytes)}}
		state.Body = noise(random, bytes)
		b.Records, b.Put = append(b.Records, record), append(b.Put, state)
	}
	b.Checkpoint = fmt.Sprint(*rv)
	return b
}

func TestTheFilesNeverHaveMoreThanMaxBytes(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(7, 8))
	var peak atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		often := time.NewTicker(time.Millisecond)
		defer often.Stop()
		for {
			select {
			case <-stop:
				return
			case <-often.C:
				peak.Store(max(peak.Load(), folderSize(s.dir)))
			}
		}
	}()
	rv := 0
	written := map[string][]string{} // the versions, by namespace
	for i := range 40 {
		changes, bytes := 100, 5000
		if i%10 == 0 {
			changes, bytes = 900, 500
		}
		b := bulk(random, &rv, clock.Step(10*time.Minute), changes, 800, bytes)
		for _, r := range b.Records {
			written[r.Namespace] = append(written[r.Namespace], r.ResourceVersion)
		}
		commit(t, s, b)
		if got := folderSize(s.dir); got > MinBytes+Slack/4 {
			t.Fatalf("after a commit the files have %d bytes", got)
		}
	}
	close(stop)
	<-stopped
	if peak.Load() > MinBytes+Slack {
		t.Errorf("the files had %d bytes, and the most is %d", peak.Load(), MinBytes+Slack)
	}
	stats := s.Stats()
	t.Logf("at most %.1f MiB of %d, %d files left of %d changes", float64(peak.Load())/mebibyte, MinBytes/mebibyte, stats.Files, rv)
	if stats.Dropped == 0 || stats.Dropped+stats.Changes != int64(rv) {
		t.Errorf("%d changes are there and %d were dropped, of %d", stats.Changes, stats.Dropped, rv)
	}
	if stats.Bytes > MinBytes+Slack/4 || stats.Bytes < MinBytes/2 {
		t.Errorf("it says %d bytes", stats.Bytes)
	}
	for namespace, versions := range written {
		records := all(t, s, Query{Namespace: namespace})
		for i, want := range versions[len(versions)-len(records):] {
			if got := records[i].ResourceVersion; got != want {
				t.Fatalf("record %d of %d of %s is %s, want %s: the newest stay", i, len(records), namespace, got, want)
			}
		}
	}
	if losses, err := s.Losses(t.Context()); err != nil || len(losses) > 0 {
		t.Errorf("losses: %v, %v", losses, err)
	}
}

func TestWhatIsTooOldGoes(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxAge: 72 * time.Hour})
	h := newHistory()
	for range 20 {
		commit(t, s, h.batch(clock.Step(12*time.Hour), 4, 3))
	}
	records := all(t, s, Query{})
	// A file goes when its last change is too old, so there may be one day more.
	if oldest := clock.Now().Sub(records[0].Time); oldest < 72*time.Hour || oldest > 96*time.Hour {
		t.Errorf("the oldest change is %s old", oldest)
	}
	same(t, "what is left", records, h.records[len(h.records)-len(records):])
	names, err := filepath.Glob(filepath.Join(s.dir, "changes-*.db"))
	if err != nil || int64(len(names)) != s.Stats().Files {
		t.Errorf("files %v, and it knows %d", names, s.Stats().Files)
	}
}

func TestTheDayNeverGoesBack(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock})
	h := newHistory()
	commit(t, s, h.batch(clock.Now(), 4, 3))
	clock.Step(-48 * time.Hour)
	commit(t, s, h.batch(clock.Now(), 4, 3))
	s = reopen(t, s)
	commit(t, s, h.batch(clock.Now(), 4, 3))
	same(t, "records", all(t, s, Query{}), h.records)
	if got := s.Stats().Files; got != 1 {
		t.Errorf("%d files", got)
	}
	if got := all(t, s, Query{Until: clock.Now().Add(time.Hour)}); len(got) != 8 {
		t.Errorf("%d changes before the clock was put back, want 8", len(got))
	}
}

func TestStatesAloneNeedTooMuch(t *testing.T) {
	fills(t)
	s := open(t, Options{MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(9, 1))
	var drop []types.UID
	var err error
	for n := 0; err == nil; n++ {
		b := Batch{Kind: widgets}
		for i := range 20 {
			uid := uidOf(n*20 + i)
			drop = append(drop, uid)
			b.Put = append(b.Put, change.State{UID: uid, Reason: string(noise(random, 40_000))}) // contents alone have no more than half
		}
		err = s.Commit(t.Context(), b)
		if n > 200 {
			t.Fatal("everything fits")
		}
	}
	if !Is(err, NoSpace) {
		t.Fatalf("Commit: %v", err)
	}
	if got := folderSize(s.dir); got > MinBytes+Slack/4 {
		t.Errorf("the files have %d bytes", got)
	}
	for len(drop) > 0 {
		n := min(len(drop), 200)
		commit(t, s, Batch{Kind: widgets, Drop: drop[:n]})
		drop = drop[n:]
	}
	h := newHistory()
	for range 40 {
		commit(t, s, h.batch(s.options.Clock.Now(), 4, 3))
	}
	same(t, "records", all(t, s, Query{}), h.records)
}
