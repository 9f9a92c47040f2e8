package store

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// maxSeconds is what larger numbers of seconds count as (RFC 9111, 1.2.2).
	maxSeconds = 1 << 31
	longest    = maxSeconds * time.Second
)

// control is what Cache-Control says. A directive that is written in a way that cannot be understood makes all of it broken.
type control struct {
	broken bool
	// flags are the directives that are there, with or without a value.
	flags map[string]bool
	// times are the values of directives with a time.
	times map[string]time.Duration
}

// timed are the directives with a time.
var timed = map[string]bool{"max-age": true, "s-maxage": true, "min-fresh": true, "max-stale": true, "stale-while-revalidate": true, "stale-if-error": true}

// readControl reads all fields Cache-Control.
func readControl(fields []upstream.Field) control {
	c := control{flags: map[string]bool{}, times: map[string]time.Duration{}}
	for _, field := range fields {
		if strings.EqualFold(field.Name, "Cache-Control") {
			c.read(field.Value)
		}
	}
	return c
}

func (c *control) read(text string) {
	for {
		text = strings.TrimLeft(text, " \t,")
		if text == "" {
			return
		}
		end := strings.IndexAny(text, "=, \t")
		if end < 0 {
			end = len(text)
		}
		name, value, valued, ok := strings.ToLower(text[:end]), "", false, httpguts.ValidHeaderFieldName(text[:end])
		text = text[end:]
		if strings.HasPrefix(text, "=") {
			valued = true
			read := false
			value, text, read = readValue(text[1:])
			ok = ok && read
		}
		text = strings.TrimLeft(text, " \t")
		if !ok || text != "" && text[0] != ',' {
			c.broken = true // what follows might be read as something else by others
			return
		}
		c.add(name, value, valued)
	}
}

// readValue reads a token or a quoted string.
func readValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ", \t")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], end > 0 && strings.IndexByte(text[:end], '"') < 0
	}
	out := &strings.Builder{}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		out.WriteByte(text[i])
	}
	return "", "", false
}

// add adds a directive. Of two different times the shorter one counts.
func (c *control) add(name, value string, valued bool) {
	before := c.flags[name]
	c.flags[name] = true
	if !timed[name] || name == "max-stale" && !valued {
		return
	}
	read, ok := readSeconds(value)
	if !ok {
		c.broken = true
		return
	}
	if known, has := c.times[name]; before && has {
		read = min(known, read)
	}
	c.times[name] = read
}

// readSeconds reads a number of seconds, which is not negative.
func readSeconds(text string) (time.Duration, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	number := int64(0)
	for i := range len(text) {
		if number = number*10 + int64(text[i]-'0'); number > maxSeconds {
			return longest, true
		}
	}
	return time.Duration(number) * time.Second, true
}

// seconds writes a time as whole seconds.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(max(0, d)/time.Second), 10) }

// one returns the value of a field that must not be there twice with different values. several tells that it is.
func one(fields []upstream.Field, name string) (value string, found, several bool) {
	for _, field := range fields {
		if !strings.EqualFold(field.Name, name) {
			continue
		}
		several = several || found && field.Value != value
		value, found = field.Value, true
	}
	return value, found, several
}

// has reports whether there is a field.
func has(fields []upstream.Field, name string) bool {
	_, found, _ := one(fields, name)
	return found
}

// date reads a field with a time. ok is false if there is none that can be understood.
func date(fields []upstream.Field, name string) (at time.Time, ok bool) {
	value, found, several := one(fields, name)
	if !found || several {
		return time.Time{}, false
	}
	at, err := http.ParseTime(value)
	return at, err == nil
}
