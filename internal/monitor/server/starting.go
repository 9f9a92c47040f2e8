package server

import (
	"errors"
	"net/http"

	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/guard"
)

// Starting answers while there is no history to ask yet: it is alive, it is not ready, and every other request fails with
// Unavailable and the message that why returns. Everybody can read that message, so it must not tell anything of the cluster.
func Starting(why func() string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", probe(func() error { return nil }))
	mux.Handle("GET /readyz", probe(func() error { return errors.New("starting") }))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		failure.Refuse(w, failure.New(failure.Unavailable, "%s", why()))
	})
	return guard.Secure(mux)
}
