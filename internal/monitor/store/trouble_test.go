package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// filled returns a store with changes on three days.
func filled(t *testing.T) (*Store, *history, *testClock) {
	t.Helper()
	clock := newClock()
	s := open(t, Options{Clock: clock})
	h := newHistory()
	for day := range 3 {
		for range 4 {
			commit(t, s, h.batch(clock.Step(time.Minute), 100, 300))
		}
		if day < 2 {
			clock.Step(24 * time.Hour)
		}
	}
	return s, h, clock
}

// damage overwrites a part of a file.
func damage(t testing.TB, path string, offset, bytes int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	garbage := []byte(strings.Repeat("\xa5", int(bytes)))
	if _, err := file.WriteAt(garbage, offset); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// losses returns what was lost, and tells of it.
func losses(t *testing.T, s *Store) []Loss {
	t.Helper()
	found, err := s.Losses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := Batch{}
	for _, loss := range found {
		b.Reported = append(b.Reported, loss.ID)
	}
	commit(t, s, b)
	if left, err := s.Losses(t.Context()); err != nil || len(left) > 0 {
		t.Fatalf("after they were told of: %v, %v", left, err)
	}
	return found
}

const today, yesterday = "changes-2026-11-22.db", "changes-2026-11-21.db"

func TestADamagedDayIsMovedAside(t *testing.T) {
	fills(t)
	for name, c := range map[string]struct {
		file          string
		offset, bytes int64
	}{
		"the beginning of today":     {today, 0, 200},
		"the tables of today":        {today, 200, 3800},
		"the beginning of yesterday": {yesterday, 0, 200},
		"all of yesterday":           {yesterday, 0, 60_000},
		"the middle of yesterday":    {yesterday, 4096, 30_000},
	} {
		t.Run(name, func(t *testing.T) {
			s, h, clock := filled(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, s.path(c.file), c.offset, c.bytes)
			s, err := Open(t.Context(), s.options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if c.file == yesterday {
				page, err := s.Changes(t.Context(), Query{Limit: maxLimit})
				if err != nil || len(page.Unreadable) != 1 || page.Unreadable[0] != yesterday || len(page.Changes) != 800 {
					t.Fatalf("%d changes, unreadable %v, %v", len(page.Changes), page.Unreadable, err)
				}
			}
			commit(t, s, h.batch(clock.Step(time.Minute), 50, 300))
			select {
			case <-s.Lost():
			default:
				t.Error("nobody was told")
			}
			found := losses(t, s)
			if len(found) != 1 {
				t.Fatalf("losses %+v", found)
			}
			day := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
			if c.file == today {
				day = day.Add(24 * time.Hour)
			}
			loss := found[0]
			if loss.File != c.file || loss.Cause != Corrupt || loss.Records != 400 || loss.Checkpoints ||
				loss.Since.Before(day) || loss.Until.After(day.Add(time.Hour)) || !loss.Until.After(loss.Since) {
				t.Errorf("loss %+v", loss)
			}
			if _, err := os.Stat(s.path(c.file + ".corrupt-1")); err != nil {
				t.Error(err)
			}
			want := append([]change.Record{}, h.records[:400]...)
			if c.file == today {
				want = append(want, h.records[400:800]...)
			} else {
				want = append(want, h.records[800:1200]...)
			}
			want = append(want, h.records[1200:]...)
			for range 2 {
				same(t, "records", all(t, s, Query{}), want)
				checkStates(t, s, h)
				s = reopen(t, s)
			}
			if again := losses(t, s); len(again) != 0 {
				t.Errorf("it is lost again: %+v", again)
			}
		})
	}
}

func checkStates(t *testing.T, s *Store, h *history) {
	t.Helper()
	got := map[int]string{}
	for state, err := range s.StatesOf(t.Context(), widgets.GroupResource()) {
		if err != nil {
			t.Fatal(err)
		}
		var n int
		_, _ = fmt.Sscanf(state.Name, "object-%d", &n)
		got[n] = string(state.Body)
	}
	want := map[int]string{}
	for n, body := range h.bodies {
		want[n] = string(body)
	}
	same(t, "states", got, want)
}

func TestOnlyThreeDamagedFilesAreKept(t *testing.T) {
	s, h, clock := filled(t)
	for range 6 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		days, err := listDays(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		damage(t, s.path(days[len(days)-1].String()), 0, 1000)
		if s, err = Open(t.Context(), s.options); err != nil {
			t.Fatal(err)
		}
		commit(t, s, h.batch(clock.Now(), 5, 3))
		losses(t, s)
	}
	_, numbers, err := corruptFiles(s.dir)
	if err != nil || len(numbers) != keepCorrupt || numbers[2] != 6 {
		t.Errorf("those that are kept: %v, %v", numbers, err)
	}
	if other := s.Stats().OtherBytes; other == 0 {
		t.Error("they do not count")
	}
	_ = s.Close()
}

func TestDamagedLastStates(t *testing.T) {
	for name, c := range map[string]struct {
		offset, bytes int64
		left          int64
		content       bool
	}{
		"the beginning":            {0, 200, 0, false},
		"everything":               {0, 1 << 20, 0, false},
		"a part of an object":      {0, 20, 0, true},
		"some pages in the middle": {50_000, 20_000, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, h, clock := filled(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(s.path(stateFile))
			if err != nil {
				t.Fatal(err)
			}
			if c.content {
				c.offset = contentOf(t, s)
			}
			damage(t, s.path(stateFile), c.offset, min(c.bytes, info.Size()-c.offset))
			s, err = Open(t.Context(), s.options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			// What is damaged may be found only when it is read. The reader gets an error, never something else.
			damaged := checkDamaged(t, s, h)
			commit(t, s, Batch{Values: []Value{{"x", []byte("y")}}})
			found := losses(t, s)
			if c.content {
				// The tables are sound, and the contents of some objects are not: those are reported one by one.
				if damaged == 0 || damaged > 50 || len(found) != 0 {
					t.Fatalf("%d objects are damaged, losses %+v", damaged, found)
				}
			} else {
				if len(found) != 1 || found[0].File != stateFile || found[0].Cause != Corrupt || !found[0].Checkpoints || found[0].States < c.left {
					t.Fatalf("losses %+v", found)
				}
				if checkpoint, err := s.Checkpoint(t.Context(), widgets.GroupResource()); err != nil || checkpoint != "" {
					t.Errorf("checkpoint %q, %v", checkpoint, err)
				}
			}
			checkDamaged(t, s, h)
			// The history is still there, and goes on.
			commit(t, s, h.batch(clock.Now(), 20, 300))
			same(t, "records", all(t, s, Query{}), h.records)
			s = reopen(t, s)
			same(t, "records", all(t, s, Query{}), h.records)
		})
	}
}

// contentOf returns where the file of the last states has the content of an object. The store is closed.
func contentOf(t *testing.T, s *Store) int64 {
	t.Helper()
	path := s.path(stateFile)
	db, err := s.openDatabase(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	var content []byte
	err = db.one(t.Context(), `SELECT body FROM states WHERE length(body) > 40 LIMIT 1`, nil, &content)
	if err := errors.Join(err, db.close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, content)
	if at < 0 {
		t.Fatal("the content is not in one piece")
	}
	return int64(at) + 10
}

// checkDamaged reads all states: each is right, or an error. It returns how many are an error.
func checkDamaged(t *testing.T, s *Store, h *history) (damaged int) {
	t.Helper()
	for state, err := range s.StatesOf(t.Context(), widgets.GroupResource()) {
		if err != nil {
			if !Is(err, Corrupt) {
				t.Errorf("reading: %v", err)
			}
			damaged++
			continue
		}
		var n int
		_, _ = fmt.Sscanf(state.Name, "object-%d", &n)
		if string(state.Body) != string(h.bodies[n]) {
			t.Errorf("the state of %s is %s, want %s", state.Name, state.Body, h.bodies[n])
		}
	}
	return damaged
}

func TestFilesThatAreDeletedWhileTheyAreOpenArePutBack(t *testing.T) {
	fills(t)
	for name, files := range map[string][]string{
		"the states":         {stateFile},
		"the day":            {today},
		"the log of the day": {today + "-wal"},
		"logs and indexes":   {stateFile + "-wal", stateFile + "-shm", today + "-wal", today + "-shm"},
		"both with all":      {stateFile, stateFile + "-wal", stateFile + "-shm", today, today + "-wal", today + "-shm"},
	} {
		t.Run(name, func(t *testing.T) {
			s, h, clock := filled(t)
			if got := len(all(t, s, Query{})); got != 1200 { // readers are open
				t.Fatal(got)
			}
			for _, file := range files {
				if err := os.Remove(s.path(file)); err != nil {
					t.Fatal(err)
				}
			}
			commit(t, s, h.batch(clock.Now(), 20, 300))
			same(t, "records", all(t, s, Query{}), h.records)
			s = reopen(t, s)
			same(t, "records", all(t, s, Query{}), h.records)
			checkStates(t, s, h)
			if found := losses(t, s); len(found) > 0 {
				t.Errorf("losses %+v", found)
			}
			if extra, _ := filepath.Glob(s.path("*" + buildSuffix)); len(extra) > 0 {
				t.Errorf("left over: %v", extra)
			}
		})
	}
}

func TestADayThatIsDeletedIsALoss(t *testing.T) {
	for name, closed := range map[string]bool{"while it is open": false, "while it is closed": true} {
		t.Run(name, func(t *testing.T) {
			s, h, clock := filled(t)
			if closed {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := remove(s.path(yesterday)); err != nil {
				t.Fatal(err)
			}
			if closed {
				var err error
				if s, err = Open(t.Context(), s.options); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
			} else if page, err := s.Changes(t.Context(), Query{Limit: maxLimit}); err != nil || len(page.Unreadable) != 1 {
				t.Fatalf("unreadable %v, %v", page.Unreadable, err)
			}
			commit(t, s, h.batch(clock.Now(), 20, 300))
			found := losses(t, s)
			if len(found) != 1 || found[0].File != yesterday || found[0].Cause != Missing || found[0].Records != 400 {
				t.Errorf("losses %+v", found)
			}
			same(t, "records", all(t, s, Query{}), append(append([]change.Record{}, h.records[:400]...), h.records[800:]...))
		})
	}
}

func TestStatesThatAreDeletedWhileItIsClosedAreALoss(t *testing.T) {
	s, h, clock := filled(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := remove(s.path(stateFile)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	found := losses(t, s)
	if len(found) != 1 || found[0].File != stateFile || found[0].Cause != Missing || !found[0].Checkpoints || found[0].States != 0 {
		t.Errorf("losses %+v", found)
	}
	commit(t, s, h.batch(clock.Now(), 20, 300))
	same(t, "records", all(t, s, Query{}), h.records)
}

// copied returns a copy of the files as another process makes it: closing a file in this one would take the database's locks.
func copied(t *testing.T, s *Store, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	for _, name := range names {
		if out, err := exec.Command("cp", "-a", s.dir+"/"+name, dir).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v: %s", err, out)
		}
	}
	return dir
}

// closedAndCopied copies the folder while the store is closed: then each database is one file, without a log.
func closedAndCopied(t *testing.T, s *Store) (dir string, again *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir = copied(t, s)
	again, err := Open(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return dir, again
}

func TestACopyOfOneMomentCanBeOpened(t *testing.T) {
	s, h, clock := filled(t)
	open := func(dir string) *Store {
		options := s.options
		options.Dir = dir
		again, err := Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = again.Close() })
		return again
	}
	before := len(h.records)
	// Between the two transactions of a commit nothing is written, so a copy is what a snapshot of the volume has.
	var dir string
	s.fault = func(string) error {
		dir = copied(t, s)
		return nil
	}
	bodies := map[int][]byte{}
	for n, body := range h.bodies {
		bodies[n] = body
	}
	commit(t, s, h.batch(clock.Now(), 20, 300))
	s.fault = nil
	copy := open(dir)
	same(t, "the copy of the moment before it is acknowledged", all(t, copy, Query{}), h.records[:before])
	checkStates(t, copy, &history{bodies: bodies})
	if found := losses(t, copy); len(found) > 0 {
		t.Errorf("losses %+v", found)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{today, stateFile} {
		if info, err := os.Stat(s.path(name + "-wal")); err == nil && info.Size() > 0 {
			t.Errorf("the log of %s has %d bytes", name, info.Size())
		}
	}
	copy = open(copied(t, s, today, yesterday, "changes-2026-11-20.db", stateFile))
	same(t, "the copy of a closed store, without logs", all(t, copy, Query{}), h.records)
	checkStates(t, copy, h)
}

func TestFilesOfDifferentMoments(t *testing.T) {
	s, h, clock := filled(t)
	older, s := closedAndCopied(t, s)
	before := len(h.records)
	commit(t, s, h.batch(clock.Now(), 20, 300))
	newer, s := closedAndCopied(t, s)
	for name, c := range map[string]struct {
		states string
		want   int
		lost   int64
	}{"older states": {older, before, 0}, "newer states": {newer, before, 20}} {
		t.Run(name, func(t *testing.T) {
			from := map[string]string{older: newer, newer: older}[c.states]
			dir := t.TempDir()
			for _, cp := range [][2]string{{from, "changes-2026-11-20.db"}, {from, yesterday}, {from, today}, {c.states, stateFile}} {
				if out, err := exec.Command("cp", "-a", filepath.Join(cp[0], cp[1]), dir).CombinedOutput(); err != nil {
					t.Fatalf("cp: %v: %s", err, out)
				}
			}
			options := s.options
			options.Dir = dir
			again, err := Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = again.Close() })
			same(t, "records", all(t, again, Query{}), h.records[:c.want])
			found := losses(t, again)
			if (c.lost > 0) != (len(found) == 1) || (c.lost > 0 && (found[0].Records != c.lost || found[0].File != today)) {
				t.Errorf("losses %+v", found)
			}
		})
	}
}

// limitedChild lives with a limit of how large files may get, which the database meets as a disk that is full.
func limitedChild() error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	clock := newClock()
	s, err := Open(ctx, Options{Dir: os.Getenv("STORE_TEST_DIR"), Clock: clock})
	if err != nil {
		return err
	}
	h := newHistory()
	if err := s.Commit(ctx, h.batch(clock.Now(), 100, 10)); err != nil {
		return err
	}
	limit := func(bytes uint64) {
		var l syscall.Rlimit
		if err := errors.Join(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l)); err != nil {
			panic(err)
		}
		l.Cur = min(bytes, l.Max)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			panic(err)
		}
	}
	for round := range 3 {
		limit(uint64(round+1) * 300_000)
		for refusals := 0; refusals < 5; {
			kept := &history{bodies: map[int][]byte{}, rv: h.rv, records: h.records}
			for n, body := range h.bodies {
				kept.bodies[n] = body
			}
			err := s.Commit(ctx, kept.batch(clock.Now(), 100, 10))
			switch {
			case err == nil: // also after a refusal: the files were closed, and their logs are short again
				h = kept
				continue
			case !Is(err, NoSpace):
				return fmt.Errorf("with the limit: %w", err)
			}
			refusals++
			if page, err := s.Changes(ctx, Query{Limit: 1}); err != nil || page.Changes[0].ResourceVersion != fmt.Sprint(h.rv) {
				return fmt.Errorf("reading with the limit: %v, %w", page.Changes, err)
			}
		}
		limit(1 << 40)
		kept := h.batch(clock.Now(), 100, 10)
		if err := s.Commit(ctx, kept); err != nil {
			return fmt.Errorf("without the limit: %w", err)
		}
	}
	var got int
	q := Query{OldestFirst: true, Limit: maxLimit}
	for {
		page, err := s.Changes(ctx, q)
		if err != nil {
			return err
		}
		for _, c := range page.Changes {
			if c.ResourceVersion != h.records[got].ResourceVersion {
				return fmt.Errorf("change %d is %s", got, c.ResourceVersion)
			}
			got++
		}
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if got != len(h.records) {
		return fmt.Errorf("%d changes, want %d", got, len(h.records))
	}
	if found, err := s.Losses(ctx); err != nil || len(found) > 0 {
		return fmt.Errorf("losses %v, %w", found, err)
	}
	return s.Close()
}

func TestItHealsWhenThereIsSpaceAgain(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), roleVariable+"=limited", "STORE_TEST_DIR="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// mount gives a test a file system of its own. It needs the root user: for others there is the limit of sizes.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system of its own needs the root user: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestAFullDiskGivesUpTheOldestHistory(t *testing.T) {
	dir := mount(t, "size=8m")
	clock := newClock()
	s, err := Open(t.Context(), withTestDefaults(t, Options{Dir: filepath.Join(dir, "store"), Clock: clock}))
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory()
	for range 6 {
		for range 5 {
			commit(t, s, h.batch(clock.Step(time.Minute), 100, 10))
		}
		clock.Step(24 * time.Hour)
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	refused, refusals := h.batch(clock.Now(), 500, 10), 0
	for {
		err := s.Commit(t.Context(), refused)
		if err == nil {
			break
		}
		if !Is(err, NoSpace) {
			t.Fatalf("Commit: %v", err)
		}
		if refusals++; refusals > 20 {
			t.Fatal("it never heals")
		}
		clock.Step(20 * time.Second)
	}
	stats := s.Stats()
	if stats.Dropped == 0 || stats.Dropped%500 != 0 || stats.Files < 2 {
		t.Errorf("%d changes were given up, in %d files there are %d", stats.Dropped, stats.Files, stats.Changes)
	}
	same(t, "records", all(t, s, Query{}), h.records[stats.Dropped:])
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// At the start the disk may be full as well.
	if err := os.WriteFile(filler+"2", make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	s, err = Open(t.Context(), s.options)
	if err != nil {
		if !Is(err, NoSpace) {
			t.Fatalf("Open: %v", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		options := withTestDefaults(t, Options{Dir: filepath.Join(dir, "store"), Clock: clock})
		if s, err = Open(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	defer s.Close()
	if found := losses(t, s); len(found) > 0 {
		t.Errorf("losses %+v", found)
	}
	if records := all(t, s, Query{}); len(records) == 0 || records[len(records)-1].ResourceVersion != fmt.Sprint(h.rv) {
		t.Errorf("%d records are left", len(records))
	}
}

func TestADiskThatBecomesReadOnly(t *testing.T) {
	dir := mount(t, "size=16m")
	clock := newClock()
	options := withTestDefaults(t, Options{Dir: filepath.Join(dir, "store"), Clock: clock})
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory()
	commit(t, s, h.batch(clock.Now(), 100, 10))
	// Open files cannot be made read-only, so the store is closed.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=16m"); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	for range 3 {
		if _, err := Open(t.Context(), options); !Is(err, ReadOnly) {
			t.Errorf("Open: %v", err)
		}
	}
	remount(0)
	if s, err = Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	same(t, "records", all(t, s, Query{}), h.records)
	commit(t, s, h.batch(clock.Now(), 10, 10))
}

// What SQLite calls an error, and no more, is damage where the file is not as the store makes it, whatever the words of the error are.
func TestDamageIsFoundInTheFileAndNotInWords(t *testing.T) {
	words := `SELECT value AS "no such table: meta" FROM meta GROUP BY json_extract('unsupported file format', 'no such column')`
	for name, c := range map[string]struct {
		spoil, query string
		offset       int64
		want         Trouble
	}{
		"a sound file, and an error with the words of damage": {query: words, want: Failed},
		"a sound file, and a table that there never was":      {query: `SELECT 1 FROM "unsupported file format"`, want: Failed},
		"a table is missing": {spoil: `DROP TABLE minutes`, query: `SELECT n FROM minutes`, want: Corrupt},
		"an index is missing": {
			spoil: `DROP INDEX changes_kind`, query: `SELECT n FROM changes INDEXED BY changes_kind`, want: Corrupt,
		},
		"a column is missing":                       {spoil: `ALTER TABLE minutes DROP COLUMN hi`, query: `SELECT hi FROM minutes`, want: Corrupt},
		"the schema has a format that there is not": {offset: 44, query: `SELECT n FROM minutes`, want: Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := filled(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.offset > 0 {
				damage(t, s.path(yesterday), c.offset, 4)
			}
			db, err := sql.Open("sqlite", "file:"+s.path(yesterday)+"?mode=rw")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if c.spoil != "" {
				if _, err := db.ExecContext(t.Context(), c.spoil); err != nil {
					t.Fatal(err)
				}
			}
			var value any
			err = db.QueryRowContext(t.Context(), c.query).Scan(&value)
			if !isPlainError(err) {
				t.Fatalf("the error is not one without a code of its own: %v", err)
			}
			if got := s.classify(err, yesterday); got != c.want {
				t.Errorf("%v is %s, want %s", err, got, c.want)
			}
		})
	}
}
