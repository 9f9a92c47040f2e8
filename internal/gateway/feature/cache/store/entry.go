package store

import (
	"container/list"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// overhead is about what a response takes beside its body and its fields: the entry, its page, and what finds them.
	overhead = 1 << 10
	// fieldOverhead is what a field takes beside its text.
	fieldOverhead = 96
	// maxFieldBytes bounds the fields of a response that is kept.
	maxFieldBytes = 16 << 10
)

// body is the body of a response. Several entries may have it, one after the other: each time that the backend confirms it, there is
// another entry.
type body struct {
	bytes   []byte
	entries int // those that are counted
}

// entry is a response. What a client gets of it never changes. The rest needs Store.mu.
type entry struct {
	backend Backend
	page    *page
	of      fieldsKey
	vary    vary

	status int
	fields []upstream.Field
	body   *body
	// lasts is how long it may be given, age how old it was when it came, and came when that was.
	lasts, age time.Duration
	came       time.Time

	// size is what it takes without its body.
	size int64
	// kept tells that it can be found. It is counted until it is neither kept nor lent.
	kept bool
	// lent is how many requests use it, and lentTo the one whose client pays for that.
	lent   int
	lentTo netip.Addr
	// used grows each time that it is found. onShelf is its place on the shelf: nil if it is not kept, or lent.
	used    uint64
	onShelf *list.Element
}

// newEntry makes an entry with texts of its own. ok is false if its fields are too large to be kept.
func newEntry(fields []upstream.Field, v vary, b *body) (e *entry, ok bool) {
	text, count := 0, len(v)
	for _, field := range v {
		text += len(field.Value) // the names are constants
	}
	for _, field := range fields {
		if strings.EqualFold(field.Name, "Age") {
			continue // it is told anew each time
		}
		text += len(field.Name) + len(field.Value)
		count++
	}
	e = &entry{vary: make(vary, 0, len(v)), fields: make([]upstream.Field, 0, count-len(v)), body: b}
	all := &strings.Builder{} // one piece of memory for all
	all.Grow(text)
	add := func(part string) string {
		from := all.Len()
		all.WriteString(part)
		return all.String()[from:]
	}
	for _, field := range v {
		e.vary = append(e.vary, upstream.Field{Name: field.Name, Value: add(field.Value)})
	}
	for _, field := range fields {
		if !strings.EqualFold(field.Name, "Age") {
			e.fields = append(e.fields, upstream.Field{Name: add(field.Name), Value: add(field.Value)})
		}
	}
	size := text + count*fieldOverhead
	e.size = int64(overhead + size)
	return e, size <= maxFieldBytes
}

// ageAt is how old an entry is (RFC 9111, 4.2.3).
func (e *entry) ageAt(now time.Time) time.Duration {
	return min(e.age+max(0, now.Sub(e.came)), longest)
}

// isFresh reports whether an entry may be given without asking the backend.
func (e *entry) isFresh(p *Policy, w *wants, now time.Time) bool {
	age := e.ageAt(now)
	return age+w.minLeft < min(e.lasts, p.MaxAge) && (w.maxAge < 0 || age <= w.maxAge)
}

// confirmable reports whether the backend can say that an entry is still right.
func (e *entry) confirmable() bool { return e.status == http.StatusOK && len(e.conditions()) > 0 }

// conditions are the fields that ask the backend whether a response is still right.
func (e *entry) conditions() []upstream.Field {
	var fields []upstream.Field
	if tag, found, several := one(e.fields, "ETag"); found && !several {
		fields = append(fields, upstream.Field{Name: "If-None-Match", Value: tag})
	}
	if changed, found, several := one(e.fields, "Last-Modified"); found && !several {
		fields = append(fields, upstream.Field{Name: "If-Modified-Since", Value: changed})
	}
	return fields
}
