package table

import (
	"bytes"
	"slices"
	"strings"
)

const (
	// maxReadings bounds in how many ways a path may be read, and maxReadingBytes their
	// length together: this is work for a request that is not authenticated yet. A path of
	// 8 KiB may still have eight readings.
	maxReadings     = 128
	maxReadingBytes = 64 << 10

	// maxDecodings is how often a server may decode escapes: once itself, and once more in
	// what stands behind it.
	maxDecodings = 2
)

// reading is a path on its way through a server.
type reading struct {
	path    string
	decoded int // how often its escapes have been decoded

	// ended: the path was ended at what had been escaped, and query is what followed there
	// if that was a question mark. Both are kept only where routes look at the query.
	ended bool
	query string
}

// everyReading reports whether something holds for every path for which known servers take
// the path of a request, escaped as it was received. They differ in whether they
//
//   - take a backslash for a slash,
//   - cut what follows a semicolon, from a segment or from the whole path,
//   - leave out empty segments, or take what follows two slashes in front for a host,
//   - resolve "." and "..", escaped or not, and leave a slash where one was the last,
//   - decode an escaped slash with the other escapes, or leave it as %2F,
//   - decode escapes a second time, and characters in overlong UTF-8 with them,
//   - end the path at a zero byte, a question mark or a number sign that was escaped,
//
// and in the order in which they do it. So the readings are all that any order of these
// leads to, with the escapes decoded at least once. Of a path that has more of them than one
// that is meant well, nothing is said to hold. Where a path was sent on in another spelling,
// both are given at once: most of their readings are the same.
func everyReading(holds func(path string) bool, escaped ...string) bool {
	return newReadings(nil, escaped...).allHold(func(path, _ string) bool { return holds(path) })
}

// readings grow until no step leads to anything new, or there are too many.
type readings struct {
	all     []reading
	known   map[reading]bool
	query   *receivedQuery // nil: only paths matter
	bytes   int            // that are looked at
	tooMany bool
}

func newReadings(query *receivedQuery, escaped ...string) *readings {
	s := &readings{known: map[reading]bool{}, query: query}
	for _, path := range escaped {
		s.add(reading{path: path})
	}
	return s
}

// allHold reports whether it holds for every reading, with every query that the reading may
// be seen with.
func (s *readings) allHold(holds func(path, query string) bool) bool {
	for i := 0; i < len(s.all) && !s.tooMany; i++ {
		r := s.all[i]
		if r.decoded > 0 && slices.ContainsFunc(s.query.of(r), func(query string) bool { return !holds(r.path, query) }) {
			return false
		}
		s.readOn(r)
	}
	return !s.tooMany
}

func (s *readings) add(r reading) {
	if strings.IndexByte(r.path, '%') < 0 {
		r.decoded = maxDecodings // there is nothing left to decode
	}
	// What may be decoded once more has all the readings of what may not.
	fewer := r
	fewer.decoded = maxDecodings - 1
	if s.known[r] || (r.decoded == maxDecodings && s.known[fewer]) {
		return
	}
	cost := len(r.path) + s.query.cost(r)
	if len(s.all) == maxReadings || s.bytes+cost > maxReadingBytes {
		s.tooMany = true
		return
	}
	s.known[r] = true
	s.all = append(s.all, r)
	s.bytes += cost
}

// readOn adds what a reading becomes by one more step.
func (s *readings) readOn(r reading) {
	become := func(path string, decoded int) {
		next := r
		next.path, next.decoded = path, decoded
		s.add(next)
	}
	step := func(path string) {
		if path != r.path {
			become(path, r.decoded)
		}
	}
	step(strings.ReplaceAll(r.path, `\`, "/"))
	step(mergeSlashes(r.path))
	step(cutHost(r.path))
	resolved := resolveDots(r.path)
	step(resolved)
	if last := strings.LastIndexByte(r.path, '/'); isDots(r.path[last+1:]) && len(resolved) > 1 {
		step(strings.TrimSuffix(resolved, "/")) // a/b/.. is a file to some
	}
	step(decodeOverlong(r.path))
	if at := strings.IndexByte(r.path, ';'); at >= 0 {
		step(cutParameters(r.path))
		step(r.path[:at])
	}
	if r.decoded > 0 {
		s.endPath(r)
	}
	if r.decoded < maxDecodings {
		become(decodeEscapes(r.path, true), r.decoded+1)
		become(decodeEscapes(r.path, false), r.decoded+1)
	}
}

// mergeSlashes leaves empty segments out, except the last, which is a slash at the end.
func mergeSlashes(path string) string {
	if !strings.Contains(path, "//") {
		return path
	}
	kept := make([]byte, 0, len(path))
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			kept = append(kept, path[i])
		}
	}
	return string(kept)
}

// cutHost takes away what a server takes for a host that reads the path as an address
// relative to its own.
func cutHost(path string) string {
	if !strings.HasPrefix(path, "//") {
		return path
	}
	host := strings.TrimLeft(path, "/")
	if slash := strings.IndexByte(host, '/'); slash >= 0 {
		return host[slash:]
	}
	return "/"
}

// cutParameters takes what follows a semicolon from each segment.
func cutParameters(path string) string {
	kept := make([]byte, 0, len(path))
	cut := false
	for i := range len(path) {
		cut = path[i] != '/' && (cut || path[i] == ';')
		if !cut {
			kept = append(kept, path[i])
		}
	}
	return string(kept)
}

// resolveDots resolves the segments "." and "..". An empty segment is one that ".." takes
// away.
func resolveDots(path string) string {
	if !hasDots(path) {
		return path
	}
	kept := make([]byte, 0, len(path))
	for rest, more := path[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if !isDots(segment) {
			kept = append(append(kept, '/'), segment...)
			continue
		}
		if segment == ".." && len(kept) > 0 {
			kept = kept[:bytes.LastIndexByte(kept, '/')]
		}
		if !more {
			kept = append(kept, '/') // a/.. is the folder: it keeps its slash
		}
	}
	return string(kept)
}

func hasDots(path string) bool {
	for {
		at := strings.Index(path, "/.")
		if at < 0 {
			return false
		}
		path = path[at+1:]
		segment, _, _ := strings.Cut(path[:min(len(path), 3)], "/")
		if isDots(segment) {
			return true
		}
	}
}

func isDots(segment string) bool { return segment == "." || segment == ".." }

// decodeEscapes decodes the escapes of a path once, with those of slashes or without. What
// is no escape stays as it is.
func decodeEscapes(path string, slashes bool) string {
	decoded := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+2 >= len(path) || unhex(path[i+1]) < 0 || unhex(path[i+2]) < 0 {
			decoded = append(decoded, path[i])
			continue
		}
		c := byte(unhex(path[i+1])<<4 | unhex(path[i+2]))
		i += 2
		if c == '/' && !slashes {
			decoded = append(decoded, "%2F"...)
			continue
		}
		decoded = append(decoded, c)
	}
	return string(decoded)
}

// decodeOverlong decodes what UTF-8 must not be: a character of ASCII in two to four bytes.
func decodeOverlong(path string) string {
	if isASCII(path) {
		return path
	}
	decoded := make([]byte, 0, len(path))
	for i := 0; i < len(path); {
		c, size := overlong(path[i:])
		decoded = append(decoded, c)
		i += size
	}
	return string(decoded)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// overlong returns the character at the start of the text and how many bytes it has.
func overlong(text string) (c byte, size int) {
	isMore := func(i int) bool { return text[i]&0xc0 == 0x80 }
	switch {
	case len(text) >= 2 && text[0]&0xfe == 0xc0 && isMore(1):
		return text[0]<<6 | text[1]&0x3f, 2
	case len(text) >= 3 && text[0] == 0xe0 && text[1]&0xfe == 0x80 && isMore(2):
		return text[1]<<6 | text[2]&0x3f, 3
	case len(text) >= 4 && text[0] == 0xf0 && text[1] == 0x80 && text[2]&0xfe == 0x80 && isMore(3):
		return text[2]<<6 | text[3]&0x3f, 4
	default:
		return text[0], 1
	}
}
