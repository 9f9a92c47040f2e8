package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inSample returns the paths of a sample.
func inSample(s *sample) []string {
	var paths []string
	for _, item := range s.heap {
		paths = append(paths, item.path)
	}
	slices.Sort(paths)
	return paths
}

// Which paths are in a sample does not depend on the order in which they come, and it keeps its bounds.
func TestASampleIsTheSameInAnyOrder(t *testing.T) {
	type bounds struct {
		count int
		bytes int64
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(7, seed))
		sizes := map[string]int64{}
		for i := range 1 + random.IntN(60) {
			sizes[fmt.Sprint("file", i)] = int64(random.IntN(100))
		}
		for _, b := range []bounds{{5, 0}, {1000, 200}, {7, 150}, {3, 1}} {
			var want []string
			for round := range 5 {
				s := &sample{maxCount: b.count, maxBytes: b.bytes}
				paths := []string{}
				for path := range sizes {
					paths = append(paths, path)
				}
				random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
				for _, path := range paths {
					s.add(&sampled{path: path, key: keyOf(path), size: sizes[path]})
				}
				var bytes int64
				for _, path := range inSample(s) {
					bytes += sizes[path]
				}
				if s.heap.Len() == 0 || s.heap.Len() > b.count || bytes != s.bytes || (b.bytes > 0 && bytes > b.bytes && s.heap.Len() > 1) {
					t.Fatalf("%d paths of %d bytes, bounds %+v", s.heap.Len(), bytes, b)
				}
				if round == 0 {
					want = inSample(s)
				}
				if diff := cmp.Diff(want, inSample(s)); diff != "" {
					t.Fatalf("seed %d, bounds %+v, in another order (-before +now):\n%s", seed, b, diff)
				}
			}
		}
	}
}

// An unchanged file is not read for the manifest: its checksum is that of the snapshot before.
func TestChecksumsOfUnchangedFilesAreCarriedOver(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	first := kept(t, r, "one", source)
	before := manifestIn(t, r, first.Snapshot)
	write(t, source, "a.txt", "another")
	write(t, source, "new", "new")
	second, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "two", IgnoreChangeTime: true})
	if err != nil {
		t.Fatal(err)
	}
	after := manifestIn(t, r, second.Snapshot)
	sums := func(m *sourceManifest) map[string]string {
		found := map[string]string{}
		for _, e := range m.entries {
			if e.Type == typeFile {
				found[e.Path] = e.SHA256
			}
		}
		return found
	}
	want := sums(before)
	want["a.txt"], want["new"] = digestOf([]byte("another")), digestOf([]byte("new"))
	if diff := cmp.Diff(want, sums(after)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	third, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "three", IgnoreChangeTime: true})
	if err != nil || third.Manifest != second.Manifest {
		t.Errorf("the manifest of an unchanged source is another one: %v", err)
	}
	target, _ := restored(t, r, "three")
	if got, err := compared(t, r, third.Snapshot, target); err != nil || got.Files != 4 {
		t.Errorf("compared %+v, %v", got, err)
	}
}

// The checksum of a file is carried over from the snapshot whose content is reused, and from no other one.
func TestOnlyTheChecksumOfTheSameSnapshotIsCarriedOver(t *testing.T) {
	begun := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	known := manifestEntry{Path: "a", Type: typeFile, Size: 3, SHA256: digestOf([]byte("abc"))}
	with := func(change func(*manifestEntry)) *sourceManifest {
		e := known
		change(&e)
		return &sourceManifest{entries: []manifestEntry{e}}
	}
	same := func(*manifestEntry) {}
	for name, c := range map[string]struct {
		previous *sourceManifest
		of       time.Time
		want     bool
	}{
		"the same":                       {with(same), begun, true},
		"of an interrupted run":          {with(same), begun.Add(time.Hour), false},
		"no manifest":                    {nil, begun, false},
		"changed while it was read then": {with(func(e *manifestEntry) { e.SHA256, e.Changed = "", true }), begun, false},
		"of another size":                {with(func(e *manifestEntry) { e.Size = 4 }), begun, false},
		"a link then":                    {with(func(e *manifestEntry) { e.Type = typeLink }), begun, false},
		"another path":                   {with(func(e *manifestEntry) { e.Path = "b" }), begun, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSampler()
			s.follow(c.previous, begun)
			f := &file{entry: &entry{relative: "a"}}
			f.stat.Size = 3
			if got := s.reuse(f, c.of); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if c.want && s.entries()[0].SHA256 != known.SHA256 {
				t.Errorf("got %+v", s.entries())
			}
		})
	}
}

// The sample stays the same from snapshot to snapshot, so that unchanged files are not read for it. When much of it has gone,
// it is chosen anew.
func TestTheSampleStays(t *testing.T) {
	offer := func(s *sampler, from, to int) []string {
		for i := from; i < to; i++ {
			e := &entry{relative: fmt.Sprint("file", i)}
			e.stat.Size = 1
			d := s.digest(e)
			d.write([]byte("x"))
			d.end(false)
		}
		return inSample(s.classes[classSmall])
	}
	next := func(before *sampler) *sampler {
		raw, err := encodeManifest(Stats{}, &sourceManifest{header: manifestHeader{Bounds: before.bounds()}, entries: before.entries()})
		if err != nil {
			t.Fatal(err)
		}
		m, err := decodeManifest(raw)
		if err != nil {
			t.Fatal(err)
		}
		s := newSampler()
		s.follow(m, time.Time{})
		return s
	}
	const many = 3 * maxSmall
	first := newSampler()
	chosen := offer(first, 0, many)
	second := next(first)
	if diff := cmp.Diff(chosen, offer(second, 0, many)); diff != "" {
		t.Fatalf("the sample of the same files:\n%s", diff)
	}
	third := next(second)
	fewer := offer(third, 0, many*2/3)
	for _, path := range fewer {
		if !slices.Contains(chosen, path) {
			t.Fatalf("%s came into the sample, and would have to be read", path)
		}
	}
	fourth := next(third)
	few := offer(fourth, 0, many/3)
	fifth := next(fourth)
	anew := offer(fifth, 0, many/3)
	if len(few) >= maxSmall/2 || len(anew) <= len(few) {
		t.Errorf("the sample has %d paths when few files are left, and %d after that", len(few), len(anew))
	}
}

func TestWhatIsNoManifestIsRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":           "",
		"no JSON":           "x",
		"another version":   `{"version":2,"lines":0}`,
		"a line is missing": `{"version":1,"lines":1}` + "\n",
		"a line too many":   `{"version":1,"lines":0}` + "\n" + `{"path":"a"}`,
		"cut off":           `{"version":1,"lines":1}` + "\n" + `{"path":"a`,
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := decodeManifest([]byte(raw)); err == nil {
				t.Errorf("it was read: %+v", m)
			}
		})
	}
}

// Large files have a place of their own, and one is in the sample however large it is.
func TestOneLargeFileIsAlwaysInTheSample(t *testing.T) {
	s := newSampler()
	for i := range 5 {
		e := &entry{relative: fmt.Sprint("large", i)}
		e.stat.Size = 10 << 30
		s.offer(e, typeFile, e.stat.Size)
	}
	small := &entry{relative: "small"}
	s.offer(small, typeFile, 1)
	if large := inSample(s.classes[classLarge]); len(large) != 1 {
		t.Errorf("large ones: %v", large)
	}
	if got := inSample(s.classes[classSmall]); !slices.Equal(got, []string{"small"}) {
		t.Errorf("small ones: %v", got)
	}
	s.forget("small")
	if got := inSample(s.classes[classSmall]); len(got) != 0 {
		t.Errorf("small ones: %v", got)
	}
}

// A path that turned out not to be in the snapshot is not in the manifest either.
func TestAPathThatVanishedIsNotInTheManifest(t *testing.T) {
	s := newSampler()
	s.offer(&entry{relative: "stays"}, typeFile, 1)
	s.offer(&entry{relative: "gone"}, typeFile, 1)
	s.forget("gone")
	s.forget("never there")
	if got := s.entries(); len(got) != 1 || got[0].Path != "stays" {
		t.Errorf("got %+v", got)
	}
}
