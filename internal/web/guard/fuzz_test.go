package guard

import (
	"strings"
	"testing"
)

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
