package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// interleaved is a batch in which namespaces change something small in turn, and the first one more often. It counts what each writes.
func interleaved(random *rand.Rand, rv *int, written []int, first float64, at time.Time, changes int) Batch {
	b := Batch{Kind: widgets}
	for range changes {
		*rv++
		n := 0
		if random.Float64() > first {
			n = 1 + random.IntN(len(written)-1)
		}
		written[n]++
		record, state := edit(widgets, n*1000+100+random.IntN(20), *rv, nil, at)
		record.Namespace = fmt.Sprintf("ns-%02d", n)
		state.Namespace = record.Namespace
		record.Type = change.Updated
		record.Fields = []change.Field{{Path: ".x", Op: change.Changed, Old: noise(random, 450), New: noise(random, 450)}}
		b.Records, b.Put = append(b.Records, record), append(b.Put, state)
	}
	b.Checkpoint = fmt.Sprint(*rv)
	return b
}

// Where namespaces write small changes in turn, each page has some of all of them. Taking out those of one frees few pages by itself,
// and still no more goes than there must.
func TestSmallChangesOfManyNamespacesMakeRoomForEachOther(t *testing.T) {
	fills(t)
	for namespaces, first := range map[int]float64{20: 0.4} {
		t.Run(fmt.Sprint(namespaces), func(t *testing.T) {
			clock := newClock()
			s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
			random := rand.New(rand.NewPCG(43, uint64(namespaces)))
			rv, quiet, written := 0, 0, make([]int, namespaces)
			var worst int64
			for i := range 60 {
				if i%10 == 0 {
					commit(t, s, ofNamespace(random, &rv, "quiet", clock.Step(time.Second), 5, 300))
					quiet += 5
				}
				before := s.Stats()
				commit(t, s, interleaved(random, &rv, written, first, clock.Step(time.Second), 900))
				after := s.Stats()
				gone := after.Dropped - before.Dropped
				worst = max(worst, gone)
				if bytes := gone * (before.Bytes - before.StateBytes) / max(before.Changes, 1); bytes > MinBytes/looseOfAll+4*mebibyte {
					t.Errorf("commit %d removed %d changes of %d, about %d bytes", i, gone, before.Changes, bytes)
				}
				if got := folderSize(s.dir); got > MinBytes+Slack/4 {
					t.Fatalf("after %d commits the files have %d bytes", i, got)
				}
			}
			stats := s.Stats()
			t.Logf("of %d changes %d are left, in %d files of %d bytes; one commit removed %d", rv, stats.Changes, stats.Files, stats.Bytes, worst)
			if stats.Thinned == 0 || stats.Changes < int64(rv)/3 {
				t.Errorf("of %d changes %d are left, %d were taken out", rv, stats.Changes, stats.Thinned)
			}
			if got := len(all(t, s, Query{Namespace: "quiet"})); got != quiet {
				t.Errorf("of %d changes of the quiet namespace %d are left", quiet, got)
			}
			checkShares(t, s, written, clock.Now())
			again := reopen(t, s)
			if got := again.Stats().Changes; got != stats.Changes {
				t.Errorf("after a restart it says %d changes, want %d", got, stats.Changes)
			}
			if losses, err := again.Losses(t.Context()); err != nil || len(losses) > 0 {
				t.Errorf("losses: %v, %v", losses, err)
			}
		})
	}
}

// checkShares expects that every namespace has what it wrote, or its equal share but for a third, and its newest changes.
func checkShares(t *testing.T, s *Store, written []int, now time.Time) {
	t.Helper()
	share := int(s.Stats().Changes) / len(written)
	for n, wrote := range written {
		name := fmt.Sprintf("ns-%02d", n)
		records := all(t, s, Query{Namespace: name})
		if len(records) < min(wrote, share)*2/3 {
			t.Errorf("of %d changes %s has %d, and an equal share is %d", wrote, name, len(records), share)
		}
		if len(records) == 0 || now.Sub(records[len(records)-1].Time) > time.Minute {
			t.Errorf("the newest changes of %s are not there", name)
		}
	}
}

// A file does not grow to all there is room for because one namespace writes alone.
func TestAFileOfOneNamespaceIsBounded(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(43, 1))
	rv := 0
	for range 40 {
		commit(t, s, ofNamespace(random, &rv, "greedy", clock.Step(time.Second), 2, 450_000))
		for _, file := range s.days() {
			if limit := 4*s.options.fileBytes() + 4*mebibyte; file.bytes > limit {
				t.Fatalf("%s has %d bytes, more than %d", file.name, file.bytes, limit)
			}
		}
	}
	if got := len(s.days()); got > 12 {
		t.Errorf("there are %d files", got)
	}
}

// While a file is packed it is read, and a kill at any moment of it leaves all there is. What is left of the copy goes.
func TestAFileIsPackedWhileItIsReadAndKilled(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(43, 3))
	rv, written := 0, make([]int, 2)
	for range 4 {
		commit(t, s, interleaved(random, &rv, written, 0.6, clock.Step(time.Second), 900))
	}
	images := filepath.Join(t.TempDir(), "killed")
	var before, after int64
	takeOutAndPack := func(se *session) error {
		for range 4 {
			if thinner, err := se.thin(1); err != nil || !thinner {
				return errors.Join(err, errors.New("nothing to take out"))
			}
		}
		before = s.Stats().Bytes
		packed, err := se.pack(true)
		if err == nil && !packed {
			err = errors.New("nothing was packed")
		}
		after = s.Stats().Bytes
		return err
	}
	var err error
	enough := errors.New("enough")
	s.fault = func(point string) error {
		switch point {
		case "packed":
			return os.CopyFS(images, os.DirFS(s.dir))
		case "between": // of a commit that has nothing to write, and is given up afterwards
			if before == 0 { // the commit is tried more than once
				err = takeOutAndPack(s.writer.session)
			}
			return enough
		}
		return nil
	}
	stop := readOnAndOn(t, s)
	given := s.Commit(t.Context(), Batch{})
	s.fault = nil
	stop()
	if err != nil || !errors.Is(given, enough) {
		t.Fatal(err, given)
	}
	if after > before*9/10 {
		t.Errorf("before it was packed it had %d bytes, and after that %d", before, after)
	}
	want := all(t, s, Query{})
	if got := s.Stats().Changes; int(got) != len(want) {
		t.Errorf("it says %d changes, and %d are there", got, len(want))
	}
	killed := open(t, Options{Clock: clock, MaxBytes: MinBytes, Dir: images})
	sameVersions(t, "after a kill", all(t, killed, Query{}), want)
	if left, err := filepath.Glob(filepath.Join(images, "*"+buildSuffix+"*")); err != nil || len(left) > 0 {
		t.Errorf("of the copy %v is left, %v", left, err)
	}
	commit(t, s, interleaved(random, &rv, written, 0.6, clock.Step(time.Second), 10))
	sameVersions(t, "after a restart", all(t, reopen(t, s), Query{})[:len(want)], want)
}

// readOnAndOn reads the newest changes until the function that it returns is called.
func readOnAndOn(t *testing.T, s *Store) (stop func()) {
	end := make(chan struct{})
	var reading sync.WaitGroup
	for range 3 {
		reading.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if page, err := s.Changes(t.Context(), Query{Limit: 50}); err != nil || len(page.Changes) != 50 || len(page.Unreadable) > 0 {
					t.Errorf("reading: %d changes, %v, %v", len(page.Changes), page.Unreadable, err)
					return
				}
			}
		})
	}
	return func() {
		close(end)
		reading.Wait()
	}
}

func sameVersions(t *testing.T, what string, got, want []change.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s there are %d changes, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i].ResourceVersion != want[i].ResourceVersion || string(got[i].Fields[0].New) != string(want[i].Fields[0].New) {
			t.Fatalf("%s change %d is %+v, want %+v", what, i, got[i], want[i])
		}
	}
}
