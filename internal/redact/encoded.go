package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// leastEncoded is how long a run is at least that is decoded.
	leastEncoded = 16
	// maxDepth is how many times what was decoded is decoded again.
	maxDepth = 2
	// decodeFactor and decodeLeast bound how many bytes of a text come out of decoding it: so many times its length.
	decodeFactor = 4
	decodeLeast  = 64 << 10
)

// content is what is in a run.
type content int

const (
	unknownInside content = iota
	textInside
	secretInside
)

// encoded looks at what a run has in it, if it is base64. Lines of the same length are one run, then f.run is the end of the last.
func (f *finder) encoded(start, end int) content {
	if f.depth >= maxDepth {
		return unknownInside
	}
	if !looksDecodable(f.text[start:min(end, start+32)]) {
		return unknownInside
	}
	all := f.joined(start, end)
	decoded, ok := f.decode(all)
	if !ok {
		return unknownInside
	}
	if decoded == nil {
		return secretInside // more than may be looked at
	}
	if len(decoded) < 4 || !isText(decoded) {
		return unknownInside
	}
	if f.known != nil && f.known(string(decoded)) {
		return secretInside
	}
	inner := finder{text: string(decoded), names: f.names, known: f.known, first: true, depth: f.depth + 1, budget: f.budget}
	inner.all()
	if len(inner.spans) > 0 {
		return secretInside
	}
	return textInside
}

// looksDecodable is quick: it reports whether the first characters of a run are a text, or one that was packed.
func looksDecodable(head string) bool {
	decoded := decodeAny(head[:len(head)&^3])
	return bytes.HasPrefix(decoded, gzipHead) || len(decoded) >= 3 && isText(decoded)
}

var gzipHead = []byte{0x1f, 0x8b, 8}

// joined is a run with those in the next lines that go on with it.
func (f *finder) joined(start, end int) string {
	const leastLine = 48
	length := end - start
	if length < leastLine {
		return f.text[start:end]
	}
	var all strings.Builder
	all.WriteString(f.text[start:end])
	for end < len(f.text) && f.text[end-1] != '=' {
		next := end
		for next < len(f.text) && strings.IndexByte(" \t\r\n", f.text[next]) >= 0 {
			next++
		}
		last := runEnd(f.text, next)
		if next == end || last == next || last-next > length {
			break
		}
		all.WriteString(f.text[next:last])
		short := last-next < length
		end, f.run = last, last
		if short {
			break
		}
	}
	return all.String()
}

// decode returns what is in a run, nil if that is more than there is room for, and not ok if it is no base64.
func (f *finder) decode(run string) (decoded []byte, ok bool) {
	if decoded = decodeAny(run); decoded == nil {
		return nil, false
	}
	if *f.budget -= len(decoded); *f.budget < 0 {
		return nil, true
	}
	if !bytes.HasPrefix(decoded, gzipHead) {
		return decoded, true
	}
	reader, err := gzip.NewReader(bytes.NewReader(decoded))
	if err != nil {
		return nil, false
	}
	unpacked, _ := io.ReadAll(io.LimitReader(reader, int64(*f.budget)+1)) // what there is of one that is cut off
	if *f.budget -= len(unpacked); *f.budget < 0 {
		return nil, true
	}
	return unpacked, true
}

// decodeAny decodes base64 of either sort, with and without what fills it up. A character too many at its end is left out.
func decodeAny(run string) []byte {
	run = strings.TrimRight(run, "=")
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		encoding = base64.RawURLEncoding
	}
	decoded, err := encoding.DecodeString(run)
	if err != nil {
		return nil
	}
	return decoded
}

// isText reports whether bytes are a text that people read. The last character may be cut off.
func isText(data []byte) bool {
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size <= 1 {
			return len(data) < utf8.UTFMax && !utf8.FullRune(data)
		}
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return false
		}
		data = data[size:]
	}
	return true
}
