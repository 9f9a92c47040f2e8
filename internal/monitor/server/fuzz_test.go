package server

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/web/failure"
)

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
	if reported, ok := err.(*failure.Failure); !ok || reported.Code != http.StatusBadRequest { //nolint:errorlint // it is not wrapped
		t.Fatalf("%v", err)
	}
}
