package store

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// kept are the statuses of responses that are kept. All of them need a time from the backend.
var kept = []int{200, 203, 204, 300, 301, 302, 307, 308, 404, 405, 410, 414, 501}

// passesBy are the fields of requests that always go to the backend, in lower case.
var passesBy = []string{"range", "if-match", "if-unmodified-since", "if-range"}

// reads reports whether a request only reads a page, so that the cache has to do with it.
func reads(r *Request) bool {
	return r.Plain && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// passes reports whether a request goes to the backend whatever there is.
func passes(r *Request) bool {
	return slices.ContainsFunc(r.Fields, func(field upstream.Field) bool { return slices.Contains(passesBy, strings.ToLower(field.Name)) })
}

// Changes reports whether a method may change what there is at a target (RFC 9110, 9.2.1).
func Changes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// freshness is how long a response may be given from when it was made, as its backend says. 0: not at all.
func freshness(status int, fields []upstream.Field, now time.Time) time.Duration {
	says := readControl(fields)
	switch {
	case says.broken || !slices.Contains(kept, status):
		return 0
	case says.flags["no-store"] || says.flags["private"] || says.flags["no-cache"]:
		return 0
	case has(fields, "Set-Cookie") || has(fields, "Content-Range") || has(fields, "Trailer"):
		return 0
	}
	return lifetime(&says, fields, now)
}

// isForSomebody reports whether a response is for nobody but who has asked, because he has said who he is (RFC 9111, 3.5).
func isForSomebody(r *Request, fields []upstream.Field) bool {
	if !r.Proven && !has(r.Fields, "Authorization") {
		return false
	}
	says := readControl(fields)
	return !says.flags["public"] && !says.flags["s-maxage"] && !says.flags["must-revalidate"]
}

// lifetime is what the response says of its freshness (RFC 9111, 4.2.1). Nothing is guessed.
func lifetime(says *control, fields []upstream.Field, now time.Time) time.Duration {
	for _, name := range []string{"s-maxage", "max-age"} {
		if said, ok := says.times[name]; ok {
			return said
		}
	}
	expires, ok := date(fields, "Expires")
	if !ok {
		return 0
	}
	made, ok := date(fields, "Date")
	if !ok {
		made = now
	}
	return min(max(0, expires.Sub(made)), longest)
}

// ageOf is how old a response was when it came (RFC 9111, 4.2.3). ok is false if it does not say it in one way.
func ageOf(fields []upstream.Field, asked, came time.Time) (age time.Duration, ok bool) {
	value, found, several := one(fields, "Age")
	if several {
		return 0, false
	}
	if found {
		if age, ok = readSeconds(value); !ok {
			return 0, false
		}
	}
	age += came.Sub(asked)
	if made, known := date(fields, "Date"); known {
		age = max(age, came.Sub(made))
	}
	return min(max(0, age), longest), true
}

// wants is what the client says about how old a response may be, and about keeping it.
type wants struct {
	fresh   bool          // it wants one from the backend
	maxAge  time.Duration // -1: it does not say
	minLeft time.Duration
	only    bool // it wants one only if the cache has it
	copies  bool // what it brings may be kept
}

func wantsOf(r *Request) wants {
	asked := readControl(r.Fields)
	w := wants{maxAge: -1, minLeft: asked.times["min-fresh"], only: asked.flags["only-if-cached"], copies: !asked.broken && !asked.flags["no-store"]}
	w.fresh = !w.copies || asked.flags["no-cache"]
	if age, ok := asked.times["max-age"]; ok {
		w.maxAge = age
	}
	if pragma, found, _ := one(r.Fields, "Pragma"); found && !has(r.Fields, "Cache-Control") {
		w.fresh = w.fresh || strings.Contains(strings.ToLower(pragma), "no-cache")
	}
	return w
}

// hasConditions reports whether the client asks whether it has the response already.
func hasConditions(r *Request) bool {
	return has(r.Fields, "If-None-Match") || has(r.Fields, "If-Modified-Since")
}

// of304 are the fields that a 304 has (RFC 9110, 15.4.5).
var of304 = []string{"cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary", "age", "cache-status"}

// unmodified reports whether the client has what would be given (RFC 9110, 13.2.2).
func unmodified(r *Request, status int, fields []upstream.Field) bool {
	if status != http.StatusOK {
		return false
	}
	if has(r.Fields, "If-None-Match") {
		tag, found, _ := one(fields, "ETag")
		return slices.ContainsFunc(r.Fields, func(field upstream.Field) bool {
			return strings.EqualFold(field.Name, "If-None-Match") && matchesTag(field.Value, tag, found)
		})
	}
	since, asked := date(r.Fields, "If-Modified-Since")
	changed, known := date(fields, "Last-Modified")
	return asked && known && !changed.After(since)
}

// matchesTag compares a list of entity tags with one, weakly (RFC 9110, 8.8.3.2).
func matchesTag(list, tag string, found bool) bool {
	if strings.Trim(list, " \t") == "*" {
		return true
	}
	if !found {
		return false
	}
	want := strings.TrimPrefix(tag, "W/")
	for list != "" {
		list = strings.TrimLeft(list, " \t,")
		rest := strings.TrimPrefix(list, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return false
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return false
		}
		if rest[:end+2] == want {
			return true
		}
		list = rest[end+2:]
	}
	return false
}
