package server

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

// FuzzSeal: what was sealed is opened, what was not is refused, and a sealer for one purpose opens nothing of another.
func FuzzSeal(f *testing.F) {
	f.Add([]byte("2026-11-25.0.1"), "AAAA")
	f.Add([]byte{}, "")
	key := bytes.Repeat([]byte{7}, 32)
	cursors, err := NewSealer(key, "cursors", true)
	if err != nil {
		f.Fatal(err)
	}
	sessions, err := NewSealer(key, "sessions", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte, sealed string) {
		if _, err := cursors.Open(sealed); err == nil {
			t.Fatalf("%q was opened", sealed)
		}
		text := cursors.Seal(content)
		if got, err := cursors.Open(text); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%q, %v", got, err)
		}
		if text != cursors.Seal(content) {
			t.Fatal("the same is sealed in two ways")
		}
		if _, err := sessions.Open(text); err == nil {
			t.Fatal("a cursor is a session")
		}
		if sealed := sessions.Seal(content); sealed == sessions.Seal(content) {
			t.Fatal("two sessions are alike")
		}
		flipped := []byte(text)
		flipped[len(content)%len(flipped)] ^= 2
		if got, err := cursors.Open(string(flipped)); err == nil {
			t.Fatalf("%q was changed and opens as %q", flipped, got)
		}
	})
}

// FuzzParams: whatever is asked, what is read is text without control characters, of parameters that are known, within its bounds,
// and the rest is a bad request.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{"kind=a.b&namespace=c", "since=1h&until=2026-11-25T14:00:00Z", "limit=5", "name=%00", "kind=%zz", "a=b;c=d", "type=Updated,Gap", "since=9999999h"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, query string) {
		read, err := readParams(query, changesParams())
		if err != nil {
			isBadRequest(t, err)
			return
		}
		for name, value := range read {
			if !utf8.ValidString(value) || len(value) > maxParam || strings.ContainsFunc(value, unicode.IsControl) {
				t.Fatalf("%s is %q", name, value)
			}
		}
		kind, _, err := read.kind()
		isBadRequest(t, err)
		if err == nil && strings.ContainsAny(kind.String(), "/*%? ") {
			t.Fatalf("the kind is %q", kind)
		}
		namespace, err := read.namespace()
		isBadRequest(t, err)
		if err == nil && strings.ContainsAny(namespace, "/.*%? ") {
			t.Fatalf("the namespace is %q", namespace)
		}
		for _, name := range []string{paramSince, paramUntil} {
			_, err := read.time(name, now)
			isBadRequest(t, err)
		}
		n, err := read.number(paramLimit, 1, maxLimit)
		isBadRequest(t, err)
		if err == nil && (n < 1 || n > maxLimit) {
			t.Fatalf("the limit is %d", n)
		}
	})
}

func isBadRequest(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if failure, ok := err.(*api.Failure); !ok || failure.Code != http.StatusBadRequest { //nolint:errorlint // it is not wrapped
		t.Fatalf("%v", err)
	}
}

// FuzzHost: only names that are configured get in, however they are written.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"localhost", "LOCALHOST.:80", "[::1]:1", "evil.example.com", "localhost.evil.example.com", "localhost:80:80", "[localhost", "127.0.0.1@evil"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		switch hostOf(header) {
		case "localhost", "127.0.0.1", "::1":
			rest := strings.ToLower(header)
			for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
				if strings.HasPrefix(strings.TrimLeft(rest, "["), name) {
					return
				}
			}
			t.Fatalf("%q counts as this host", header)
		}
	})
}
