package serve

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// The text of pins is in the browsers of clients: another release must read it.
func TestTheTextOfPinsStays(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	p := pin{backendName(keyedName(key, "backend", "shop/app:80")), upstream.PlaceOf(key, "shop/app:80", "10.0.0.1:8080")}
	want(t, "the text", p.String(), "PQT949y-GMsZnTx2KJAMwyXUZMJXyvni")
	q := p
	q.backend[0]++
	want(t, "the text of two", pins{p, q}.String(), p.String()+q.String())
}

func FuzzReadPins(f *testing.F) {
	valid := pin{backend: backendName{1}, place: upstream.PlaceOf([]byte("key"), "app:80", "10.0.0.1:80")}
	f.Add(valid.String())
	f.Add(valid.String() + valid.String())
	f.Add("")
	f.Add(strings.Repeat("=", pinLength))
	f.Add(strings.Repeat("A", pinLength*maxPins))
	f.Fuzz(func(t *testing.T, text string) {
		var read pins
		for p := range readPins(text) {
			read = append(read, p)
		}
		if len(read) > maxPins || len(read)*pinLength > len(text) {
			t.Errorf("%q is read as %d pins", text, len(read))
		}
		if again := read.String(); len(again) == len(text) && again != text {
			t.Errorf("%q is read as %q", text, again)
		}
	})
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
