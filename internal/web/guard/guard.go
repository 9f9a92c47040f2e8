// Package guard says which requests are let in, how many of them at a time, and which headers every answer has.
package guard

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/signin"
)

const (
	// MaxURI is how long the path and the parameters of a request may be together.
	MaxURI = 8 << 10
	// rememberedUsers is of how many users the rate is known, for rememberedFor.
	rememberedUsers = 5000
	rememberedFor   = 10 * time.Minute
)

// Options say which requests are let in. Everything is required.
type Options struct {
	// Program is what messages call the program, such as monitor.
	Program string
	// Hosts are the names under which the program is reached, in small letters and without a port. A request for another name is refused.
	Hosts []string

	// Rate is how many requests per second a user may send in the long run, and Burst how many at once.
	Rate  float64
	Burst int
	// Parallel is how many requests are answered at a time, streams aside, a fourth of them for one user. Streams is the same for
	// streams, a tenth for one user.
	Parallel, Streams int

	Clock clock.PassiveClock
}

// Policy is what a page may do: show what its own program serves, and nothing else. No script gets text into the page as HTML.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Secure sets the headers that every answer has. No header lets another site read one.
func Secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      Policy,
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

// Protect refuses requests that no client of the program sends.
func Protect(o *Options, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !slices.Contains(o.Hosts, hostOf(r.Host)):
			// A page of another site whose name leads here (DNS rebinding) has that name in this header.
			failure.Refuse(w, failure.New(failure.WrongHost, "the %s is not known by this name; set it among its hosts", o.Program))
		case len(r.RequestURI) > MaxURI:
			failure.Refuse(w, failure.New(failure.TooLarge, "the address is longer than %d bytes", MaxURI))
		case impersonates(r.Header):
			failure.Refuse(w, failure.New(failure.BadRequest, "the %s does not act as another user: use a token of that user", o.Program))
		case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
			failure.Refuse(w, failure.New(failure.NotAllowed, "another site may not ask the %s", o.Program))
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

// impersonates reports whether a request has headers by which the API server, or what stands before it, says who a user is. Nothing
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

// ReadOnly lets requests through that read, and have no body.
func ReadOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			f := failure.New(failure.NotAllowed, "this can only be read")
			f.Code = http.StatusMethodNotAllowed
			failure.Refuse(w, f)
		case r.ContentLength != 0:
			failure.Refuse(w, failure.New(failure.TooLarge, "a request that reads has no body"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Limits bound what users may ask for at a time.
type Limits struct {
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
	by        map[signin.UserID]int
}

// NewLimits returns limits that nobody has used yet.
func NewLimits(o *Options) *Limits {
	return &Limits{
		rate: rate.Limit(o.Rate), burst: o.Burst, users: cache.NewLRUExpireCacheWithClock(rememberedUsers, o.Clock),
		answers: room{all: o.Parallel, each: max(o.Parallel/4, 1), by: map[signin.UserID]int{}},
		streams: room{all: o.Streams, each: max(o.Streams/10, 1), by: map[signin.UserID]int{}},
	}
}

// Enter begins a request of a user, which leave ends.
func (l *Limits) Enter(who signin.UserID, stream bool, now time.Time) (leave func(), err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	pace, ok := l.users.Get(who)
	if !ok {
		pace = rate.NewLimiter(l.rate, l.burst)
	}
	l.users.Add(who, pace, rememberedFor)
	if !pace.(*rate.Limiter).AllowN(now, 1) {
		return nil, failure.New(failure.TooMany, "you have sent too many requests; wait a moment")
	}
	in := &l.answers
	if stream {
		in = &l.streams
	}
	if in.used >= in.all || in.by[who] >= in.each {
		return nil, failure.New(failure.TooMany, "too many requests are being answered at the same time; wait a moment")
	}
	in.used++
	in.by[who]++
	return func() { l.leave(in, who) }, nil
}

func (l *Limits) leave(in *room, who signin.UserID) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	in.used--
	if in.by[who]--; in.by[who] == 0 {
		delete(in.by, who)
	}
}
