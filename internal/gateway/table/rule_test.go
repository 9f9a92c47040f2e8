package table_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// oneListener compiles rules of one listener for everything.
func oneListener(in table.Input) (*table.Table, []model.Problem) {
	in.Listeners = []table.Listener{{Name: "all"}}
	return table.Compile(in)
}

// everywhere are Services of two namespaces and of the gateway's own.
func everywhere() map[model.ServiceName]model.Service {
	web := func(endpoints ...string) model.Service {
		return model.Service{Ports: map[int32]model.ServicePort{80: {Endpoints: endpoints}}}
	}
	return map[model.ServiceName]model.Service{
		{Name: "web"}:                   web("10.0.0.1:80"),
		{Namespace: "a", Name: "web"}:   web("10.0.1.1:80"),
		{Namespace: "b", Name: "web"}:   web("10.0.2.1:80"),
		{Namespace: "a", Name: "idle"}:  web(),
		{Name: "a/web"}:                 web("10.0.3.1:80"), // no API server has such a name
		{Namespace: "a", Name: "mysql"}: {Ports: map[int32]model.ServicePort{80: {AppProtocol: "mysql", Endpoints: []string{"10.0.4.1:80"}}}},
	}
}

// Connections outlive a table by the ID of their backend.
func TestABackendOfEachNamespaceHasAnIDOfItsOwn(t *testing.T) {
	in := table.Input{Services: everywhere()}
	for i, ref := range []model.BackendRef{
		{Service: "web"}, {Namespace: "a", Service: "web"}, {Namespace: "b", Service: "web"}, {Service: "a/web"}, {Namespace: "a", Service: "web"},
	} {
		ref.Port, ref.Weight = 80, 1
		in.Rules = append(in.Rules, table.Rule{Index: i, Backends: []model.BackendRef{ref}})
	}
	compiled, problems := oneListener(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := map[string]string{}
	for _, b := range compiled.Backends {
		got[b.ID] = b.ServiceName() + " " + strings.Join(b.Endpoints, " ")
	}
	want := map[string]string{"web:80": "web 10.0.0.1:80", "a/web:80": "a/web 10.0.1.1:80", "b/web:80": "b/web 10.0.2.1:80", "a%2Fweb:80": "a%2Fweb 10.0.3.1:80"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
}

func TestAStrictShareStaysWithItsBackend(t *testing.T) {
	web := model.BackendRef{Namespace: "a", Service: "web", Port: 80, Weight: 1, Field: "backendRefs[0]"}
	with := func(change func(*model.BackendRef)) model.BackendRef {
		ref := web
		ref.Field = "backendRefs[1]"
		change(&ref)
		return ref
	}
	const nobody, unavailable = "500", "503"
	for name, tc := range map[string]struct {
		other   model.BackendRef
		want    string // what the share of the other gets
		problem string
	}{
		"usable":         {with(func(r *model.BackendRef) { r.Namespace = "b" }), "b/web:80", ""},
		"no endpoints":   {with(func(r *model.BackendRef) { r.Service = "idle" }), unavailable, `NoEndpoints backendRefs[1]: no endpoint of Service "a/idle" is ready on port 80`},
		"no Service":     {with(func(r *model.BackendRef) { r.Service = "gone" }), nobody, `BackendNotFound backendRefs[1]: Service "a/gone" does not exist`},
		"no port":        {with(func(r *model.BackendRef) { r.Port = 81 }), nobody, `PortNotFound backendRefs[1]: Service "a/web" has no port 81`},
		"wrong protocol": {with(func(r *model.BackendRef) { r.Service = "mysql" }), nobody, `UnsupportedProtocol backendRefs[1]: port 80 of Service "a/mysql" has appProtocol "mysql"; the gateway speaks HTTP/1.1, kubernetes.io/h2c and grpc`},
		"a fault": {
			with(func(r *model.BackendRef) { r.Fault = &model.Fault{Reason: "RefNotPermitted", Message: "no grant"} }),
			nobody, "RefNotPermitted backendRefs[1]: no grant",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []bool{true, false} {
				compiled, problems := oneListener(table.Input{
					Services: everywhere(),
					Rules:    []table.Rule{{Name: "r", StrictShares: strict, Backends: []model.BackendRef{web, tc.other}}},
				})
				told := ""
				for _, p := range problems {
					told += p.Reason + " " + p.Message
				}
				if told != tc.problem {
					t.Errorf("problem %q, want %q", told, tc.problem)
				}
				got := map[string]int{}
				for random := range uint64(100) {
					backend, lack := compiled.Routes[0].Pick(random)
					switch lack {
					case table.LackNothing:
						got[backend.ID]++
					case table.LackEndpoints:
						got[unavailable]++
					case table.LackBackend:
						got[nobody]++
					}
				}
				want := map[string]int{"a/web:80": 50, tc.want: 50}
				if !strict && tc.problem != "" {
					want = map[string]int{"a/web:80": 100}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("strict %v: requests (-want +got):\n%s", strict, diff)
				}
			}
		})
	}
	if compiled, _ := oneListener(table.Input{Services: everywhere(), Rules: []table.Rule{{Backends: []model.BackendRef{with(func(r *model.BackendRef) { r.Fault = &model.Fault{} })}}}}); len(compiled.Backends) > 0 {
		t.Errorf("a backend that must not be used has connections: %+v", compiled.Backends[0])
	}
}

func TestAStrictRuleWithoutBackendsIsInPlace(t *testing.T) {
	compiled, problems := oneListener(table.Input{Services: everywhere(), Rules: []table.Rule{
		{Name: "none", StrictShares: true},
		{Name: "zero", Path: "/zero", StrictShares: true, Backends: []model.BackendRef{{Service: "web", Port: 80}}},
		{Name: "loose", Path: "/loose"},
		{Name: "fault", Path: "/fault", Fault: &model.Fault{Reason: "UnsupportedValue", Message: "filters: extension"}, Direct: answer},
	}})
	want := []model.Problem{
		{Route: "loose", Reason: "InvalidRoute", Message: "exactly one of backends, redirect and a direct response must be set"},
		{Route: "fault", Reason: "UnsupportedValue", Message: "filters: extension"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, route := range compiled.Routes[:2] {
		if backend, lack := route.Pick(1); backend != nil || lack != table.LackBackend || route.Unavailable != nil {
			t.Errorf("%s: got %v, %v", route.Name, backend, lack)
		}
	}
	for _, route := range compiled.Routes[2:] {
		if route.Unavailable == nil {
			t.Errorf("%s is served", route.Name)
		}
	}
}

// GRPCRoute ranks by the service before the method.
func TestRankComesBeforeTheNumberOfConditions(t *testing.T) {
	value := "x"
	compiled, problems := oneListener(table.Input{Rules: []table.Rule{
		{Name: "method", PathType: table.PathRegularExpression, Path: "/[^/]+/LongMethodName", Direct: answer},
		{Name: "service", PathType: table.PathRegularExpression, Path: "/a[.]B/[^/]+", Rank: 3, Direct: answer},
		{Name: "header", Headers: []table.ValueMatch{{Name: "X", Value: &value}}, Direct: answer},
		{Name: "high", Rank: 1, Direct: answer},
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	header := http.Header{"X": {"x"}}
	for path, want := range map[string]string{"/a.B/LongMethodName": "service", "/c/LongMethodName": "method", "/other": "high"} {
		if got := nameOf(compiled.Match(&table.Request{Method: "POST", Host: "a", Path: path, Header: header})); got != want {
			t.Errorf("%s: %q answers, want %q", path, got, want)
		}
	}
}

// A front end may pass on what its API did not check.
func TestACompilerChecksWhatIsUnsafe(t *testing.T) {
	value, name := "(", "X\r\nY"
	for want, rule := range map[string]table.Rule{
		"host: ":                              {Host: "a..b"},
		"path: ":                              {Path: "/a/../b%2F.."},
		"pathType: ":                          {PathType: "Magic"},
		"headers: ":                           {Headers: []table.ValueMatch{{Name: name}}},
		"queryParams: ":                       {Query: []table.ValueMatch{{Name: "q", Type: table.MatchRegularExpression, Value: &value}}},
		"rewrite.host: ":                      {Rewrite: &model.Rewrite{Host: "*.a"}},
		"rewrite: ":                           {Rewrite: &model.Rewrite{FullPath: "b c"}},
		"requestHeaders.set: ":                {RequestHeaders: &model.HeaderEdit{Set: []model.HeaderField{{Name: name}}}},
		"requestHeaders.add: the value":       {RequestHeaders: &model.HeaderEdit{Add: []model.HeaderField{{Name: "X", Value: name}}}},
		"responseHeaders.remove: ":            {ResponseHeaders: &model.HeaderEdit{Remove: []string{"Content-Length"}}},
		"cors: ":                              {Settings: list.Settings{CORS: &cors.Rule{ExposeHeaders: []string{name}}}},
		"mirror: ":                            {Mirrors: []model.MirrorRef{{Numerator: 1}}},
		"maxBodyBytes: ":                      {Settings: list.Settings{MaxBodyBytes: -1}},
		"timeouts.request: ":                  {Timeouts: model.Timeouts{Request: -1}},
		"retries.attempts: ":                  {Retries: model.Retries{Attempts: 11}},
		"clientAddresses: ":                   {Settings: list.Settings{ClientAddresses: &address.Rule{}}},
		"clientAddresses.allow: ":             {Settings: list.Settings{ClientAddresses: &address.Rule{Allow: []string{"10.0.0.0/33"}}}},
		"clientAddresses.deny: ":              {Settings: list.Settings{ClientAddresses: &address.Rule{Deny: []string{"fe80::1%eth0"}}}},
		"rateLimit: ":                         {Settings: list.Settings{RateLimit: &ratelimit.Limit{}}},
		"rateLimit.per: ":                     {Settings: list.Settings{RateLimit: &ratelimit.Limit{Per: ratelimit.PerKey}}},
		"auth: ":                              {Settings: list.Settings{Auth: &auth.Policy{}}},
		"auth.apiKey: ":                       {Settings: list.Settings{Auth: &auth.Policy{APIKey: &auth.APIKey{}}}},
		"auth.apiKey.header: ":                {Settings: list.Settings{Auth: &auth.Policy{APIKey: &auth.APIKey{Header: name}}}},
		"auth.external.path":                  {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "x", Timeout: time.Second}}}},
		"auth.external.path: it":              {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/x", GRPC: true, Timeout: time.Second}}}},
		"auth.external.body":                  {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/", MaxBody: 1<<20 + 1, Timeout: time.Second}}}},
		"auth.external.timeout":               {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/"}}}},
		"auth.external.requestHeaders":        {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/", Timeout: time.Second, RequestHeaders: []string{"x-forwarded-for"}}}}},
		"auth.external.backendHeaders":        {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/", Timeout: time.Second, BackendHeaders: []string{"Content-Length"}}}}},
		"auth.external.identityHeader":        {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/", Timeout: time.Second, IdentityHeader: name}}}},
		"rateLimit.per: Key needs":            {Settings: list.Settings{Auth: &auth.Policy{External: &auth.External{Path: "/", Timeout: time.Second}}, RateLimit: &ratelimit.Limit{Requests: 1, Period: time.Second, Burst: 1, Per: ratelimit.PerKey}}},
		"auth.basic.realm ":                   {Settings: list.Settings{Auth: &auth.Policy{Basic: &auth.Basic{Realm: `"`}}}},
		"auth.jwt: ":                          {Settings: list.Settings{Auth: &auth.Policy{JWT: &auth.JWT{Issuer: "i"}}}},
		"auth.jwt.claimsToHeaders: ":          {Settings: list.Settings{Auth: &auth.Policy{JWT: &auth.JWT{Issuer: "i", JWKSURL: "https://i/", ClaimHeaders: []auth.ClaimHeader{{Header: "Host"}}}}}},
		"auth.jwt.requireClaims: ":            {Settings: list.Settings{Auth: &auth.Policy{JWT: &auth.JWT{Issuer: "i", JWKSURL: "https://i/", Required: []auth.RequiredClaim{{Claim: "a"}}}}}},
		"auth.jwt.requireClaims: claim scope": {Settings: list.Settings{Auth: &auth.Policy{JWT: &auth.JWT{Issuer: "i", JWKSURL: "https://i/", Required: []auth.RequiredClaim{{Claim: "scope", Values: []string{"a b"}}}}}}},
	} {
		t.Run(want, func(t *testing.T) {
			rule.Direct = answer
			_, problems := oneListener(table.Input{Rules: []table.Rule{rule}})
			if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, want) {
				t.Errorf("got %+v", problems)
			}
		})
	}
	redirect := table.Rule{Redirect: &model.Redirect{StatusCode: 200}}
	if _, problems := oneListener(table.Input{Rules: []table.Rule{redirect}}); len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "redirect.statusCode: ") {
		t.Errorf("got %+v", problems)
	}
}

// Without an ID, nothing is known about who else comes in.
func TestAuthWithoutAnIDIsLikeNoOther(t *testing.T) {
	auth := &auth.Policy{APIKey: &auth.APIKey{Header: "X-Key"}}
	to := []model.BackendRef{{Service: "web", Port: 80, Weight: 1}}
	path, err := table.ParsePath("/a/..%2Fb")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "same"} {
		auth.ID = id
		compiled, problems := oneListener(table.Input{Services: everywhere(), Rules: []table.Rule{
			{Path: "/a", Settings: list.Settings{Auth: auth}, Backends: to}, {Index: 1, Path: "/b", Settings: list.Settings{Auth: auth}, Backends: to},
		}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		r := &table.Request{Method: "GET", Path: path.Match}
		if got := compiled.ReadAlike(r, path, compiled.Match(r)); got != (id == "same") {
			t.Errorf("ID %q: goes on: %v", id, got)
		}
	}
}

func TestWrongSettingsAreIgnored(t *testing.T) {
	name := model.BackendName{ServiceName: model.ServiceName{Name: "web"}, Port: 80}
	compiled, problems := oneListener(table.Input{
		Services: everywhere(), Rules: []table.Rule{{Backends: []model.BackendRef{{Service: "web", Port: 80, Weight: 1}}}},
		Settings: map[model.BackendName]model.Settings{name: {HealthCheck: &model.HealthCheck{Path: "x"}, Limits: &model.Limits{Connections: 1, Requests: 1}}},
	})
	want := []model.Problem{{Index: -1, List: "settings", Route: "web:80", Reason: "Invalid", Message: `path: "x" cannot be a path: the path does not begin with a slash`}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if b := compiled.Backends[0]; b.HealthCheck != nil || b.Limits != model.DefaultLimits() {
		t.Errorf("got %+v", b)
	}
}

func TestARedirectMayReplaceThePrefixAndNameTheListener(t *testing.T) {
	const host = "a.test:8080"
	for name, tc := range map[string]struct {
		redirect model.Redirect
		scheme   string
		listener int32
		path     string
		want     string
	}{
		"prefix":                       {model.Redirect{PathPrefix: "/new"}, "http", 0, "/old/x", "http://a.test:8080/new/x"},
		"prefix itself":                {model.Redirect{PathPrefix: "/new"}, "http", 0, "/old", "http://a.test:8080/new"},
		"prefix removed":               {model.Redirect{PathPrefix: "/"}, "http", 0, "/old/x", "http://a.test:8080/x"},
		"what looks like a host":       {model.Redirect{PathPrefix: "/"}, "http", 0, "/old//evil.test/x", "http://a.test:8080//evil.test/x"},
		"port of the listener":         {model.Redirect{ListenerPort: true}, "http", 8081, "/old", "http://a.test:8081/old"},
		"port that needs no word":      {model.Redirect{ListenerPort: true}, "http", 80, "/old", "http://a.test/old"},
		"port of TLS":                  {model.Redirect{ListenerPort: true}, "https", 443, "/old", "https://a.test/old"},
		"port 80 with TLS":             {model.Redirect{ListenerPort: true}, "https", 80, "/old", "https://a.test:80/old"},
		"a port before the listener's": {model.Redirect{ListenerPort: true, Port: 9000}, "http", 8081, "/old", "http://a.test:9000/old"},
		"a scheme before it":           {model.Redirect{ListenerPort: true, Scheme: "https"}, "http", 8081, "/old", "https://a.test/old"},
		"an unknown listener":          {model.Redirect{ListenerPort: true}, "http", 0, "/old", "http://a.test:8080/old"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.redirect.StatusCode = 302
			compiled, problems := oneListener(table.Input{Rules: []table.Rule{{Path: "/old", Redirect: &tc.redirect}}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := compiled.Routes[0].Redirect.Location(tc.scheme, host, tc.listener, tc.path, ""); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A backend of one rule may trust a header that the gateway sets for it.
func TestChangesOfOneBackendAreProtectedToo(t *testing.T) {
	to := func(name string, change func(*model.BackendRef)) []model.BackendRef {
		ref := model.BackendRef{Service: name, Port: 80, Weight: 1}
		change(&ref)
		return []model.BackendRef{{Service: "web", Port: 80}, ref}
	}
	nothing := func(*model.BackendRef) {}
	internal := func(ref *model.BackendRef) {
		ref.RequestHeaders = &model.HeaderEdit{Set: []model.HeaderField{{Name: "X-Internal", Value: "yes"}}}
	}
	below := func(ref *model.BackendRef) { ref.Rewrite = &model.Rewrite{PathPrefix: "/inside"} }
	path, err := table.ParsePath("/a/..%2Fb")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		answers, other func(*model.BackendRef)
		want           bool
	}{
		"none":         {nothing, nothing, true},
		"of the first": {internal, nothing, false},
		"of the other": {nothing, internal, false},
		"of both":      {internal, internal, true},
		"a path that leaves what the rewrite of a backend allows": {below, nothing, false},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, problems := oneListener(table.Input{Services: everywhere(), Rules: []table.Rule{
				{Path: "/a", Backends: to("web", tc.answers)}, {Index: 1, Path: "/b", Backends: to("web", tc.other)},
			}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			r := &table.Request{Method: "GET", Path: path.Match}
			if got := compiled.ReadAlike(r, path, compiled.Match(r)); got != tc.want {
				t.Errorf("goes on: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStatusesAreASet(t *testing.T) {
	set := model.StatusesOf(399, 400, 463, 464, 599, 600, -1)
	for code := range 1000 {
		if got := set.Has(code); got != (code == 400 || code == 463 || code == 464 || code == 599) {
			t.Errorf("%d: %v", code, got)
		}
	}
}
