package apigateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// The table knows no API. Users read its reasons in the status of an APIGateway.
func TestTheReasonsOfTheTableAreThoseOfTheAPI(t *testing.T) {
	for ours, ofAPI := range map[string]string{
		model.ReasonInvalid:             slipwayv1alpha1.ReasonInvalid,
		model.ReasonInvalidRoute:        slipwayv1alpha1.ReasonInvalidRoute,
		model.ReasonInvalidRegex:        slipwayv1alpha1.ReasonInvalidRegex,
		model.ReasonBackendNotFound:     slipwayv1alpha1.ReasonBackendNotFound,
		model.ReasonPortNotFound:        slipwayv1alpha1.ReasonPortNotFound,
		model.ReasonUnsupportedService:  slipwayv1alpha1.ReasonUnsupportedService,
		model.ReasonUnsupportedProtocol: slipwayv1alpha1.ReasonUnsupportedProtocol,
		model.ReasonNoEndpoints:         slipwayv1alpha1.ReasonNoEndpoints,
	} {
		if ours != ofAPI {
			t.Errorf("%q is %q in the API", ours, ofAPI)
		}
	}
}

// What an APIGateway says in the words of the Gateway API leads to the same rules.
func TestWhatAnAPIGatewayHasFromTheGatewayAPI(t *testing.T) {
	var spec []slipwayv1alpha1.Route
	if err := yaml.UnmarshalStrict([]byte(`
- path: /users
  redirect: {pathPrefix: /people}
- backends:
  - {name: a, port: 80, requestHeaders: {set: [{name: x-a, value: a}]}, responseHeaders: {remove: [server]}}
  mirrors: [{backendService: {name: b, port: 80}, percent: 5}, {backendService: {name: b, port: 80}, fraction: {numerator: 1, denominator: 1000}}]
  mirror: {backendService: {name: b, port: 80}}
  retries: {statusCodes: [429]}
- {backends: [{name: a, port: 80, requestHeaders: {remove: [Host]}}]}
- {backendService: {name: a, port: 80}, mirrors: [{backendService: {name: b, port: 80}, fraction: {numerator: 3, denominator: 2}}]}
- {path: /a, pathType: Exact, redirect: {pathPrefix: /people}}
`), &spec); err != nil {
		t.Fatal(err)
	}
	of := model.Service{Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}}
	compiled, problems := apigateway.Compile(apigateway.Input{Routes: spec, Services: map[string]model.Service{"a": of, "b": of}})
	var refused []int
	for _, p := range problems {
		refused = append(refused, p.Index)
	}
	if diff := cmp.Diff([]int{2, 3, 4}, refused); diff != "" {
		t.Errorf("refused are: %s%v", diff, problems)
	}
	if got := compiled.Routes[0].Redirect.Location("http", "a.test", 0, "/users/1", ""); got != "http://a.test/people/1" {
		t.Errorf("it redirects to %s", got)
	}
	second := compiled.Routes[1]
	var shares []string
	for _, m := range second.Mirrors {
		shares = append(shares, fmt.Sprintf("%s %d/%d", m.Backend.ID, m.Numerator, m.Denominator))
	}
	if diff := cmp.Diff([]string{"b:80 100/100", "b:80 5/100", "b:80 1/1000"}, shares); diff != "" {
		t.Error(diff)
	}
	if !second.Retries.Statuses.Has(429) || second.Retries.Statuses.Has(500) {
		t.Error("it is not sent again for 429, or for 500 too")
	}
	edit := second.Backends[0]
	if edit.RequestHeaders.Set[0] != (model.HeaderField{Name: "X-A", Value: "a"}) || edit.ResponseHeaders.Remove[0] != "Server" {
		t.Errorf("the headers are changed by %+v and %+v", edit.RequestHeaders, edit.ResponseHeaders)
	}
}

// A route that answers itself has nothing that could be compressed. Whoever asks for it has made a mistake.
func TestOnlyAnswersOfBackendsAreCompressed(t *testing.T) {
	for name, route := range map[string]slipwayv1alpha1.Route{
		"a redirect":      {Redirect: &slipwayv1alpha1.Redirect{Host: "www.example.com"}},
		"a direct answer": {DirectResponse: &slipwayv1alpha1.DirectResponse{StatusCode: 200}},
	} {
		route.Compression = &slipwayv1alpha1.Compression{}
		_, problems := apigateway.Compile(apigateway.Input{Routes: []slipwayv1alpha1.Route{route}})
		if len(problems) != 1 || problems[0].Message != "compression needs backendService or backends" || problems[0].Reason != slipwayv1alpha1.ReasonInvalidRoute {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

func TestWhatIsCompressed(t *testing.T) {
	few, least := int32(0), int32(10)
	for name, test := range map[string]struct {
		spec  *slipwayv1alpha1.Compression
		want  *compress.Policy
		fault string
	}{
		"off":           {nil, nil, ""},
		"defaults":      {&slipwayv1alpha1.Compression{}, &compress.Policy{Codings: []compress.Coding{compress.Zstd, compress.Gzip}, MinBytes: 1024, Types: compress.DefaultTypes}, ""},
		"everything":    {&slipwayv1alpha1.Compression{Algorithms: []slipwayv1alpha1.CompressionAlgorithm{"Gzip"}, MinBytes: &least, ContentTypes: []slipwayv1alpha1.ContentType{"text/*"}}, &compress.Policy{Codings: []compress.Coding{compress.Gzip}, MinBytes: 10, Types: []string{"text/*"}}, ""},
		"switched off":  {&slipwayv1alpha1.Compression{Algorithms: []slipwayv1alpha1.CompressionAlgorithm{"Identity"}}, nil, ""},
		"both":          {&slipwayv1alpha1.Compression{Algorithms: []slipwayv1alpha1.CompressionAlgorithm{"Gzip", "Identity"}}, nil, "compression.algorithms: Identity means"},
		"unknown":       {&slipwayv1alpha1.Compression{Algorithms: []slipwayv1alpha1.CompressionAlgorithm{"Brotli"}}, nil, `compression.algorithms: "Brotli" is not`},
		"nothing is ok": {&slipwayv1alpha1.Compression{MinBytes: &few}, nil, "compression.minBytes: 0 is less than 1"},
		"a parameter":   {&slipwayv1alpha1.Compression{ContentTypes: []slipwayv1alpha1.ContentType{"text/html;q=1"}}, nil, "compression.contentTypes:"},
	} {
		compiled, problems := apigateway.Compile(apigateway.Input{
			Routes:   []slipwayv1alpha1.Route{{BackendService: &slipwayv1alpha1.BackendService{Name: "app", Port: 80}, Compression: test.spec}},
			Services: map[string]model.Service{"app": {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}}},
		})
		route := compiled.Routes[0]
		if test.fault != "" {
			if route.Unavailable == nil || !strings.HasPrefix(problems[0].Message, test.fault) || problems[0].Reason != slipwayv1alpha1.ReasonInvalidRoute {
				t.Errorf("%s: %+v", name, problems)
			}
			continue
		}
		if diff := cmp.Diff(test.want, route.Compression); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	none, few := int32(0), int32(10)
	for name, test := range map[string]struct {
		spec  *slipwayv1alpha1.Cache
		want  *cache.Policy
		fault string
	}{
		"off":            {nil, nil, ""},
		"defaults":       {&slipwayv1alpha1.Cache{}, &cache.Policy{MaxBytes: 1 << 20, MaxAge: time.Hour}, ""},
		"everything":     {&slipwayv1alpha1.Cache{Mode: "Store", MaxBytes: &few, MaxAgeSeconds: &few}, &cache.Policy{MaxBytes: 10, MaxAge: 10 * time.Second}, ""},
		"switched off":   {&slipwayv1alpha1.Cache{Mode: "Off"}, nil, ""},
		"unknown":        {&slipwayv1alpha1.Cache{Mode: "Maybe"}, nil, `cache.mode: "Maybe" is neither`},
		"nothing is ok":  {&slipwayv1alpha1.Cache{MaxBytes: &none}, nil, "cache.maxBytes: 0 is less than 1"},
		"no time at all": {&slipwayv1alpha1.Cache{MaxAgeSeconds: &none}, nil, "cache.maxAgeSeconds: 0 is less than 1"},
	} {
		compiled, problems := apigateway.Compile(apigateway.Input{
			Routes:   []slipwayv1alpha1.Route{{BackendService: &slipwayv1alpha1.BackendService{Name: "app", Port: 80}, Cache: test.spec}},
			Services: map[string]model.Service{"app": {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}}},
		})
		route := compiled.Routes[0]
		if test.fault != "" {
			if route.Unavailable == nil || !strings.HasPrefix(problems[0].Message, test.fault) || problems[0].Reason != slipwayv1alpha1.ReasonInvalidRoute {
				t.Errorf("%s: %+v", name, problems)
			}
			continue
		}
		if diff := cmp.Diff(test.want, route.Cache); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// What a route says of its time holds: the default for the head of a response is for those that say nothing.
func TestNoDefaultIsShorterThanTheTimeOfARequest(t *testing.T) {
	for said, want := range map[slipwayv1alpha1.Timeouts]model.Timeouts{
		{}:                              {Backend: time.Minute},
		{Idle: "5s"}:                    {Backend: time.Minute, Idle: 5 * time.Second, IdleSet: true},
		{Request: "90s"}:                {Request: 90 * time.Second},
		{Request: "0s"}:                 {},
		{Request: "2h", Backend: "5s"}:  {Request: 2 * time.Hour, Backend: 5 * time.Second},
		{Request: "0s", Backend: "90s"}: {Backend: 90 * time.Second},
		{Backend: "0s"}:                 {},
	} {
		compiled, problems := apigateway.Compile(apigateway.Input{
			Routes:   []slipwayv1alpha1.Route{{BackendService: &slipwayv1alpha1.BackendService{Name: "a", Port: 80}, Timeouts: &said}},
			Services: map[string]model.Service{"a": {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}}},
		})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if diff := cmp.Diff(want, compiled.Routes[0].Timeouts); diff != "" {
			t.Errorf("%+v: -want +got:\n%s", said, diff)
		}
	}
}

// Where nobody has said which proxies there are, everything in the cluster may say which address it has. That must open no list.
func TestAHeaderOfEverybodyOpensNoList(t *testing.T) {
	stated := []string{"10.0.0.7/32"}
	for name, test := range map[string]struct {
		spec    slipwayv1alpha1.APIGatewaySpec
		refused bool
		trusted []string
	}{
		"by default":                   {slipwayv1alpha1.APIGatewaySpec{}, true, []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}},
		"behind an Ingress":            {slipwayv1alpha1.APIGatewaySpec{Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeIngress}}, true, []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}},
		"behind a Gateway":             {slipwayv1alpha1.APIGatewaySpec{Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeHTTPRoute}}, true, []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}},
		"behind a proxy that is known": {slipwayv1alpha1.APIGatewaySpec{TrustedProxies: stated}, false, stated},
		"behind a proxy, none trusted": {slipwayv1alpha1.APIGatewaySpec{TrustedProxies: []string{}}, false, []string{}},
		"reached directly":             {slipwayv1alpha1.APIGatewaySpec{Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeLoadBalancer}}, false, nil},
		"reached at the nodes":         {slipwayv1alpha1.APIGatewaySpec{Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeNodePort}}, false, nil},
		"reached in the cluster":       {slipwayv1alpha1.APIGatewaySpec{Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeClusterIP}}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, list := range []slipwayv1alpha1.ClientAddresses{{Allow: []slipwayv1alpha1.AddressRange{"192.0.2.0/24"}}, {Deny: []slipwayv1alpha1.AddressRange{"192.0.2.0/24"}}} {
				compiled, problems := apigateway.Compile(apigateway.Input{
					Routes:            []slipwayv1alpha1.Route{{DirectResponse: &slipwayv1alpha1.DirectResponse{StatusCode: 200}, ClientAddresses: &list}},
					BelievesEverybody: apigateway.BelievesEverybody(&test.spec),
				})
				refused := compiled.Routes[0].Unavailable != nil && len(problems) == 1 && problems[0].Reason == slipwayv1alpha1.ReasonInvalidRoute
				if refused != test.refused || !refused && compiled.Routes[0].ClientAddresses == nil {
					t.Errorf("refused: %v; %v", refused, problems)
				}
			}
			if diff := cmp.Diff(test.trusted, apigateway.TrustedProxies(&test.spec)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
