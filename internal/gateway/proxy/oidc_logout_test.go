package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestABrowserComesToAPageAfterTheLogOut(t *testing.T) {
	for name, test := range map[string]struct {
		provider map[string]any
		to       string // with the addresses of provider and gateway
	}{
		"the provider sends it there":    {nil, "PROVIDER/logout?client_id=shop&post_logout_redirect_uri=GATEWAY%2Fbye"},
		"the provider has no log-out":    {map[string]any{"end_session_endpoint": ""}, "/bye"},
		"its log-out has a query itself": {map[string]any{"end_session_endpoint": "http://id.test/out?a=b"}, "http://id.test/out?a=b&client_id=shop&post_logout_redirect_uri=GATEWAY%2Fbye"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.document = test.provider
			backend, _ := recording(t)
			route := strings.Replace(p.route(), "logoutPath: /oauth2/logout", "logoutPath: /oauth2/logout\n      afterLogout: /bye", 1)
			g := startTable(t, Options{}, compile(t, route, p.secrets(), backend))
			alice := newPerson(t, g)
			want(t, "status", alice.open("/").StatusCode, http.StatusOK)
			out := alice.stops().open("/oauth2/logout", "Sec-Fetch-Site", "same-origin")
			want(t, "status", out.StatusCode, http.StatusSeeOther)
			location := out.Header.Get("Location")
			if begin := strings.Index(location, "id_token_hint="); begin > 0 {
				_, rest, _ := strings.Cut(location[begin:], "&")
				location = location[:begin] + rest
			}
			want(t, "where it comes to", location, strings.NewReplacer("PROVIDER", p.URL, "GATEWAY", url.QueryEscape("http://"+g.address)).Replace(test.to))
			want(t, "status after that", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
		})
	}
}
