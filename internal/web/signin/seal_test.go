package signin

import (
	"bytes"
	"testing"
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
