package proxy

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/oidc"
)

// Whoever writes routes names addresses from where the gateway fetches. None of them may be the gateway itself.
func TestNothingIsFetchedFromTheGatewayItself(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	for _, address := range []string{inside.URL, strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)} {
		failed := make(chan error, 10)
		g := start(t, Options{Guard: new(dialguard.Guard), KeysFailing: func(_ string, err error) { failed <- err }},
			fromURL(address+"/revision?standby=true"), serve(t, func(http.ResponseWriter, *http.Request) {}))
		if err := <-failed; !errors.Is(err, dialguard.ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
		response, _ := g.get("/", "Authorization", "Bearer x")
		want(t, address, response.StatusCode, http.StatusServiceUnavailable)
	}
	client := oidc.NewHTTPClient(nil)
	defer client.CloseIdleConnections()
	response, err := client.Post(inside.URL+"/revision?standby=true", "application/x-www-form-urlencoded", http.NoBody)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, dialguard.ErrRefused) {
		t.Errorf("a request for tokens: %v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server inside was asked %d times", n)
	}
}
