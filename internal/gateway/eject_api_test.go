//go:build apitest

package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// unreachable is a backend at whose address nobody listens.
func unreachable(t *testing.T) backend {
	t.Helper()
	b := failing(t)
	b.close()
	return b.backend
}

// failingBackend answers every request with 503.
type failingBackend struct {
	backend

	close func()
}

func failing(t *testing.T) failingBackend {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	at := listener.Addr().(*net.TCPAddr)
	return failingBackend{backend{name: "bad", ip: at.IP.String(), port: at.Port}, server.Close}
}

// endpointsIn is how many endpoints are in a state.
func (r *running) endpointsIn(state string) int {
	_, metrics := fetch(r.admin, "/metrics")
	sum := 0
	for _, line := range regexp.MustCompile(`slipway_gateway_endpoints\{.*state="`+state+`"\} (\d+)`).FindAllStringSubmatch(metrics, -1) {
		n, _ := strconv.Atoi(line[1])
		sum += n
	}
	return sum
}

// fronts start a gateway for the Service app, as an APIGateway and as a Gateway, and return how to ask it.
var fronts = map[string]func(t *testing.T) (*cluster, *running, func() string){
	"APIGateway": func(t *testing.T) (*cluster, *running, func() string) {
		t.Helper()
		c := newCluster(t)
		r := c.run()
		c.spec(`routes: [{name: app, path: /, backendService: {name: app, port: 80}}]`)
		return c, r, func() string { return r.ask("/") }
	},
	"Gateway": func(t *testing.T) (*cluster, *running, func() string) {
		t.Helper()
		c, port := newSite(t), environment.FreePort(t)
		c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
		c.put("HTTPRoute", "app", `{parentRefs: [{name: edge}], rules: [{`+to("app")+`}]}`)
		return c.cluster, c.runGateway(), func() string { return gets(port, "a", "/") }
	},
}

// An endpoint that takes no connections is ejected after two failures, and one that answers with 503 after five. The last one
// never is.
func TestEndpointsOfEveryFrontEndAreEjected(t *testing.T) {
	for name, start := range fronts {
		for kind, bad := range map[string]func(t *testing.T) backend{
			"no connection": unreachable,
			"503":           func(t *testing.T) backend { t.Helper(); return failing(t).backend },
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				c, r, ask := start(t)
				c.service("app")
				c.endpoints("app", bad(t))
				environment.Eventually(t, func() error { return known(r, 1) })
				for range 20 {
					ask()
				}
				if n := r.endpointsIn("ejected"); n != 0 {
					t.Fatalf("%d ejected, and it was the last", n)
				}
				c.slice("app-2", "app", newBackend(t, "good"))
				environment.Eventually(t, func() error {
					ask()
					if r.endpointsIn("ejected") != 1 {
						return errors.New("the endpoint is not ejected")
					}
					return nil
				})
				for range 50 {
					if got := ask(); got != "good" {
						t.Fatalf("after the ejection: got %q", got)
					}
				}
			})
		}
	}
}

func known(r *running, endpoints int) error {
	if n := r.endpointsIn("available"); n != endpoints {
		return fmt.Errorf("%d endpoints are available, want %d", n, endpoints)
	}
	return nil
}
