package server

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

const (
	// maxURI is how long the path and the parameters of a request may be together.
	maxURI = 8 << 10
	// rememberedUsers is of how many users the rate is known, for rememberedFor.
	rememberedUsers = 5000
	rememberedFor   = 10 * time.Minute
)

// policy is what a page of the monitor may do: show what the monitor itself serves, and nothing else. No script gets text into
// the page as HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secure sets the headers that every answer has. No header lets another site read one.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
			"Cache-Control":                "no-store",
			"Vary":                         "Authorization, Cookie",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// guard refuses requests that no client of the monitor sends.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !slices.Contains(s.options.Hosts, hostOf(r.Host)):
			// A page of another site whose name leads here (DNS rebinding) has that name in this header.
			refuse(w, fail(api.WrongHost, "the monitor is not known by this name; set it among its hosts"))
		case len(r.RequestURI) > maxURI:
			refuse(w, fail(api.TooLarge, "the address is longer than %d bytes", maxURI))
		case impersonates(r.Header):
			refuse(w, fail(api.BadRequest, "the monitor does not act as another user: use a token of that user"))
		case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
			refuse(w, fail(api.NotAllowed, "another site may not ask the monitor"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hostOf returns the name in a Host header, in small letters and without a port.
func hostOf(header string) string {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// impersonates tells that a request has headers by which the API server, or what stands before it, says who a user is. Nothing
// is concluded from them; whoever sends them expects something else.
func impersonates(header http.Header) bool {
	for name := range header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "impersonate-") || strings.HasPrefix(lower, "x-remote-") {
			return true
		}
	}
	return false
}

// get lets requests through that read, and have no body.
func (s *server) get(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			f := fail(api.NotAllowed, "this can only be read")
			f.Code = http.StatusMethodNotAllowed
			refuse(w, f)
		case r.ContentLength != 0:
			refuse(w, fail(api.TooLarge, "a request that reads has no body"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// limits bound what users may ask for at a time.
type limits struct {
	rate  rate.Limit
	burst int
	// users has the rate of each user.
	users *cache.LRUExpireCache

	mutex            sync.Mutex
	answers, streams room
}

// room is for a number of requests, of which one user gets a share.
type room struct {
	all, each int
	used      int
	by        map[userID]int
}

func newLimits(o *Options) *limits {
	return &limits{
		rate: rate.Limit(o.Rate), burst: o.Burst, users: newCache(rememberedUsers, o.Clock),
		answers: room{all: o.Parallel, each: max(o.Parallel/4, 1), by: map[userID]int{}},
		streams: room{all: o.Streams, each: max(o.Streams/10, 1), by: map[userID]int{}},
	}
}

// enter begins a request of a user. Leave ends it.
func (l *limits) enter(who userID, stream bool, now time.Time) (leave func(), err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	pace, ok := l.users.Get(who)
	if !ok {
		pace = rate.NewLimiter(l.rate, l.burst)
	}
	l.users.Add(who, pace, rememberedFor)
	if !pace.(*rate.Limiter).AllowN(now, 1) {
		return nil, fail(api.TooMany, "you have sent too many requests; wait a moment")
	}
	in := &l.answers
	if stream {
		in = &l.streams
	}
	if in.used >= in.all || in.by[who] >= in.each {
		return nil, fail(api.TooMany, "too many requests are being answered at the same time; wait a moment")
	}
	in.used++
	in.by[who]++
	return func() { l.leave(in, who) }, nil
}

func (l *limits) leave(in *room, who userID) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	in.used--
	if in.by[who]--; in.by[who] == 0 {
		delete(in.by, who)
	}
}
