package table_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const bcryptHash = "$2y$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"

func hashOf(key string) string {
	hash := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(hash[:])
}

// services are the Services that these tests use. publicKeySet is the key of RFC 7517, A.1.
const publicKeySet = `{"keys": [{"kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`

func services() map[string]model.Service {
	return map[string]model.Service{
		"users": {Ports: map[int32]model.ServicePort{8080: {Endpoints: []string{"10.0.0.2:80", "10.0.0.1:80", "10.0.0.2:80"}}}},
		"chat":  {Ports: map[int32]model.ServicePort{9000: {AppProtocol: "kubernetes.io/h2c", Endpoints: []string{"10.0.0.3:90"}}}},
		"away":  {External: true},
		"idle":  {Ports: map[int32]model.ServicePort{8080: {}}},
		"tls":   {Ports: map[int32]model.ServicePort{443: {AppProtocol: "https", Endpoints: []string{"10.0.0.4:443"}}}},
	}
}

func secrets() map[string]map[string][]byte {
	return map[string]map[string][]byte{
		"keys":    {"alice": []byte(hashOf("one") + "\n" + hashOf("two") + "\n"), "bob": []byte(hashOf("three"))},
		"users":   {"carol": []byte(bcryptHash)},
		"days":    {"carol": []byte(strings.Replace(bcryptHash, "$10$", "$31$", 1))},
		"letters": {"carol": []byte(strings.Replace(bcryptHash, "$10$", "$xy$", 1))},
		"jwks":    {"keys.json": []byte(publicKeySet), "bad.json": []byte(`{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}`)},
		"plain":   {"alice": []byte("the-key-itself")},
		"three":   {"alice": []byte(strings.Repeat(hashOf("one")+"\n", 3))},
		"shared":  {"alice": []byte(hashOf("one")), "bob": []byte(hashOf("one"))},
		"nothing": {},
	}
}

func TestABadRouteIsNamedWithItsReasonAndTakesNoOtherDown(t *testing.T) {
	const (
		leftOut     = "left out"
		unavailable = "unavailable"
		inPlace     = "in place"
	)
	tests := map[string]struct {
		route   string
		reason  string
		message string
		fate    string
	}{
		"path expression":   {`pathType: RegularExpression, path: "/a(", backendService: {name: users, port: 8080}`, "InvalidRegex", `path: the regular expression "/a(" does not compile`, leftOut},
		"path parenthesis":  {`pathType: RegularExpression, path: "/a)|(/b", backendService: {name: users, port: 8080}`, "InvalidRegex", `does not compile`, leftOut},
		"huge expression":   {`pathType: RegularExpression, path: "/` + strings.Repeat("a{1000}", 11) + `", backendService: {name: users, port: 8080}`, "InvalidRegex", `it is too large`, leftOut},
		"header expression": {`headers: [{name: X-A, value: "[", type: RegularExpression}], backendService: {name: users, port: 8080}`, "InvalidRegex", `headers: X-A: the regular expression "["`, leftOut},
		"query expression":  {`queryParams: [{name: v, value: "[", type: RegularExpression}], backendService: {name: users, port: 8080}`, "InvalidRegex", `queryParams: v: the regular expression "["`, leftOut},
		"expression without value": {
			`headers: [{name: X-A, type: RegularExpression}], backendService: {name: users, port: 8080}`, "InvalidRoute", "headers: X-A has type RegularExpression and no value", leftOut,
		},
		"host":         {`host: A.example.com, backendService: {name: users, port: 8080}`, "InvalidRoute", `host: "A.example.com"`, leftOut},
		"path":         {`path: users, backendService: {name: users, port: 8080}`, "InvalidRoute", `path: "users" cannot be the path of a request`, leftOut},
		"path type":    {`pathType: Glob, backendService: {name: users, port: 8080}`, "InvalidRoute", `pathType: "Glob"`, leftOut},
		"match type":   {`headers: [{name: X-A, type: Glob}], backendService: {name: users, port: 8080}`, "InvalidRoute", `headers: type "Glob"`, leftOut},
		"Host header":  {`headers: [{name: host}], backendService: {name: users, port: 8080}`, "InvalidRoute", `headers: "host" cannot be matched`, leftOut},
		"no action":    {`path: /x`, "InvalidRoute", "exactly one of backendService, backends, redirect and directResponse", unavailable},
		"two actions":  {`redirect: {path: /}, directResponse: {statusCode: 200}`, "InvalidRoute", "exactly one of", unavailable},
		"expectation":  {`requestHeaders: {set: [{name: expect, value: 100-continue}]}, backendService: {name: users, port: 8080}`, "InvalidRoute", "requestHeaders.set: Expect cannot be changed", unavailable},
		"settings":     {`requestHeaders: {add: [{name: HTTP2-Settings, value: a}]}, backendService: {name: users, port: 8080}`, "InvalidRoute", "requestHeaders.add: Http2-Settings cannot be changed", unavailable},
		"header edit":  {`requestHeaders: {set: [{name: content-length, value: "0"}]}, backendService: {name: users, port: 8080}`, "InvalidRoute", "requestHeaders.set: Content-Length cannot be changed", unavailable},
		"header name":  {`responseHeaders: {remove: ["a b"]}, backendService: {name: users, port: 8080}`, "InvalidRoute", `responseHeaders.remove: "a b"`, unavailable},
		"header value": {`responseHeaders: {add: [{name: X-A, value: "a\r\nSet-Cookie: b"}]}, backendService: {name: users, port: 8080}`, "InvalidRoute", "responseHeaders.add: the value of X-A", unavailable},
		"rewrite both": {`rewrite: {path: /a, pathPrefix: /b}, backendService: {name: users, port: 8080}`, "InvalidRoute", "rewrite.pathPrefix", unavailable},
		"rewrite exact": {
			`pathType: Exact, path: /x, rewrite: {pathPrefix: /b}, backendService: {name: users, port: 8080}`, "InvalidRoute", "rewrite.pathPrefix needs pathType Prefix", unavailable,
		},
		"rewrite path":                         {`rewrite: {path: "/a b"}, backendService: {name: users, port: 8080}`, "InvalidRoute", "rewrite: ", unavailable},
		"rewrite host":                         {`rewrite: {host: "*.example.com"}, backendService: {name: users, port: 8080}`, "InvalidRoute", "rewrite.host", unavailable},
		"redirect code":                        {`redirect: {path: /, statusCode: 200}`, "InvalidRoute", "redirect.statusCode: 200", unavailable},
		"redirect scheme":                      {`redirect: {scheme: ftp}`, "InvalidRoute", "redirect.scheme", unavailable},
		"redirect host":                        {`redirect: {host: "a/b"}`, "InvalidRoute", "redirect.host", unavailable},
		"redirect port":                        {`redirect: {port: 70000}`, "InvalidRoute", "redirect.port", unavailable},
		"redirect path":                        {`redirect: {path: x}`, "InvalidRoute", "redirect.path", unavailable},
		"direct code":                          {`directResponse: {statusCode: 100}`, "InvalidRoute", "directResponse.statusCode: 100", unavailable},
		"content type":                         {`directResponse: {statusCode: 200, contentType: "a\nb"}`, "InvalidRoute", "directResponse.contentType", unavailable},
		"cors":                                 {`cors: {allowOrigins: ["*"], allowCredentials: true}, directResponse: {statusCode: 200}`, "InvalidRoute", "cors: allowCredentials", unavailable},
		"cors header":                          {`cors: {allowOrigins: ["*"], allowHeaders: ["a\nb"]}, directResponse: {statusCode: 200}`, "InvalidRoute", "cors: ", unavailable},
		"timeout":                              {`timeouts: {request: soon}, directResponse: {statusCode: 200}`, "InvalidRoute", `timeouts.request: "soon"`, unavailable},
		"negative timeout":                     {`timeouts: {backend: -1s}, directResponse: {statusCode: 200}`, "InvalidRoute", `timeouts.backend: "-1s"`, unavailable},
		"body size":                            {`maxBodyBytes: -1, directResponse: {statusCode: 200}`, "InvalidRoute", "maxBodyBytes", unavailable},
		"retry attempts":                       {`retries: {attempts: 11}, directResponse: {statusCode: 200}`, "InvalidRoute", "retries.attempts: 11", unavailable},
		"retry cause":                          {`retries: {retryOn: ["500"]}, directResponse: {statusCode: 200}`, "InvalidRoute", `retries.retryOn: "500"`, unavailable},
		"rate":                                 {`rateLimit: {requests: 0}, directResponse: {statusCode: 200}`, "InvalidRoute", "rateLimit: ", unavailable},
		"rate period":                          {`rateLimit: {requests: 1, period: 1ms}, directResponse: {statusCode: 200}`, "InvalidRoute", "rateLimit: ", unavailable},
		"rate scope":                           {`rateLimit: {requests: 1, per: Moon}, directResponse: {statusCode: 200}`, "InvalidRoute", "rateLimit.per", unavailable},
		"rate per key":                         {`rateLimit: {requests: 1, per: Key}, directResponse: {statusCode: 200}`, "InvalidRoute", "rateLimit.per: Key needs auth", unavailable},
		"two auths":                            {`auth: {apiKey: {secretRef: {name: keys}}, basic: {secretRef: {name: users}}}, directResponse: {statusCode: 200}`, "InvalidRoute", "auth: ", unavailable},
		"no Secret":                            {`auth: {apiKey: {secretRef: {name: gone}}}, directResponse: {statusCode: 200}`, "SecretNotFound", `auth.apiKey.secretRef: Secret "gone" does not exist`, unavailable},
		"closed Secret":                        {`auth: {basic: {secretRef: {name: closed}}}, directResponse: {statusCode: 200}`, "SecretNotFound", `auth.basic.secretRef: Secret "closed" may not be read by the gateway`, unavailable},
		"empty Secret":                         {`auth: {apiKey: {secretRef: {name: nothing}}}, directResponse: {statusCode: 200}`, "InvalidSecret", `Secret "nothing" is empty`, unavailable},
		"key not hashed":                       {`auth: {apiKey: {secretRef: {name: plain}}}, directResponse: {statusCode: 200}`, "InvalidSecret", `key "alice" of Secret "plain" cannot be used`, unavailable},
		"three keys":                           {`auth: {apiKey: {secretRef: {name: three}}}, directResponse: {statusCode: 200}`, "InvalidSecret", "it must have one or two lines", unavailable},
		"shared key":                           {`auth: {apiKey: {secretRef: {name: shared}}}, directResponse: {statusCode: 200}`, "InvalidSecret", `it has the same API key as "alice"`, unavailable},
		"password of a cost that takes days":   {`auth: {basic: {secretRef: {name: days}}}, directResponse: {statusCode: 200}`, "InvalidSecret", "cost from 4 to 15", unavailable},
		"password of a cost that is no number": {`auth: {basic: {secretRef: {name: letters}}}, directResponse: {statusCode: 200}`, "InvalidSecret", "cost from 4 to 15", unavailable},
		"password not hash":                    {`auth: {basic: {secretRef: {name: plain}}}, directResponse: {statusCode: 200}`, "InvalidSecret", "bcrypt", unavailable},
		"realm":                                {`auth: {basic: {secretRef: {name: users}, realm: "a\"b"}}, directResponse: {statusCode: 200}`, "InvalidRoute", "auth.basic.realm", unavailable},
		"client header":                        {`auth: {apiKey: {secretRef: {name: keys}, clientHeader: Host}}, directResponse: {statusCode: 200}`, "InvalidRoute", "auth.apiKey.clientHeader: Host cannot be changed", unavailable},
		"no key set":                           {`auth: {jwt: {issuer: i, jwksSecretRef: {name: jwks, key: gone}}}, directResponse: {statusCode: 200}`, "KeyNotFound", `Secret "jwks" has no key "gone"`, unavailable},
		"no public keys":                       {`auth: {jwt: {issuer: i, jwksSecretRef: {name: jwks, key: bad.json}}}, directResponse: {statusCode: 200}`, "InvalidSecret", "JSON Web Key Set", unavailable},
		"key set twice":                        {`auth: {jwt: {issuer: i, jwksURL: "https://i/", jwksSecretRef: {name: jwks, key: keys.json}}}, directResponse: {statusCode: 200}`, "InvalidRoute", "auth.jwt: ", unavailable},
		"key set address":                      {`auth: {jwt: {issuer: i, jwksURL: "file:///etc/passwd"}}, directResponse: {statusCode: 200}`, "InvalidRoute", "auth.jwt.jwksURL", unavailable},
		"no Service":                           {`backendService: {name: gone, port: 8080}`, "BackendNotFound", `backendService: Service "gone" does not exist`, inPlace},
		"ExternalName":                         {`backendService: {name: away, port: 8080}`, "UnsupportedService", `backendService: Service "away" is of type ExternalName`, inPlace},
		"no port":                              {`backendService: {name: users, port: 1}`, "PortNotFound", `backendService: Service "users" has no port 1`, inPlace},
		"no endpoints":                         {`backendService: {name: idle, port: 8080}`, "NoEndpoints", `backendService: no endpoint of Service "idle" is ready on port 8080`, inPlace},
		"one of two":                           {`backends: [{name: users, port: 8080}, {name: idle, port: 8080}]`, "NoEndpoints", `backends: no endpoint of Service "idle"`, inPlace},
		"mirror":                               {`backendService: {name: users, port: 8080}, mirror: {backendService: {name: gone, port: 1}}`, "BackendNotFound", "mirror.backendService", inPlace},
		"protocol":                             {`backendService: {name: tls, port: 443}`, "UnsupportedProtocol", `appProtocol "https"`, inPlace},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := apiroutes.Input{Services: services(), Secrets: secrets(), Unreadable: map[string]bool{"closed": true}, Routes: routes(t, `
- {name: good, path: /good, backendService: {name: users, port: 8080}}
- {name: bad, `+tc.route+`}
- {name: rest, host: rest.example.com, directResponse: {statusCode: 204}}`)}
			compiled, problems := apiroutes.Compile(in)
			if len(problems) != 1 || problems[0].Index != 1 || problems[0].Route != "bad" || problems[0].Reason != tc.reason || !strings.Contains(problems[0].Message, tc.message) {
				t.Errorf("problems %+v, want one of route bad, %s: %s", problems, tc.reason, tc.message)
			}
			fate := leftOut
			for _, route := range compiled.Routes {
				if route.Name == "bad" {
					fate = inPlace
					if route.Unavailable != nil {
						fate = unavailable
					}
				}
			}
			if fate != tc.fate {
				t.Errorf("the route is %s, want %s", fate, tc.fate)
			}
			if got := compiled.Match(request(t, "GET http://other/good/1")); nameOf(got) != "good" || got.Unavailable != nil || !picks(got) {
				t.Errorf("the good route is %+v", got)
			}
			if got := compiled.Match(request(t, "GET http://rest.example.com/")); nameOf(got) != "rest" {
				t.Errorf("%q answers for the rest", nameOf(got))
			}
		})
	}
}

// If the route were left out, its requests would get through a more general route without
// authentication.
func TestAnUnavailableRouteKeepsItsRequestsFromOthers(t *testing.T) {
	compiled, _ := apiroutes.Compile(apiroutes.Input{Routes: routes(t, `
- {name: open, directResponse: {statusCode: 200}}
- {name: admin, path: /admin, auth: {apiKey: {secretRef: {name: gone}}}, directResponse: {statusCode: 200}}`)})
	got := compiled.Match(request(t, "GET http://a/admin"))
	if nameOf(got) != "admin" || got.Unavailable == nil || got.Unavailable.Reason != slipwayv1alpha1.ReasonSecretNotFound {
		t.Errorf("the route is %+v", got)
	}
}

func TestEveryRouteHasANameOfItsOwn(t *testing.T) {
	compiled, problems := apiroutes.Compile(apiroutes.Input{Routes: answering(routes(t, `
- {host: a.example.com, path: /x}
- {host: a.example.com, path: /x, methods: [GET]}
- {}
- {name: shop}
- {name: shop}
- {name: /}
`))})
	var names []string
	for _, route := range compiled.Routes {
		names = append(names, route.Name)
	}
	want := []string{"a.example.com/x", "a.example.com/x#2", "/#2", "shop", "shop#2", "/"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	wanted := []model.Problem{{Index: 4, Route: "shop#2", Reason: "DuplicateName", Message: `name: an earlier route is called "shop"; this one is called "shop#2"`}}
	if diff := cmp.Diff(wanted, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestARouteHasWhatItsSpecSaysAndTheDefaultsOfTheRest(t *testing.T) {
	compiled := compile(t, apiroutes.Input{Services: services(), Secrets: secrets(), Routes: routes(t, `
- name: least
  backendService: {name: users, port: 8080}
- name: most
  path: /most
  backends: [{name: users, port: 8080, weight: 3}, {name: chat, port: 9000}]
  maxBodyBytes: 1024
  mirror: {backendService: {name: chat, port: 9000}}
  timeouts: {request: 1m30s, backend: 0s}
  retries: {attempts: 0, retryOn: [Reset, "503"]}
  rateLimit: {requests: 10, period: 1m, per: Route}
  requestHeaders: {remove: [x-a], set: [{name: x-b, value: b}], add: [{name: x-c, value: c}]}
- name: direct
  path: /direct
  directResponse: {statusCode: 404, body: gone}
`)})
	least, most, direct := compiled.Routes[0], compiled.Routes[1], compiled.Routes[2]

	if got, want := least.Timeouts, (model.Timeouts{Backend: time.Minute}); got != want {
		t.Errorf("default timeouts %+v, want %+v", got, want)
	}
	if got, want := least.Retries, (model.Retries{Attempts: 2, On: model.OnConnectFailure}); got != want {
		t.Errorf("default retries %+v, want %+v", got, want)
	}
	if got, want := most.Timeouts, (model.Timeouts{Request: 90 * time.Second}); got != want {
		t.Errorf("timeouts %+v, want %+v", got, want)
	}
	if got, want := most.Retries, (model.Retries{On: model.OnReset | model.OnStatus503}); got != want {
		t.Errorf("retries %+v, want %+v", got, want)
	}
	if got, want := *most.RateLimit, (ratelimit.Limit{Requests: 10, Period: time.Minute, Burst: 10, Per: ratelimit.PerRoute}); got != want {
		t.Errorf("rate limit %+v, want %+v", got, want)
	}
	if most.MaxBodyBytes != 1024 || len(most.Mirrors) != 1 || most.Mirrors[0].Numerator != 100 || most.Mirrors[0].Denominator != 100 || most.Mirrors[0].Backend.ID != "chat:9000" {
		t.Errorf("body %d, mirrors %+v", most.MaxBodyBytes, most.Mirrors)
	}
	edit := &model.HeaderEdit{Remove: []string{"X-A"}, Set: []model.HeaderField{{Name: "X-B", Value: "b"}}, Add: []model.HeaderField{{Name: "X-C", Value: "c"}}}
	if diff := cmp.Diff(edit, most.RequestHeaders); diff != "" {
		t.Errorf("request headers (-want +got):\n%s", diff)
	}
	answer := &model.DirectResponse{StatusCode: 404, ContentType: "text/plain; charset=utf-8", Body: []byte("gone")}
	if diff := cmp.Diff(answer, direct.Direct); diff != "" {
		t.Errorf("direct response (-want +got):\n%s", diff)
	}
	backends := []*model.Backend{
		{ID: "chat:9000", Service: "chat", Port: 9000, Protocol: model.ProtocolH2C, Endpoints: []string{"10.0.0.3:90"}, Limits: plainLimits},
		{ID: "users:8080", Index: 1, Service: "users", Port: 8080, Endpoints: []string{"10.0.0.1:80", "10.0.0.2:80"}, Limits: plainLimits},
	}
	if diff := cmp.Diff(backends, compiled.Backends); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	if least.Backends[0].Backend != most.Backends[0].Backend {
		t.Error("two routes to the same port of a Service have different backends")
	}
}

func TestAuthKnowsWhoMayComeIn(t *testing.T) {
	compiled := compile(t, apiroutes.Input{Secrets: secrets(), Routes: answering(routes(t, `
- {name: key, auth: {apiKey: {secretRef: {name: keys}, clientHeader: x-client}}}
- {name: query, auth: {apiKey: {secretRef: {name: keys}, queryParam: key}}}
- {name: basic, auth: {basic: {secretRef: {name: users}, userHeader: x-user}}}
- {name: jwt, auth: {jwt: {issuer: i, audiences: [a], jwksSecretRef: {name: jwks, key: keys.json}, claimsToHeaders: [{claim: sub, header: x-sub}]}}}
`))})
	key, query, basic, jwt := compiled.Routes[0].Auth.APIKey, compiled.Routes[1].Auth.APIKey, compiled.Routes[2].Auth.Basic, compiled.Routes[3].Auth.JWT
	for sent, want := range map[string]string{"one": "alice", "two": "alice", "three": "bob", "four": "", "": ""} {
		if got, ok := key.Client(sent); got != want || ok != (want != "") {
			t.Errorf("key %q is %q, %v, want %q", sent, got, ok, want)
		}
	}
	if key.Header != "X-Api-Key" || key.ClientHeader != "X-Client" || query.Header != "" || query.QueryParam != "key" {
		t.Errorf("keys come from %+v and %+v", key, query)
	}
	if diff := cmp.Diff(&auth.Basic{UserHeader: "X-User", Users: map[string][][]byte{"carol": {[]byte(bcryptHash)}}}, basic); diff != "" {
		t.Errorf("basic (-want +got):\n%s", diff)
	}
	if jwt.Keys == nil {
		t.Error("jwt has no keys")
	}
	jwt.Keys = nil
	if diff := cmp.Diff(&auth.JWT{Issuer: "i", Audiences: []string{"a"}, ClaimHeaders: []auth.ClaimHeader{{Claim: "sub", Header: "X-Sub"}}}, jwt); diff != "" {
		t.Errorf("jwt (-want +got):\n%s", diff)
	}
}

func TestNoMessageHoldsASecretsValue(t *testing.T) {
	const canary = "canary-3f1c"
	in := apiroutes.Input{Secrets: map[string]map[string][]byte{"s": {"k": []byte(canary)}}}
	for _, auth := range []string{"apiKey: {secretRef: {name: s}}", "basic: {secretRef: {name: s}}", "jwt: {issuer: i, jwksSecretRef: {name: s, key: k}}"} {
		in.Routes = append(in.Routes, answering(routes(t, "[{auth: {"+auth+"}}]"))...)
	}
	_, problems := apiroutes.Compile(in)
	if len(problems) != len(in.Routes) || strings.Contains(fmt.Sprint(problems), canary) {
		t.Errorf("problems: %+v", problems)
	}
}

// Keys are looked up by their hash. The time of a lookup depends on the hash that was sent,
// not on the stored ones, and a client cannot choose the hash of what it sends.
func TestKeysAreComparedByTheirHashOnly(t *testing.T) {
	compiled := compile(t, apiroutes.Input{Secrets: secrets(), Routes: answering(routes(t, `[{auth: {apiKey: {secretRef: {name: keys}}}}]`))})
	clients := reflect.ValueOf(compiled.Routes[0].Auth.APIKey).Elem().FieldByName("Clients")
	if clients.Kind() != reflect.Map || clients.Type().Key() != reflect.TypeFor[[sha256.Size]byte]() || clients.Len() != 3 {
		t.Errorf("clients are held as %v", clients.Type())
	}
}

// An unknown field may be one that restricts access.
func TestARouteWithAnUnknownFieldServesNothing(t *testing.T) {
	in := apiroutes.Input{Unknown: map[int]string{1: "auth.mtls"}, Routes: routes(t, `
- {name: good, path: /good, directResponse: {statusCode: 200}}
- {name: newer, path: /newer, directResponse: {statusCode: 200}}
- {name: rest, directResponse: {statusCode: 204}}`)}
	compiled, problems := apiroutes.Compile(in)
	want := []model.Problem{{Index: 1, Route: "newer", Reason: "ImageIncompatible", Message: "auth.mtls: this version of the gateway does not know the field"}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
	if route := compiled.Match(request(t, "GET http://a.example.com/newer")); nameOf(route) != "newer" || route.Unavailable == nil || route.Direct != nil {
		t.Errorf("got %+v", route)
	}
	if route := compiled.Match(request(t, "GET http://a.example.com/good")); nameOf(route) != "good" || route.Unavailable != nil {
		t.Errorf("got %+v", route)
	}
}
