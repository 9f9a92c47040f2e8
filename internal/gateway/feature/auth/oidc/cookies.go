package oidc

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
)

const (
	// maxPiece is how many characters of a session one cookie has. Browsers keep cookies of 4,096 bytes with their name and
	// attributes. maxPieces bounds how many cookies a session takes: requests carry all of them.
	maxPiece  = 3500
	maxPieces = 5
	maxSealed = maxPieces * maxPiece
	// slots are the log-ins that a browser may have begun at the same time, for example in several tabs. Each is a cookie, and
	// requests carry all of them.
	slots = "abcdefghijklmnop"
	// maxCookies bounds the cookies of a request that are looked at.
	maxCookies = 256

	namePrefix = feature.LoginCookies
	// hostPrefix makes browsers take a cookie from this host only, over TLS, and for all of its paths. No other host of the
	// domain can set one.
	hostPrefix = "__Host-"
)

// Cookies are those of a request, by name.
type Cookies map[string]string

// ReadCookies reads the fields Cookie of a request, but for cookies that are not of this package. A name that comes twice is
// empty: another host of the domain could have set one of the two.
func ReadCookies(fields []string) Cookies {
	cookies, twice, seen := Cookies{}, map[string]bool{}, 0
	for _, field := range fields {
		for pair := range strings.SplitSeq(field, ";") {
			if seen++; seen > maxCookies {
				return Cookies{}
			}
			name, value := cutPair(pair)
			if !isOurs(name) {
				continue
			}
			if _, known := cookies[name]; known {
				twice[name] = true
			}
			cookies[name] = value
		}
	}
	for name := range twice {
		cookies[name] = ""
	}
	return cookies
}

func cutPair(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	return strings.Trim(name, " \t"), strings.Trim(value, " \t")
}

// isOurs reports whether a cookie is one that this package sets, for whichever route.
func isOurs(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, hostPrefix), namePrefix)
}

// Mentions reports whether a text has the name of one of our cookies in it, in whatever case. Where others than this package
// write or read cookies, that is enough to take it for one: some readers divide cookies at commas too, some do not know that
// names have a case, and browsers send a cookie without a name as its value.
func Mentions(text string) bool {
	for i := 0; i+len(namePrefix) <= len(text); i++ {
		if text[i]|0x20 == namePrefix[0] && strings.EqualFold(text[i:i+len(namePrefix)], namePrefix) {
			return true
		}
	}
	return false
}

// Strip removes all cookies that this package sets from a field Cookie. No backend gets them: one could use them to come in as
// the client.
func Strip(field string) string {
	if !Mentions(field) {
		return field
	}
	var kept []string
	for pair := range strings.SplitSeq(field, ";") {
		if !Mentions(pair) {
			kept = append(kept, strings.Trim(pair, " \t"))
		}
	}
	return strings.Join(kept, "; ")
}

// jar are the names of the cookies of one client, for requests over TLS or not.
type jar struct {
	prefix string
	secure bool
}

func (j jar) name(suffix string) string {
	if j.secure {
		return hostPrefix + j.prefix + suffix
	}
	return j.prefix + suffix
}

func (j jar) piece(i int) string { return j.name(".s" + strconv.Itoa(i)) }

// login is the name of the cookie for a log-in that has begun.
func (j jar) login(slot string) string { return j.name(".l" + slot) }

// freeSlot returns the slot for one more log-in. It is a random one: several tabs may begin at the same time, with the same
// cookies. If none is free, the log-in takes the place of another one.
func (j jar) freeSlot(in Cookies) string {
	var free []string
	for slot := range strings.SplitSeq(slots, "") {
		if _, taken := in[j.login(slot)]; !taken {
			free = append(free, slot)
		}
	}
	if len(free) == 0 {
		free = strings.Split(slots, "")
	}
	return free[rand.N(len(free))]
}

// join puts the pieces of a session together again. The first one says how many there are.
func (j jar) join(in Cookies) (string, bool) {
	count, text, found := strings.Cut(in[j.piece(0)], ".")
	pieces, err := strconv.Atoi(count)
	if !found || err != nil || pieces < 1 || pieces > maxPieces || strconv.Itoa(pieces) != count {
		return "", false
	}
	whole := &strings.Builder{}
	whole.WriteString(text)
	for i := 1; i < pieces; i++ {
		piece := in[j.piece(i)]
		if piece == "" {
			return "", false
		}
		whole.WriteString(piece)
	}
	return whole.String(), whole.Len() <= maxSealed
}

// split makes the cookies of a session. It returns false if it is too large.
func (j jar) split(text string, age int) ([]*http.Cookie, bool) {
	pieces := (len(text) + maxPiece - 1) / maxPiece
	if pieces < 1 || pieces > maxPieces {
		return nil, false
	}
	var cookies []*http.Cookie
	for i := range pieces {
		value := text[i*maxPiece : min((i+1)*maxPiece, len(text))]
		if i == 0 {
			value = strconv.Itoa(pieces) + "." + value
		}
		cookies = append(cookies, j.cookie(j.piece(i), value, age))
	}
	return cookies, true
}

// cookie makes a cookie that scripts cannot read and that requests of other sites do not carry, but for links. An age of -1
// removes it.
func (j jar) cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age, Secure: j.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// clear removes the session, with all cookies of it that a request has.
func (j jar) clear(in Cookies) []*http.Cookie { return j.clearFrom(in, 0) }

// clearFrom removes the pieces of a session from one on.
func (j jar) clearFrom(in Cookies, first int) []*http.Cookie {
	var cookies []*http.Cookie
	for i := first; i < maxPieces; i++ {
		if _, has := in[j.piece(i)]; has {
			cookies = append(cookies, j.cookie(j.piece(i), "", -1))
		}
	}
	return cookies
}
