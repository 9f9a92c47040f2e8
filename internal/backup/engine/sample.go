package engine

import (
	"bytes"
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
	"time"
)

// Which files a manifest tells of: those whose paths have the smallest checksums, as many as the bounds allow. That is a fair
// sample, and the same in each snapshot. Large files are counted apart, so that one of them does not take the place of all
// small ones, and folders and links too.
const (
	maxSmall  = 2000
	maxLarge  = 64
	maxOthers = 1000
	// largeFile is from which size on a file is a large one, and maxSampled how many bytes of small files and of large ones
	// are in the sample, but at least one file of each.
	largeFile  = 16 << 20
	maxSampled = 512 << 20
)

// The classes of the sample, as the header of a manifest names them.
const (
	classSmall  = "small"
	classLarge  = "large"
	classOthers = "others"
)

// sampleKey orders paths at random, always in the same way.
type sampleKey [16]byte

func keyOf(path string) sampleKey {
	sum := sha256.Sum256([]byte(path))
	return sampleKey(sum[:len(sampleKey{})])
}

// sampled is one path of the sample.
type sampled struct {
	path  string
	key   sampleKey
	size  int64
	entry *entry // tells the mode, as it is stored, when all is read
	kind  string

	sha256  string
	changed bool
	index   int // in the heap, -1 when it is out
}

// sample holds the paths with the smallest keys that fit. What was refused once stays out, and so does everything behind it:
// which paths are in does not depend on the order in which they come.
type sample struct {
	maxCount int
	maxBytes int64      // 0: no bound
	bound    *sampleKey // the smallest key that was refused
	chosen   int        // how many were in when that was decided, in an earlier snapshot; 0: in this one
	bytes    int64
	heap     sampleHeap
}

type sampleHeap []*sampled

func (h sampleHeap) Len() int           { return len(h) }
func (h sampleHeap) Less(i, j int) bool { return bytes.Compare(h[i].key[:], h[j].key[:]) > 0 }
func (h sampleHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *sampleHeap) Push(x any) {
	item := x.(*sampled) // container/heap passes on what it was given
	item.index = len(*h)
	*h = append(*h, item)
}

func (h *sampleHeap) Pop() any {
	last := (*h)[len(*h)-1]
	last.index = -1
	*h = (*h)[:len(*h)-1]
	return last
}

// add puts a path into the sample, and reports whether it is in.
func (s *sample) add(item *sampled) bool {
	if s.bound != nil && bytes.Compare(item.key[:], s.bound[:]) >= 0 {
		return false
	}
	heap.Push(&s.heap, item)
	s.bytes += item.size
	for s.heap.Len() > s.maxCount || (s.maxBytes > 0 && s.bytes > s.maxBytes && s.heap.Len() > 1) {
		out := heap.Pop(&s.heap).(*sampled) // it holds nothing else
		s.bytes -= out.size
		key := out.key
		s.bound, s.chosen = &key, 0
	}
	return item.index >= 0
}

func (s *sample) remove(item *sampled) {
	if item.index < 0 {
		return
	}
	heap.Remove(&s.heap, item.index)
	s.bytes -= item.size
}

// sampler gathers the manifest while the library reads the source, from several goroutines.
type sampler struct {
	mu      sync.Mutex
	classes map[string]*sample
	items   map[string]*sampled // by path

	known   map[string]manifestEntry // of the snapshot before, by path
	knownOf time.Time                // what moment that is of
}

func newSampler() *sampler {
	return &sampler{
		classes: map[string]*sample{
			classSmall:  {maxCount: maxSmall, maxBytes: maxSampled},
			classLarge:  {maxCount: maxLarge, maxBytes: maxSampled},
			classOthers: {maxCount: maxOthers},
		},
		items: map[string]*sampled{}, known: map[string]manifestEntry{},
	}
}

// follow begins with the sample of the snapshot before. Where less than half of a class is left, it is chosen anew.
func (s *sampler) follow(previous *sourceManifest, of time.Time) {
	if previous == nil {
		return
	}
	s.knownOf = of
	counts := map[string]int{}
	for _, e := range previous.entries {
		s.known[e.Path] = e
		counts[classOf(e.Type, e.Size)]++
	}
	for name, class := range s.classes {
		before := previous.header.Bounds[name]
		raw, err := hex.DecodeString(before.Key)
		if err != nil || len(raw) != len(sampleKey{}) || counts[name] < before.Count/2 {
			continue
		}
		key := sampleKey(raw)
		class.bound, class.chosen = &key, before.Count
	}
}

func classOf(kind string, size int64) string {
	switch {
	case kind != typeFile:
		return classOthers
	case size >= largeFile:
		return classLarge
	default:
		return classSmall
	}
}

// offer takes a path into the sample, if it belongs there. Otherwise it returns nil.
func (s *sampler) offer(e *entry, kind string, size int64) *sampled {
	path := encodePath(e.relative)
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.items[path]; before != nil { // it is looked at once more
		s.drop(before)
	}
	item := &sampled{path: path, key: keyOf(path), size: size, entry: e, kind: kind}
	if kind != typeFile {
		item.size = 0
	}
	if !s.classes[classOf(kind, size)].add(item) {
		return nil
	}
	s.items[path] = item
	return item
}

// drop takes a path out. s.mu is held.
func (s *sampler) drop(item *sampled) {
	for _, class := range s.classes {
		if item.index >= 0 && item.index < class.heap.Len() && class.heap[item.index] == item {
			class.remove(item)
		}
	}
	item.index = -1
	delete(s.items, item.path)
}

// forget drops a path that turned out not to be in the snapshot.
func (s *sampler) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if item := s.items[path]; item != nil {
		s.drop(item)
	}
}

// reuse reports whether a file may be taken from the snapshot of that moment, without being read. Of a file in the sample the
// checksum has to be known. The manifest of that snapshot has it, of the same bytes: otherwise the file is read once more.
func (s *sampler) reuse(f *file, of time.Time) bool {
	if s == nil {
		return true
	}
	item := s.offer(f.entry, typeFile, f.Size())
	if item == nil {
		return true
	}
	known, found := s.known[item.path]
	if !found || !of.Equal(s.knownOf) || known.Type != typeFile || known.SHA256 == "" || known.Size != item.size {
		return false
	}
	s.note(item, known.SHA256, false)
	return true
}

func (s *sampler) note(item *sampled, sha256 string, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item.sha256, item.changed = sha256, changed
}

// link takes a symbolic link into the sample.
func (s *sampler) link(e *entry, target string) {
	if s == nil {
		return
	}
	if item := s.offer(e, typeLink, 0); item != nil {
		s.note(item, digestOf([]byte(target)), false)
	}
}

// folder takes a folder into the sample.
func (s *sampler) folder(e *entry) {
	if s != nil {
		s.offer(e, typeFolder, 0)
	}
}

// entries are those of the manifest.
func (s *sampler) entries() []manifestEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []manifestEntry
	for _, item := range s.items {
		if item.index < 0 {
			continue // another one has taken its place
		}
		e := manifestEntry{Path: item.path, Type: item.kind, Mode: item.entry.now().Mode & 0o7777, SHA256: item.sha256, Changed: item.changed}
		if item.kind == typeFile {
			e.Size = item.size
		}
		if item.kind == typeLink {
			e.Mode = 0
		}
		list = append(list, e)
	}
	return list
}

func (s *sampler) bounds() map[string]sampleBound {
	s.mu.Lock()
	defer s.mu.Unlock()
	bounds := map[string]sampleBound{}
	for name, class := range s.classes {
		if class.bound == nil {
			continue
		}
		bound := sampleBound{Key: hex.EncodeToString(class.bound[:]), Count: class.chosen}
		if bound.Count == 0 {
			bound.Count = class.heap.Len()
		}
		bounds[name] = bound
	}
	return bounds
}

// digester computes the checksum of a file of the sample while it is read. Nil: the file is not in the sample.
type digester struct {
	sampler *sampler
	item    *sampled
	sum     hash.Hash
	read    int64
	broken  bool // it was not read from its beginning to its end
}

// digest returns a digester for a file that is opened.
func (s *sampler) digest(e *entry) *digester {
	if s == nil {
		return nil
	}
	item := s.offer(e, typeFile, e.Size())
	if item == nil {
		return nil
	}
	return &digester{sampler: s, item: item, sum: sha256.New()}
}

func (d *digester) write(p []byte) {
	if d == nil {
		return
	}
	d.sum.Write(p)
	d.read += int64(len(p))
}

func (d *digester) seek() {
	if d != nil {
		d.broken = true
	}
}

// end notes the checksum, unless the file changed while it was read.
func (d *digester) end(changed bool) {
	switch {
	case d == nil:
	case changed || d.broken || d.read != d.item.size:
		d.sampler.note(d.item, "", true)
	default:
		d.sampler.note(d.item, hex.EncodeToString(d.sum.Sum(nil)), false)
	}
}
