package proxy

import (
	"net/http"
	"strings"
	"testing"
)

func TestRoutesThatTellOtherClaimsShareSessions(t *testing.T) {
	p := newProvider(t)
	backend, requests := recording(t)
	api := strings.NewReplacer("name: shop", "name: api\n  path: /api", "{claim: email, header: X-Email}", "{claim: sub, header: X-User}").Replace(p.route())
	g := startTable(t, Options{}, compile(t, p.route()+api, p.secrets(), backend))
	alice := newPerson(t, g)
	want(t, "shop", alice.open("/").StatusCode, http.StatusOK)
	received(t, requests)
	want(t, "API", alice.open("/api", "Accept", "*/*", "X-User", "mallory").StatusCode, http.StatusOK)
	got := received(t, requests)
	want(t, "user", join(got.Header["X-User"])+join(got.Header["X-Email"]), "alice")
}
