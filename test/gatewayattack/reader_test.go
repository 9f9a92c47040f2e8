package gatewayattack

import (
	"bytes"
	"strconv"
	"strings"
)

// reader is a way to read requests off a connection. The zero value is the strict one; each field is a liberty that
// servers take, or took.
type reader struct {
	name string
	// bareLF and bareCR end lines.
	bareLF, bareCR bool
	// lengthFirst prefers Content-Length to Transfer-Encoding, lastLength the last of several lengths to the first.
	lengthFirst, lastLength bool
	// anyCoding is content with "chunked" anywhere in Transfer-Encoding; noCoding knows no codings at all, noLength no
	// lengths.
	anyCoding, noCoding, noLength bool
	// spaces are allowed before the colon of a field; underscores are taken for hyphens.
	spaces, underscores bool
	// folds joins a line that begins with white space to the one before it.
	folds bool
	// looseSizes reads as much of a length or the size of a chunk as is a number, and looseEnds needs no line end after
	// the data of a chunk.
	looseSizes, looseEnds bool
	// nul ends a value.
	nul bool
}

// strictly is how a server should read.
var strictly = reader{name: "strict"}

// readers are those that have to agree on what the gateway sends.
var readers = []reader{
	strictly,
	{name: "bare LF", bareLF: true},
	{name: "bare CR", bareLF: true, bareCR: true},
	{name: "length first", lengthFirst: true},
	{name: "last length", lengthFirst: true, lastLength: true},
	{name: "any coding", anyCoding: true},
	{name: "spaces before colons", spaces: true, anyCoding: true},
	{name: "underscores", underscores: true, lengthFirst: true},
	{name: "underscores, the last length", underscores: true, lengthFirst: true, lastLength: true},
	{name: "underscores, any coding", underscores: true, anyCoding: true},
	{name: "folded lines", folds: true, bareLF: true, anyCoding: true},
	{name: "loose numbers", looseSizes: true, looseEnds: true, bareLF: true},
	{name: "NUL ends values", nul: true, anyCoding: true},
}

// message is a request as a reader reads it.
type message struct {
	method, target, version string
	fields                  [][2]string // names in lower case
	head                    []byte
	body                    []byte // decoded
	trailers                [][2]string
	whole                   bool
}

func (m *message) values(name string) []string {
	var values []string
	for _, field := range m.fields {
		if field[0] == name {
			values = append(values, field[1])
		}
	}
	return values
}

func (m *message) value(name string) string { return strings.Join(m.values(name), ",") }

type progress int

const (
	whole  progress = iota
	part            // the head is there, the body is not
	nought          // not even the head
	broken          // it is no request
)

// next reads a request from the beginning of what came, and how many bytes it takes.
func (r *reader) next(in []byte) (*message, int, progress) {
	headEnd := r.headEnd(in)
	if headEnd < 0 {
		return nil, 0, nought
	}
	m := r.head(in[:headEnd])
	if m == nil {
		return nil, 0, broken
	}
	n, state := r.body(m, in[headEnd:])
	m.whole = state == whole
	return m, headEnd + n, state
}

// line returns the first line without its end, and where the next one begins; -1 if there is none.
func (r *reader) line(in []byte) ([]byte, int) {
	for i, c := range in {
		switch {
		case c == '\r' && i+1 < len(in) && in[i+1] == '\n':
			return in[:i], i + 2
		case c == '\n' && r.bareLF, c == '\r' && r.bareCR && i+1 < len(in):
			return in[:i], i + 1
		}
	}
	return nil, -1
}

func (r *reader) headEnd(in []byte) int {
	for at := 0; ; {
		line, next := r.line(in[at:])
		if next < 0 {
			return -1
		}
		at += next
		if len(line) == 0 && at > next { // empty lines before a request do not end it
			return at
		}
	}
}

func (r *reader) head(in []byte) *message {
	m := &message{head: in}
	line, next := r.line(in)
	for len(line) == 0 && next > 0 && next < len(in) {
		in = in[next:]
		line, next = r.line(in)
	}
	words := strings.Split(string(line), " ")
	if len(words) != 3 || words[0] == "" || words[1] == "" || !strings.HasPrefix(words[2], "HTTP/") {
		return nil
	}
	m.method, m.target, m.version = words[0], words[1], words[2]
	fields, ok := r.fields(in[next:])
	if !ok {
		return nil
	}
	m.fields = fields
	return m
}

func (r *reader) fields(in []byte) ([][2]string, bool) {
	var fields [][2]string
	for len(in) > 0 {
		line, next := r.line(in)
		if next < 0 || len(line) == 0 {
			break
		}
		in = in[next:]
		if line[0] == ' ' || line[0] == '\t' {
			if !r.folds || len(fields) == 0 {
				return nil, false
			}
			fields[len(fields)-1][1] += " " + strings.Trim(string(line), " \t")
			continue
		}
		name, value, found := strings.Cut(string(line), ":")
		trimmed := strings.TrimRight(name, " \t\v")
		if !found || trimmed == "" || (trimmed != name && !r.spaces) {
			return nil, false
		}
		trimmed = strings.ToLower(trimmed)
		if r.underscores {
			trimmed = strings.ReplaceAll(trimmed, "_", "-")
		}
		if r.nul {
			value, _, _ = strings.Cut(value, "\x00")
		}
		fields = append(fields, [2]string{trimmed, strings.Trim(value, " \t")})
	}
	return fields, true
}

func (r *reader) body(m *message, in []byte) (int, progress) {
	codings, lengths := m.values("transfer-encoding"), m.values("content-length")
	if len(codings) > 0 && !r.noCoding && (!r.lengthFirst || len(lengths) == 0) {
		coding := strings.ToLower(strings.Join(codings, ","))
		if coding == "chunked" || (r.anyCoding && strings.Contains(coding, "chunked")) {
			return r.chunks(m, in)
		}
		if !r.anyCoding {
			return 0, broken
		}
	}
	if len(lengths) == 0 || r.noLength {
		return 0, whole
	}
	if !r.lengthFirst && !r.looseSizes && (len(lengths) > 1 || len(codings) > 0) {
		return 0, broken
	}
	text := lengths[0]
	if r.lastLength {
		text = lengths[len(lengths)-1]
	}
	length, ok := r.number(text, 10)
	if !ok {
		return 0, broken
	}
	m.body = in[:min(length, len(in))]
	if len(in) < length {
		return len(in), part
	}
	return length, whole
}

func (r *reader) number(text string, base int) (int, bool) {
	if r.looseSizes {
		digits := hexDigits[:base]
		text = strings.ToLower(strings.TrimLeft(text, " \t+"))
		if base == 16 {
			text = strings.TrimPrefix(text, "0x")
		}
		if end := strings.IndexFunc(text, func(c rune) bool { return !strings.ContainsRune(digits, c) }); end >= 0 {
			text = text[:end]
		}
	}
	n, err := strconv.ParseUint(text, base, 31)
	if err != nil || text[0] == '+' {
		return 0, false
	}
	return int(n), true
}

func (r *reader) chunks(m *message, in []byte) (int, progress) {
	at := 0
	for {
		line, next := r.line(in[at:])
		if next < 0 {
			return len(in), part
		}
		size, _, _ := strings.Cut(string(line), ";")
		n, ok := r.number(strings.TrimRight(size, " \t"), 16)
		if !ok {
			return at, broken
		}
		at += next
		if n == 0 {
			break
		}
		if at+n > len(in) {
			m.body = append(m.body, in[at:]...)
			return len(in), part
		}
		m.body = append(m.body, in[at:at+n]...)
		at += n
		switch after, end := r.line(in[at:]); {
		case end > 0 && len(after) == 0:
			at += end
		case r.looseEnds && at < len(in):
		case at+2 <= len(in):
			return at, broken
		default:
			return len(in), part
		}
	}
	return r.trailers(m, in, at)
}

func (r *reader) trailers(m *message, in []byte, at int) (int, progress) {
	begin := at
	for {
		line, next := r.line(in[at:])
		if next < 0 {
			return len(in), part
		}
		at += next
		if len(line) == 0 {
			break
		}
	}
	trailers, ok := r.fields(in[begin:at])
	if !ok {
		return at, broken
	}
	m.trailers = trailers
	return at, whole
}

// all reads every request of a connection. The last one may be a part of one, or none at all: then tail says what.
func (r *reader) all(in []byte) (messages []*message, tail progress) {
	for len(bytes.TrimLeft(in, "\r\n")) > 0 {
		m, n, state := r.next(in)
		if m != nil && state != broken {
			messages = append(messages, m)
		}
		if state != whole {
			return messages, state
		}
		in = in[n:]
	}
	return messages, whole
}
