package table

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxReadings bounds the number of readings of a path, and maxReadingBytes their total
	// length. The client of such a request is not authenticated yet, so the work must be
	// bounded. A path of 8 KiB may still have eight readings.
	maxReadings     = 128
	maxReadingBytes = 64 << 10

	// maxDecodings is how often escapes may be decoded: once by the server itself, and once
	// more by a server behind it.
	maxDecodings = 2
)

// reading is an intermediate form of a path while a server reads it.
type reading struct {
	path    string
	decoded int // how often its escapes were decoded

	// ended means that an escaped character ended the path. If that was a question mark,
	// query is what followed it. Both are used only if routes look at the query.
	ended bool
	query string
}

// everyReading reports whether holds is true for each reading of a path. A reading is what a
// known server makes of the path of a request, escaped as it was received. Servers differ in
// whether they do these steps:
//
//   - treat a backslash as a slash,
//   - remove what follows a semicolon, from a segment or from the whole path,
//   - remove empty segments, or treat what follows two leading slashes as a host,
//   - resolve "." and "..", escaped or not, with a slash left if one was the last segment,
//   - decode an escaped slash with the other escapes, or leave it as %2F,
//   - decode escapes a second time, and with them characters in overlong UTF-8,
//   - end the path at an escaped zero byte, question mark or number sign,
//   - cut control characters off.
//
// They also differ in the order of the steps. So the readings are the results of all orders,
// with the escapes decoded at least once. If a path has more readings than a harmless path
// can have, the result is false. If a path was forwarded in another spelling, pass both
// spellings at once, because they share most readings.
func everyReading(holds func(path string) bool, escaped ...string) bool {
	return newReadings(nil, escaped...).allHold(func(path, _ string) bool { return holds(path) })
}

// readings grows until no step leads to a new reading, or until there are too many.
type readings struct {
	all     []reading
	known   map[reading]bool
	query   *receivedQuery // nil: only paths matter
	bytes   int            // their total length
	tooMany bool
}

func newReadings(query *receivedQuery, escaped ...string) *readings {
	s := &readings{known: map[reading]bool{}, query: query}
	for _, path := range escaped {
		s.add(reading{path: path})
	}
	return s
}

// allHold reports whether holds is true for each reading, with each query that a server may
// see with it.
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
		r.decoded = maxDecodings // nothing is left to decode
	}
	// A reading that may be decoded once more leads to all readings of one that may not.
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

// readOn adds the readings that one more step makes of r.
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
		step(strings.TrimSuffix(resolved, "/")) // some servers treat a/b/.. as a file
	}
	step(decodeOverlong(r.path))
	step(cutControls(r.path))
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

// mergeSlashes removes empty segments, except the last one, which stands for a slash at the
// end.
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

// cutHost removes the host that a server sees if it reads the path as a relative URL.
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

// cutParameters removes from each segment what follows a semicolon.
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

// resolveDots resolves "." and "..". An empty segment counts as a segment for "..".
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
			kept = append(kept, '/') // a/.. is a directory, so it keeps its slash
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

// decodeEscapes decodes the escapes of a path once, including those of slashes or not, and
// those of IIS (%u002F). Invalid escapes stay.
func decodeEscapes(path string, slashes bool) string {
	decoded := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if r, ok := wideEscape(path[i:]); ok && (r != '/' || slashes) {
			decoded = utf8.AppendRune(decoded, r)
			i += len("u002F")
			continue
		}
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

// wideEscape decodes the escape of IIS at the start of a text: %u and four digits.
func wideEscape(text string) (r rune, ok bool) {
	if len(text) < len("%u002F") || text[0] != '%' || text[1]|0x20 != 'u' {
		return 0, false
	}
	for i := 2; i < len("%u002F"); i++ {
		digit := unhex(text[i])
		if digit < 0 {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

// decodeOverlong decodes invalid UTF-8: an ASCII character in two to four bytes.
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

// overlong returns the character at the start of the text and the number of its bytes.
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
