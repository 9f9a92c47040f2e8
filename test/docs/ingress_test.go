package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

const page = "../../docs/from-ingress.md"

// example is a section of the page.
type example struct {
	objects []string
	// requests and answers belong together.
	requests, answers []string
}

var (
	fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	row    = regexp.MustCompile("(?m)^\\| `([A-Z]+ .*)` \\| `(.*)` \\|$")
)

// read returns the examples of the page by their titles, and what stands before them.
func read(t *testing.T) (preamble example, examples map[string]example) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	examples = map[string]example{}
	for i, section := range strings.Split(string(text), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		var e example
		for _, block := range fenced.FindAllStringSubmatch(section, -1) {
			e.objects = append(e.objects, strings.Split(block[1], "\n---\n")...)
		}
		for _, found := range row.FindAllStringSubmatch(section, -1) {
			e.requests, e.answers = append(e.requests, found[1]), append(e.answers, found[2])
		}
		switch {
		case i == 0:
			preamble = e
		case len(e.objects) > 0:
			examples[title] = e
		}
	}
	return preamble, examples
}

// front is what the objects of an example say in one of the two ways.
type front struct {
	gateway    *gatewayv1.Gateway
	routes     []*gatewayv1.HTTPRoute
	policies   []*slipwayv1alpha1.GatewayPolicy
	apiGateway *slipwayv1alpha1.APIGateway
}

// parse reads objects. A field that does not exist fails the test.
func parse(t *testing.T, objects []string) *front {
	t.Helper()
	f := &front{}
	for _, text := range objects {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		strictly := func(into any) {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatalf("%v in:\n%s", err, text)
			}
		}
		switch kind.Kind {
		case "Ingress":
			strictly(&networkingv1.Ingress{})
		case "GatewayClass":
			strictly(&gatewayv1.GatewayClass{})
		case "Gateway":
			f.gateway = &gatewayv1.Gateway{}
			strictly(f.gateway)
		case "HTTPRoute":
			route := &gatewayv1.HTTPRoute{}
			strictly(route)
			route.UID, route.Namespace = types.UID(route.Name), namespace
			f.routes = append(f.routes, route)
		case "GatewayPolicy":
			policy := &slipwayv1alpha1.GatewayPolicy{}
			strictly(policy)
			policy.UID, policy.Namespace = types.UID(policy.Name), namespace
			f.policies = append(f.policies, policy)
		case "APIGateway":
			f.apiGateway = &slipwayv1alpha1.APIGateway{}
			strictly(f.apiGateway)
		default:
			t.Fatalf("there is an object of kind %q", kind.Kind)
		}
	}
	return f
}

const namespace = "default"

// cluster is what the objects refer to: every Service exists, and answers with its name and what it was asked for.
type cluster struct {
	services map[model.ServiceName]model.Service
	users    map[string][]byte
}

func newCluster(t *testing.T, names ...string) *cluster {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{services: map[model.ServiceName]model.Service{}, users: map[string][]byte{"alice": hash}}
	for _, name := range names {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%s %s", name, r.RequestURI)
		}))
		t.Cleanup(server.Close)
		of := model.Service{Ports: map[int32]model.ServicePort{80: {Endpoints: []string{server.Listener.Addr().String()}}}}
		c.services[model.ServiceName{Name: name}], c.services[model.ServiceName{Namespace: namespace, Name: name}] = of, of
	}
	return c
}

// ofAPIGateway is the table of an APIGateway.
func (c *cluster) ofAPIGateway(t *testing.T, of *slipwayv1alpha1.APIGateway) *table.Table {
	t.Helper()
	in := apigateway.Input{Routes: of.Spec.Routes, BelievesEverybody: apigateway.BelievesEverybody(&of.Spec), Services: map[string]model.Service{}, Secrets: map[string]map[string][]byte{"users": c.users}}
	for name, service := range c.services {
		in.Services[name.Name] = service
	}
	compiled, problems := apigateway.Compile(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

// ofGateway is the table of a Gateway whose only listener has another port here.
func (c *cluster) ofGateway(t *testing.T, gateway *gatewayv1.Gateway, f *front, port int32) *table.Table {
	t.Helper()
	gateway = gateway.DeepCopy()
	gateway.Namespace, gateway.Spec.Listeners[0].Port = namespace, port
	in := gatewayapi.Input{Gateway: gateway, HTTPRoutes: f.routes, GatewayPolicies: f.policies, Services: map[types.NamespacedName]gatewayapi.Service{}}
	in.Authentication = gatewayapi.Authenticate(f.policies, func(types.NamespacedName) (map[string][]byte, bool) { return c.users, true })
	for name := range c.services {
		in.Services[types.NamespacedName(name)] = gatewayapi.Service{Ports: map[int32]gatewayapi.Port{80: {}}}
	}
	g := gatewayapi.Build(in)
	compiled, problems := table.Compile(g.Table(c.services))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

// client is the address of the client: that of a pod, which a proxy of the cluster could have, too.
const client = "10.1.2.3"

// serve serves a table until the test ends, with what the spec says besides. It returns the address. Connections begin with a header
// that tells the address of the client.
func serve(t *testing.T, spec slipwayv1alpha1.APIGatewaySpec, compiled func(port int32) *table.Table) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := proxy.New(proxy.Options{})
	config, err := proxy.NewConfig(&spec)
	if err != nil {
		t.Fatal(err)
	}
	config.Table = compiled(int32(listener.Addr().(*net.TCPAddr).Port))
	handler.Set(config)
	server := proxy.NewServer(handler, proxy.ServerOptions{HTTP: listener, ErrorLog: log.New(io.Discard, "", 0), LoadBalancer: &proxy.LoadBalancer{}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		over, end := context.WithCancel(context.WithoutCancel(ctx))
		end()
		_ = server.Shutdown(over)
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
		handler.Registry().Keep(func(string) bool { return false })
	})
	return listener.Addr().String()
}

// answer sends a request as the page writes it: the method, host and path, and then header fields, or else a body. It returns the
// answer as the page writes it: the status, and then the body of a backend, or where it leads.
func answer(t *testing.T, address, request string) string {
	t.Helper()
	method, rest, _ := strings.Cut(request, " ")
	target, more, _ := strings.Cut(rest, " ")
	host, path, _ := strings.Cut(target, "/")
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(more)
		more = ""
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.URL.Opaque = host, "/"+path
	for field := range strings.SplitSeq(more, "; ") {
		if name, value, found := strings.Cut(field, ": "); found {
			r.Header.Set(name, value)
		}
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_, err = fmt.Fprintf(conn, "PROXY TCP4 %s 10.0.0.1 40000 80\r\n", client)
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	said := response.Header.Get("Location") + response.Header.Get("Access-Control-Allow-Origin")
	if response.StatusCode == http.StatusOK {
		said = string(text)
	}
	return strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", said))
}

// What the page writes for the one is answered as what it writes for the other, and as it says.
func TestEveryExampleIsAnsweredAlike(t *testing.T) {
	preamble, examples := read(t)
	gateway := parse(t, preamble.objects).gateway
	if gateway == nil || len(examples) < 8 {
		t.Fatalf("%d examples were found", len(examples))
	}
	for title, e := range examples {
		t.Run(title, func(t *testing.T) {
			f := parse(t, e.objects)
			if f.apiGateway == nil || len(f.routes) == 0 || len(e.requests) == 0 {
				t.Fatal("an object is missing, or requests are")
			}
			general := f.apiGateway.Spec // with the defaults of what is not said
			general.TrustedProxies = apigateway.TrustedProxies(&general)
			for way, one := range map[string]struct {
				spec     slipwayv1alpha1.APIGatewaySpec
				compiled func(*cluster, int32) *table.Table
			}{
				"as a Gateway":     {slipwayv1alpha1.APIGatewaySpec{}, func(c *cluster, port int32) *table.Table { return c.ofGateway(t, gateway, f, port) }},
				"as an APIGateway": {general, func(c *cluster, _ int32) *table.Table { return c.ofAPIGateway(t, f.apiGateway) }},
			} {
				t.Run(way, func(t *testing.T) {
					c := newCluster(t, "shop", "shop-next", "cart", "users", "admin", "api")
					address := serve(t, one.spec, func(port int32) *table.Table { return one.compiled(c, port) })
					var got []string
					for _, request := range e.requests {
						got = append(got, answer(t, address, request))
					}
					if diff := cmp.Diff(e.answers, got); diff != "" {
						t.Errorf("-the page +the gateway:\n%s", diff)
					}
				})
			}
		})
	}
}
