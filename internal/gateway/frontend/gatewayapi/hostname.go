package gatewayapi

import (
	"slices"
	"strings"
)

// wildcard begins a hostname that stands for all names below the rest, at any depth, and not
// for the rest itself.
const wildcard = "*."

// covers reports whether every name of b is one of a. Empty stands for every name.
func covers(a, b string) bool {
	if a == "" || a == b {
		return true
	}
	if b == "" || !strings.HasPrefix(a, wildcard) {
		return false
	}
	return strings.HasSuffix(strings.TrimPrefix(b, wildcard), a[1:])
}

// common returns the hostname that stands for the names of both, and whether there is any.
func common(a, b string) (string, bool) {
	switch {
	case covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	default:
		return "", false
	}
}

// served are the hostnames of a route that a listener serves, in the order of the route. A
// route without hostnames takes that of the listener.
func served[T ~string](listener string, route []T) []string {
	if len(route) == 0 {
		return []string{listener}
	}
	var names []string
	for _, name := range route {
		if host, any := common(listener, strings.ToLower(string(name))); any && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	return names
}
