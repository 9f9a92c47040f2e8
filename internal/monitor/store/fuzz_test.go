package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// FuzzPayload: what is decoded from any bytes is encoded to bytes that decode to the same, and never to more than there was.
func FuzzPayload(f *testing.F) {
	f.Add(encodePayload(&change.Record{}))
	f.Add(encodePayload(&change.Record{
		Generation: -3, Folded: 9, Reason: "why", Since: time.Unix(5, 6), Actor: change.Actor{Operation: "Apply", Others: []string{"a", ""}},
		Fields: []change.Field{{Path: ".a", Op: change.Changed, Old: []byte("1"), New: []byte{}}, {}},
	}))
	f.Add(encodePayload(&change.Record{ObjectCreated: time.Unix(1_800_000_000, 0), Reason: "why"}))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r change.Record
		if err := decodePayload(data, &r); err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			return
		}
		again := encodePayload(&r)
		if len(again) > len(data) {
			t.Errorf("%d bytes became %d", len(data), len(again))
		}
		var second change.Record
		if err := decodePayload(again, &second); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, second, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzCursor: a cursor that is taken means one place, and is written in one way.
func FuzzCursor(f *testing.F) {
	for _, text := range []string{"", "2026-11-20.0.1", "2026-11-20.12.99", "2026-11-20.0.01", "x.y.z", "9999-99-99.0.0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePosition(text)
		if err != nil {
			if !Is(err, Invalid) {
				t.Fatal(err)
			}
			return
		}
		if p == nil {
			if text != "" {
				t.Errorf("%q is no place", text)
			}
			return
		}
		if p.String() != text {
			t.Errorf("%q is written as %q", text, p)
		}
		if name, ok := parseDay(p.name.String()); ok && name != p.name {
			t.Errorf("the file %s is read as %s", p.name, name)
		}
		if filepath.Base(p.name.String()) != p.name.String() {
			t.Errorf("%q leads out of the folder", text)
		}
	})
}

// FuzzDecompress: any bytes give at most maxBlob bytes, or are said to be damaged.
func FuzzDecompress(f *testing.F) {
	plain, err := newDictionary(nil)
	if err != nil {
		f.Fatal(err)
	}
	content := bytes.Repeat([]byte("some content that repeats "), 50)
	known, err := newDictionary(content)
	if err != nil {
		f.Fatal(err)
	}
	decoder, err := newDecoder(map[uint32][]byte{known.id: content})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain.compress([]byte("hello")))
	f.Add(known.compress(content))
	f.Add(plain.compress(make([]byte, maxBlob)))
	f.Add(plain.compress(make([]byte, maxBlob+1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := decompress(decoder, data)
		if err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		if len(out) > maxBlob {
			t.Errorf("%d bytes", len(out))
		}
		for _, d := range []*dictionary{plain, known} {
			if len(data) > maxBlob {
				continue
			}
			back, err := decompress(decoder, d.compress(data))
			if err != nil || !bytes.Equal(back, data) {
				t.Errorf("there and back: %v", err)
			}
		}
	})
}

// FuzzDamagedFiles: whatever bytes a file of a store has, it is opened (or refused because it is of a later version), everything
// in it can be asked for without an end that never comes, and what is committed afterwards is there after another start.
func FuzzDamagedFiles(f *testing.F) {
	files, options := filesOfAStore(f)
	f.Add(byte(0), uint32(0), []byte{})
	f.Add(byte(1), uint32(20), []byte{0xff, 0xff})
	f.Add(byte(2), uint32(4096), bytes.Repeat([]byte{0}, 4096))
	f.Add(byte(0), uint32(100), bytes.Repeat([]byte{0x0d}, 5000))
	f.Add(byte(3), uint32(5000), []byte{1})
	f.Add(byte(0), uint32(47), []byte{9})     // the format of the schema
	f.Add(byte(2), uint32(103), []byte{0, 1}) // how many tables and indexes there are
	f.Add(byte(0), uint32(103), []byte{0, 1})
	f.Add(byte(0), uint32(18), []byte{3}) // which version of SQLite may write it
	f.Add(byte(2), uint32(18), []byte{3})
	f.Fuzz(func(t *testing.T, which byte, offset uint32, patch []byte) {
		useDamaged(t, options, files, []string{stateFile, olderDay, newestDay}[which%3], func(content []byte) []byte {
			return spoil(content, int(offset), patch, which >= 128)
		})
	})
}

const (
	olderDay  = "changes-2026-11-21.db"
	newestDay = "changes-2026-11-22.db"
)

// filesOfAStore returns what a store of three days has written.
func filesOfAStore(tb testing.TB) (files map[string][]byte, options Options) {
	tb.Helper()
	template := filepath.Join(tb.TempDir(), "store")
	options = Options{Dir: template, Clock: newClock(), Patch: flatPatch, hasty: true, BatchWait: time.Microsecond}
	s, err := Open(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	h := newHistory()
	for range 3 {
		commit(tb, s, h.batch(options.Clock.Now(), 60, 40))
		commit(tb, s, Batch{Outbox: []Message{{Key: "a"}}, Values: []Value{{"k", []byte("v")}}, Definitions: []Definition{{Name: "d", Content: []byte("x")}}})
		options.Clock.(*testClock).Step(24 * time.Hour)
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	files = map[string][]byte{}
	for _, name := range []string{stateFile, olderDay, newestDay} {
		if files[name], err = os.ReadFile(filepath.Join(template, name)); err != nil {
			tb.Fatal(err)
		}
	}
	return files, options
}

// spoil overwrites a place, or cuts the file off there.
func spoil(content []byte, offset int, patch []byte, cut bool) []byte {
	offset %= len(content)
	if cut {
		return append(content[:offset], patch...)
	}
	copy(content[offset:], patch)
	return content
}

// useDamaged uses a store of which one file is damaged.
func useDamaged(t *testing.T, options Options, files map[string][]byte, name string, damage func([]byte) []byte) {
	t.Helper()
	options.Dir = t.TempDir()
	for file, content := range files {
		if file == name {
			content = damage(bytes.Clone(content))
		}
		if err := os.WriteFile(filepath.Join(options.Dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for round := range 2 {
		s, err := Open(ctx, options)
		if Is(err, Newer) {
			return
		}
		if err != nil {
			t.Fatalf("round %d: Open: %v", round, err)
		}
		readEverything(ctx, t, s)
		record, state := edit(widgets, 7, 1000+round, nil, options.Clock.Now())
		if err := s.Commit(ctx, Batch{Kind: widgets, Records: []change.Record{record}, Put: []change.State{state}, Checkpoint: "1"}); err != nil {
			t.Fatalf("round %d: Commit: %v", round, err)
		}
		page, err := s.Changes(ctx, Query{Limit: 1})
		if err != nil || len(page.Changes) != 1 || !cmp.Equal(page.Changes[0].Record, record) {
			t.Fatalf("round %d: what was committed is not the newest: %+v, %v", round, page, err)
		}
		if got, err := s.State(ctx, widgets.GroupResource(), state.UID); err != nil || !cmp.Equal(got, state) {
			t.Fatalf("round %d: the state is %+v, %v", round, got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// readEverything asks for all there is. Errors are of a known kind.
func readEverything(ctx context.Context, t *testing.T, s *Store) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		var known *Error
		if err != nil && !errors.As(err, &known) {
			t.Fatalf("%v", err)
		}
	}
	q := Query{Limit: maxLimit}
	for pages := 0; ; pages++ {
		page, err := s.Changes(ctx, q)
		check(err)
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
		if pages > 10_000 {
			t.Fatal("the pages have no end")
		}
	}
	n := 0
	for _, err := range s.StatesOf(ctx, widgets.GroupResource()) {
		check(err)
		if n++; n > 100_000 {
			t.Fatal("the states have no end")
		}
	}
	_, err := s.Kinds(ctx)
	check(err)
	_, _, err = s.NextMessages(ctx, s.options.Clock.Now(), 100)
	check(err)
	_, err = s.Values(ctx, "")
	check(err)
	_, err = s.Definitions(ctx, "d")
	check(err)
	_, err = s.Losses(ctx)
	check(err)
	_, err = countByKind(ctx, s)
	check(err)
	_, err = s.Rate(ctx, s.options.Clock.Now().Add(-100*time.Hour), 10)
	check(err)
	_, err = s.Object(ctx, widgets.GroupResource(), uidOf(3), s.options.Clock.Now())
	check(err)
}
