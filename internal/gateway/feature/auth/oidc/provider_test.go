package oidc

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// FuzzParseDiscovery publishes arbitrary addresses. Whatever a provider publishes, a browser is sent to an address of its kind, and
// nothing of it breaks the fields of a response.
func FuzzParseDiscovery(f *testing.F) {
	f.Add("https://a.example.com/authorize?x=y", "https://a.example.com/token")
	f.Add("https://a.example.com/\r\nX: y", "//evil")
	f.Add("http://a b/", `https:\\evil`)
	for _, seed := range []string{
		"HTTPS://a.example.com", "https://user:canary@a.example.com/", "https://a.example.com#canary", "javascript:canary", "http://a.example.com", "https://a.example.com/\tb",
		`https://a.example.com/\canary`, "https:a.example.com", "https://a.example.com/authorize?x ", "https://a.example.com/@x?y=@z",
	} {
		f.Add(seed, "")
		f.Add("https://a.example.com", seed)
	}
	f.Fuzz(func(t *testing.T, authorization, end string) {
		text, err := json.Marshal(map[string]any{
			"issuer": "https://a", "authorization_endpoint": authorization, "token_endpoint": "https://a/t", "jwks_uri": "https://a/k", "end_session_endpoint": end,
		})
		if err != nil {
			return
		}
		p, err := parseProvider(text, "https://a")
		if err != nil {
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("the error contains what was published: %v", err)
			}
			return
		}
		c := &Client{config: Config{ClientID: "shop", RedirectPath: "/back"}}
		b := browser(nil)
		for _, address := range []string{c.authURL(p, b, &pending{}), c.LogOutURL(p, b, nil)} {
			if address == "" && end == "" {
				continue
			}
			parsed, err := url.Parse(address)
			if err != nil || parsed.Scheme != "https" || parsed.User != nil || strings.ContainsAny(address, "\r\n\t\x00\\# ") {
				t.Errorf("%q and %q lead to %q", authorization, end, address)
			}
		}
	})
}

func TestATokenEndpointWithoutTLSIsTheIssuersOwn(t *testing.T) {
	for name, test := range map[string]struct {
		issuer, endpoint string
		refused          bool
	}{
		"TLS":                              {"https://a", "https://a/t", false},
		"TLS, of another host":             {"https://a", "https://b/t", false},
		"TLS is given up":                  {"https://a", "http://a/t", true},
		"never had TLS":                    {"http://a", "http://a/t", false},
		"never had TLS, of another host":   {"http://a", "http://b/t", true},
		"never had TLS, of another port":   {"http://a", "http://a:1/t", true},
		"gets TLS, of another host":        {"http://a", "https://b/t", false},
		"a name within that of the issuer": {"http://a.test", "http://a.test.evil/t", true},
	} {
		text := fmt.Sprintf(`{"issuer": %q, "authorization_endpoint": "%[1]s/a", "token_endpoint": %q, "jwks_uri": "%[1]s/k"}`, test.issuer, test.endpoint)
		if _, err := parseProvider([]byte(text), test.issuer); (err != nil) != test.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
