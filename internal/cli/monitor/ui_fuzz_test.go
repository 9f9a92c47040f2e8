package monitor

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// Whatever path a browser sends, one that is passed on stays below the address of the monitor: as it is sent, and after whoever
// stands behind has decoded and cleaned it, also twice.
func FuzzAPathStaysInside(f *testing.F) {
	for _, text := range []string{
		"", "api/v1/changes", "assets/page.js", "../x", "a/../../x", "%2e%2e/x", "..%2fx", "%252e%252e/x", "..\\x", "/x", "a//../../x", "./x", "..", "...", ".../..", "a?b/../..", "\x00/../x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isInside(text) {
			return
		}
		base := &url.URL{Scheme: "http", Host: "cluster", Path: "/api/v1/namespaces/slipway-system/services/slipway-monitor/proxy"}
		sent := base.JoinPath(text).EscapedPath()
		for range 3 {
			if at := path.Clean(sent) + "/"; !strings.HasPrefix(at, base.Path+"/") {
				t.Fatalf("%q leads to %q", text, at)
			}
			decoded, err := url.PathUnescape(sent)
			if err != nil {
				return
			}
			sent = strings.ReplaceAll(decoded, "\\", "/")
		}
	})
}
