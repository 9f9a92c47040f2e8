package table

import (
	"net/url"
	"strings"
)

// queryValue returns the first value of a query parameter. It allocates only for an escaped
// part of the query. A part with an invalid escape or a semicolon is no parameter, as in
// net/url.
func queryValue(rawQuery, name string) (string, bool) {
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		key, value, _ := strings.Cut(pair, "=")
		key, ok := unescapeQuery(key)
		if !ok || key != name || strings.Contains(pair, ";") {
			continue
		}
		if value, ok = unescapeQuery(value); ok {
			return value, true
		}
	}
	return "", false
}

func unescapeQuery(s string) (string, bool) {
	if !strings.ContainsAny(s, "%+") {
		return s, true
	}
	s, err := url.QueryUnescape(s)
	return s, err == nil
}
