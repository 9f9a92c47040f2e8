// Command provider is an OpenID Connect provider for make test-oidc: that of github.com/zitadel/oidc, which is certified, with
// the log-in form and the users of its example. It is a module of its own, so that nothing of it is linked into a release.
package main

import (
	"flag"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	issuer := flag.String("issuer", "", "the issuer, http://127.0.0.1:PORT")
	secret := flag.String("secret", "", "the client secret of the client shop")
	redirect := flag.String("redirect", "", "its redirect URI")
	flag.Parse()
	address, err := url.Parse(*issuer)
	if err != nil {
		log.Fatal(err)
	}
	storage.RegisterClients(storage.WebClient("shop", *secret, *redirect))
	router := exampleop.SetupServer(
		*issuer, storage.NewStorage(storage.NewUserStore(*issuer)), slog.Default(), false, op.WithAllowInsecure(),
	)
	server := &http.Server{Addr: address.Host, Handler: router, ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}
