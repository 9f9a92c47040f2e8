package oidc

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestOnlyPagesAreSentToTheProvider(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header http.Header
		want   bool
	}{
		"a page":                     {"GET", http.Header{"Accept": {"text/html,application/xml;q=0.9"}, "Sec-Fetch-Mode": {"navigate"}}, true},
		"a page of an old browser":   {"GET", http.Header{"Accept": {"image/png, TEXT/HTML;q=0.5"}}, true},
		"the head of a page":         {"HEAD", http.Header{"Accept": {"text/html"}}, true},
		"a script":                   {"GET", http.Header{"Accept": {"*/*"}, "Sec-Fetch-Mode": {"cors"}}, false},
		"a script that takes pages":  {"GET", http.Header{"Accept": {"text/html"}, "Sec-Fetch-Mode": {"cors"}}, false},
		"an image":                   {"GET", http.Header{"Accept": {"image/avif,*/*"}, "Sec-Fetch-Mode": {"no-cors"}}, false},
		"a form":                     {"POST", http.Header{"Accept": {"text/html"}, "Sec-Fetch-Mode": {"navigate"}}, false},
		"curl":                       {"GET", http.Header{"Accept": {"*/*"}}, false},
		"nothing said":               {"GET", http.Header{}, false},
		"two modes":                  {"GET", http.Header{"Accept": {"text/html"}, "Sec-Fetch-Mode": {"navigate", "cors"}}, false},
		"a WebSocket":                {"GET", http.Header{"Accept": {"text/html"}, "Upgrade": {"websocket"}}, false},
		"a page fetched in advance":  {"GET", http.Header{"Accept": {"text/html"}, "Sec-Purpose": {"prefetch;prerender"}}, false},
		"a type that begins like it": {"GET", http.Header{"Accept": {"text/html5"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsNavigation(test.method, test.header); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestABrowserComesBackToItsHost(t *testing.T) {
	for target, want := range map[string]string{
		"/orders?page=2":         "/orders?page=2",
		"/a//b":                  "/a//b",
		"/%0d%0aset-cookie:x":    "/%0d%0aset-cookie:x",
		"":                       "/",
		"orders":                 "/",
		"//evil.test/":           "/",
		"///evil.test/":          "/",
		`/\evil.test/`:           "/",
		`\evil.test`:             "/",
		`/a\b`:                   "/",
		"https://evil.test/":     "/",
		"/\t/evil.test":          "/",
		"/\r\nLocation: x":       "/",
		"/ö":                     "/",
		"/" + randomText(5000):   "/",
		"javascript:alert(1)":    "/",
		"/?next=//evil.test":     "/?next=//evil.test",
		"/;//evil.test":          "/;//evil.test",
		"/@evil.test":            "/@evil.test",
		"/.//evil.test":          "/.//evil.test",
		"?https://evil.test":     "/",
		"/%2f/evil.test":         "/%2f/evil.test",
		"/#//evil.test":          "/#//evil.test",
		"/..//evil.test/../../x": "/..//evil.test/../../x",
	} {
		if got := SafeTarget(target); got != want {
			t.Errorf("%q: got %q", target, got)
		}
	}
}

// FuzzTarget resolves addresses as a browser does. None of them leads to another host.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/a?b", "//evil", `/\evil`, "/\t/evil", "/.//evil", "https:evil"} {
		f.Add(seed)
	}
	base := &url.URL{Scheme: "https", Host: "shop.test", Path: "/oauth2/callback"}
	f.Fuzz(func(t *testing.T, target string) {
		got := SafeTarget(target)
		// The URL standard removes tabs and line ends, and takes a backslash for a slash.
		asRead := strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(got)
		if !strings.HasPrefix(asRead, "/") || strings.HasPrefix(asRead, "//") || len(got) > maxTarget {
			t.Fatalf("%q leads to %q", target, got)
		}
		parsed, err := url.Parse(asRead)
		if err != nil {
			return // browsers escape what Go refuses
		}
		if to := base.ResolveReference(parsed); to.Host != "shop.test" || to.Scheme != "https" {
			t.Errorf("%q leads to %q", target, to)
		}
	})
}

func TestOtherSitesCannotLogOut(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header http.Header
		want   Consent
	}{
		"a link of the site":                 {"GET", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Accept": {"text/html"}}, ConsentGiven},
		"the user":                           {"GET", http.Header{"Sec-Fetch-Site": {"none"}, "Accept": {"text/html"}}, ConsentGiven},
		"an image that a user has posted":    {"GET", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Sec-Fetch-Mode": {"no-cors"}, "Accept": {"image/*"}}, ConsentMissing},
		"a link that is fetched in advance":  {"GET", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Sec-Purpose": {"prefetch"}, "Accept": {"text/html"}}, ConsentMissing},
		"an image of another site":           {"GET", http.Header{"Sec-Fetch-Site": {"cross-site"}}, ConsentMissing},
		"a page of another host of the site": {"GET", http.Header{"Sec-Fetch-Site": {"same-site"}}, ConsentMissing},
		"two sites":                          {"GET", http.Header{"Sec-Fetch-Site": {"same-origin", "cross-site"}}, ConsentMissing},
		"a browser that does not say":        {"GET", http.Header{}, ConsentAsk},
		"the form with which it is asked":    {"POST", http.Header{"Origin": {"http://shop.test"}}, ConsentGiven},
		"a form of another site":             {"POST", http.Header{"Origin": {"http://evil.test"}}, ConsentMissing},
		"a form of a page without origin":    {"POST", http.Header{"Origin": {"null"}}, ConsentMissing},
		"a form of nobody":                   {"POST", http.Header{}, ConsentMissing},
		"another method":                     {"DELETE", http.Header{"Sec-Fetch-Site": {"same-origin"}}, ConsentMissing},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "http://shop.test/oauth2/logout", http.NoBody)
			r.Header = test.header
			if got := MayLogOut(r.Method, r.Header, "shop.test"); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
