package proxy

import (
	"net/http"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

const passwordRoute = `
- backendService: {name: app, port: 80}
  auth: {basic: {secretRef: {name: users}}}
`

func TestAPasswordIsForgottenWithItsHash(t *testing.T) {
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	g := startTable(t, Options{}, nil)
	for _, step := range []struct {
		password string // the Secret has its hash
		code     int    // of a request with the first password
	}{{"first", 200}, {"first", 200}, {"second", 401}} {
		hash, err := bcrypt.GenerateFromPassword([]byte(step.password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		g.handler.Set(Config{Table: compile(t, passwordRoute, map[string]map[string][]byte{"users": {"carol": hash}}, backend)})
		request := g.request("GET", "/")
		request.SetBasicAuth("carol", "first")
		response, _ := g.send(request)
		want(t, step.password, response.StatusCode, step.code)
	}
}
