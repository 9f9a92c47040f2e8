package compress

import (
	"iter"
	"net/http"
	"slices"
	"strings"
)

// Verdict is what is decided about a response.
type Verdict struct {
	// Coding is that of the body. Identity: it stays as it is.
	Coding Coding
	// varies means that other clients may get another coding.
	varies bool
	// weakens means that the entity tag must not be a strong one, whatever the coding.
	weakens bool
}

// summed are fields that are computed from the encoded body. A signature may cover such a
// field, or Content-Encoding itself. A response with one of them stays as it is: without the
// field the client could not check what the backend wants checked.
var summed = [...]string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5", "Signature"}

// OfBody reports whether a field, in its canonical form, is about the encoded body. As a trailer it must not follow another
// body.
func OfBody(name string) bool { return name == "Etag" || slices.Contains(summed[:], name) }

// Request is what the client has asked for.
type Request struct {
	Method string
	Header http.Header
	HTTP10 bool // the client knows no HTTP/1.1
}

// Decide decides about a response with a known length, or -1. Answers to other methods than
// GET and HEAD stay as they are: a client may send the tag of such an answer in If-Match, where
// a weak one fits nothing (RFC 9110, 13.1.1).
func (p *Policy) Decide(r Request, status int, header http.Header, length int64) Verdict {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return Verdict{}
	}
	switch {
	case status == http.StatusNotModified:
		return Verdict{varies: p.suits(header, false), weakens: confirmsWeak(r.Header["If-None-Match"], header["Etag"])}
	case status == http.StatusPartialContent:
		return Verdict{varies: p.suits(header, false)}
	case !p.mayEncode(status, header, length):
		return Verdict{}
	case r.Header["Range"] != nil, hasDirective(r.Header["Cache-Control"], "no-transform"):
		return Verdict{varies: true}
	case r.HTTP10: // the end of a body would be hard to see
		return Verdict{varies: true}
	}
	coding := Negotiate(r.Header["Accept-Encoding"], p.Codings)
	if r.Method == http.MethodHead && length < 0 {
		// The answer to GET may be shorter than MinBytes.
		return Verdict{varies: true, weakens: coding != Identity}
	}
	return Verdict{Coding: coding, varies: true}
}

// mayEncode reports whether a whole response would be compressed for a client that accepts it.
func (p *Policy) mayEncode(status int, header http.Header, length int64) bool {
	switch {
	case status < http.StatusOK, status == http.StatusNoContent, status == http.StatusResetContent:
		return false
	case header["Content-Range"] != nil:
		return false
	case length >= 0 && length < p.MinBytes:
		return false
	}
	return p.suits(header, true)
}

// suits reports whether a response with such a header would be compressed. A part of one, and
// the news that it has not changed, need not tell its type. If not, it may be any.
func (p *Policy) suits(header http.Header, whole bool) bool {
	types := header["Content-Type"]
	tells := whole || len(types) > 0 && !strings.HasPrefix(strings.ToLower(types[0]), "multipart/byteranges")
	switch {
	case header["Content-Encoding"] != nil:
		return false
	case tells && (len(types) != 1 || !p.lists(types[0])):
		return false
	case Forbidden(header):
		return false
	}
	for _, name := range summed {
		if header[name] != nil || hasDirective(header["Trailer"], name) {
			return false
		}
	}
	return true
}

// Forbidden reports whether a response says that its body must stay as it is (RFC 9111, 5.2.2.6).
func Forbidden(header http.Header) bool { return hasDirective(header["Cache-Control"], "no-transform") }

// Without is the verdict if nothing can be encoded now.
func (v Verdict) Without() Verdict { return Verdict{varies: v.varies} }

// Apply changes the header of the response as the verdict says.
func (v Verdict) Apply(header http.Header) {
	if v.varies {
		vary(header)
	}
	if v.weakens || v.Coding != Identity {
		weaken(header)
	}
	if v.Coding == Identity {
		return
	}
	header["Content-Encoding"] = []string{v.Coding.String()}
	delete(header, "Content-Length")
	delete(header, "Accept-Ranges") // ranges would be those of the body as it is
}

// vary tells caches that the response depends on Accept-Encoding (RFC 9110, 12.5.5).
func vary(header http.Header) {
	if hasDirective(header["Vary"], "Accept-Encoding") || hasDirective(header["Vary"], "*") {
		return
	}
	header["Vary"] = append(header["Vary"], "Accept-Encoding")
}

// weaken makes a strong entity tag a weak one: two bodies with the same strong tag have the
// same bytes (RFC 9110, 8.8.1).
func weaken(header http.Header) {
	tags := header["Etag"]
	switch {
	case len(tags) == 1 && strings.HasPrefix(tags[0], `"`):
		header["Etag"] = []string{"W/" + tags[0]}
	case len(tags) == 1 && strings.HasPrefix(tags[0], "W/"):
	default:
		delete(header, "Etag") // it is not known what it says, if anything
	}
}

// confirmsWeak reports whether a 304 confirms a response whose tag was made weak. A cache
// would not find it by the strong tag (RFC 9111, 4.3.4).
func confirmsWeak(asked, tags []string) bool {
	if len(tags) != 1 || !strings.HasPrefix(tags[0], `"`) {
		return false
	}
	strong, weak := false, false
	for _, list := range asked {
		for element := range entityTags(list) {
			strong = strong || element == tags[0]
			weak = weak || strings.TrimPrefix(element, "W/") == tags[0] && element != tags[0]
		}
	}
	return weak && !strong
}

// entityTags returns the tags of a list. A tag may have commas within its quotes (RFC 9110, 8.8.3). What is no tag ends the
// list.
func entityTags(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			list = strings.TrimLeft(list, " \t,")
			opaque := strings.TrimPrefix(list, "W/")
			if opaque == "" || opaque[0] != '"' {
				return
			}
			end := strings.IndexByte(opaque[1:], '"')
			if end < 0 {
				return
			}
			length := len(list) - len(opaque) + end + 2
			if !yield(list[:length]) {
				return
			}
			list = list[length:]
		}
	}
}

// hasDirective reports whether a list has a name, with a value or without.
func hasDirective(lists []string, name string) bool {
	for _, list := range lists {
		for list != "" {
			var element string
			element, list, _ = strings.Cut(list, ",")
			element, _, _ = strings.Cut(element, "=")
			if strings.EqualFold(strings.Trim(element, " \t"), name) {
				return true
			}
		}
	}
	return false
}
