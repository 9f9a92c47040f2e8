package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/crypto/bcrypt"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// issuer signs tokens and publishes its keys.
type issuer struct {
	t         *testing.T
	key       *ecdsa.PrivateKey
	id        string
	published atomic.Pointer[string]
	fetches   atomic.Int64
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t}
	i.rotate("first")
	return i
}

// rotate makes a new key. It is not published yet.
func (i *issuer) rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.key, i.id = key, id
}

// keySet returns the public key for the current tokens.
func (i *issuer) keySet() string {
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: i.id}}})
	if err != nil {
		i.t.Fatal(err)
	}
	return string(set)
}

func (i *issuer) publish() { i.published.Store(new(i.keySet())) }

func (i *issuer) serve() *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		if set := i.published.Load(); set != nil {
			_, _ = io.WriteString(w, *set)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	i.t.Cleanup(server.Close)
	return server
}

// token returns a valid token for alice, with the given claims changed.
func (i *issuer) token(over map[string]any) string {
	claims := map[string]any{"iss": "https://issuer.example.com", "aud": "shop", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range over {
		claims[name] = value
	}
	text, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", i.id))
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		i.t.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return compact
}

const tokenRoute = `
- backendService: {name: app, port: 80}
  auth:
    jwt:
      issuer: https://issuer.example.com
      audiences: [shop]
      KEYS
      claimsToHeaders: [{claim: sub, header: X-User}, {claim: org.id, header: X-Org}, {claim: groups, header: X-Groups}, {claim: missing, header: X-Missing}]
`

func fromURL(address string) string {
	return strings.Replace(tokenRoute, "KEYS", "jwksURL: "+address, 1)
}

func TestTokensLetInWhomTheyName(t *testing.T) {
	issuer := newIssuer(t)
	secrets := map[string]map[string][]byte{"jwks": {"keys.json": []byte(issuer.keySet())}}
	backend, requests := recording(t)
	routes := strings.Replace(tokenRoute, "KEYS", "jwksSecretRef: {name: jwks, key: keys.json}", 1)
	g := startTable(t, Options{}, compile(t, routes, secrets, backend))
	good := issuer.token(map[string]any{"org": map[string]any{"id": 7}, "groups": []string{"a", "b"}})
	for name, test := range map[string]struct {
		fields   []string
		code     int
		question string
	}{
		"no token":         {nil, 401, `Bearer realm="slipway"`},
		"another scheme":   {[]string{"Authorization", "Basic " + good}, 401, `Bearer realm="slipway"`},
		"no scheme":        {[]string{"Authorization", good}, 401, `Bearer realm="slipway"`},
		"two tokens":       {[]string{"Authorization", "Bearer " + good, "Authorization", "Bearer " + good}, 401, `Bearer realm="slipway"`},
		"another issuer":   {[]string{"Authorization", "Bearer " + issuer.token(map[string]any{"iss": "x"})}, 401, `Bearer realm="slipway", error="invalid_token"`},
		"another audience": {[]string{"Authorization", "Bearer " + issuer.token(map[string]any{"aud": "x"})}, 401, `Bearer realm="slipway", error="invalid_token"`},
		"expired":          {[]string{"Authorization", "Bearer " + issuer.token(map[string]any{"exp": 1})}, 401, `Bearer realm="slipway", error="invalid_token"`},
		"forged":           {[]string{"Authorization", "Bearer " + good[:len(good)-4] + "AAAA"}, 401, `Bearer realm="slipway", error="invalid_token"`},
		"good":             {[]string{"Authorization", "Bearer " + good}, 200, ""},
		"lower case":       {[]string{"Authorization", "bearer  " + good}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spoofed := []string{"X-User", "root", "x_user", "root", "X-Org", "1", "X-Missing", "root", "X_missing", "root", "Connection", "X-User"}
			response, _ := g.get("/", append(test.fields, spoofed...)...)
			want(t, "status", response.StatusCode, test.code)
			want(t, "question", response.Header.Get("WWW-Authenticate"), test.question)
			if test.code != 200 {
				want(t, "requests", len(requests), 0)
				return
			}
			r := <-requests
			want(t, "claims", join(r.Header["X-User"])+" "+join(r.Header["X-Org"])+" "+join(r.Header["X-Groups"]), `alice 7 ["a","b"]`)
			want(t, "spoofed", join(r.Header["X-Missing"])+join(r.Header["X_missing"])+join(r.Header["X_user"]), "")
			want(t, "token", strings.HasSuffix(r.Header.Get("Authorization"), good), true)
		})
	}
}

func TestATokenMustHaveTheClaimsThatTheRouteRequires(t *testing.T) {
	issuer := newIssuer(t)
	secrets := map[string]map[string][]byte{"jwks": {"keys.json": []byte(issuer.keySet())}}
	backend, requests := recording(t)
	routes := strings.Replace(tokenRoute, "KEYS", "jwksSecretRef: {name: jwks, key: keys.json}", 1) +
		"      requireClaims: [{claim: realm.roles, values: [admin, owner]}, {claim: groups, values: [shop]}, {claim: level, values: ['3']}]\n"
	log := &lockedbuffer.Buffer{}
	g := startTable(t, Options{AccessLog: log}, compile(t, routes, secrets, backend))
	for name, test := range map[string]struct {
		claims map[string]any
		code   int
	}{
		"all":       {map[string]any{"realm": map[string]any{"roles": []string{"user", "owner"}}, "groups": "shop", "level": 3}, 200},
		"none":      {nil, 403},
		"one less":  {map[string]any{"realm": map[string]any{"roles": "admin"}, "groups": "shop"}, 403},
		"one other": {map[string]any{"realm": map[string]any{"roles": "admin"}, "groups": []string{"shops"}, "level": 3}, 403},
		"nested":    {map[string]any{"realm": map[string]any{"roles": [][]string{{"admin"}}}, "groups": "shop", "level": 3}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			response, _ := g.get("/", "Authorization", "Bearer "+issuer.token(test.claims))
			want(t, "status", response.StatusCode, test.code)
			if test.code == 200 {
				<-requests
				return
			}
			want(t, "question", response.Header.Get("WWW-Authenticate"), `Bearer realm="slipway", error="insufficient_scope"`)
			want(t, "requests", len(requests), 0)
		})
	}
	response, _ := g.get("/")
	want(t, "without a token", response.StatusCode, 401)
	eventually(t, "the access log says why", func() bool { return strings.Count(log.String(), `"failure":"claims"`) == 4 })
}

func TestANewKeyOfTheIssuerIsTakenWithTheFirstTokenThatNeedsIt(t *testing.T) {
	issuer := newIssuer(t)
	issuer.publish()
	keys := issuer.serve()
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	clock := testingclock.NewFakeClock(time.Now())
	g := start(t, Options{Clock: clock}, fromURL(keys.URL), backend)
	code := func() string {
		response, _ := g.get("/", "Authorization", "Bearer "+issuer.token(nil))
		return status(response)
	}
	want(t, "with the first key", code(), "200")
	// The same table again, then another one: the keys stay.
	g.handler.Set(Config{Table: compile(t, fromURL(keys.URL), nil, backend)})
	want(t, "after a swap", code(), "200")
	want(t, "fetches", issuer.fetches.Load(), int64(1))
	issuer.rotate("second")
	want(t, "with a key that was fetched a moment ago and is not known", code(), "401")
	want(t, "fetches", issuer.fetches.Load(), int64(1))
	issuer.publish()
	want(t, "at once, since the address is not to be stormed", code(), "401")
	eventually(t, "the new key is taken", func() bool {
		clock.Step(time.Second)
		return code() == "200"
	})
	want(t, "fetches", issuer.fetches.Load(), int64(2))
}

func TestTokensWhileTheIssuerIsAway(t *testing.T) {
	issuer := newIssuer(t)
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	keys := issuer.serve()
	var failing atomic.Int64
	g := start(t, Options{KeysFailing: func(string, error) { failing.Add(1) }}, fromURL(keys.URL), backend)
	code := func(token string) string {
		response, _ := g.get("/", "Authorization", token)
		return status(response)
	}
	good := "Bearer " + issuer.token(nil)
	want(t, "away from the start", code(good), "503")
	eventually(t, "it is told", func() bool { return failing.Load() == 1 }) // the request that waited for the keys may be answered first
	want(t, "without a token", code(""), "401")
	issuer.publish()
	eventually(t, "the keys are there", func() bool { return code(good) == "200" })
	keys.Close()
	want(t, "away later", code(good), "200")
	want(t, "a bad one", code(good+"x"), "401")
}

func TestTokensAreLimitedAndLoggedByTheirSubject(t *testing.T) {
	issuer := newIssuer(t)
	issuer.publish()
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	var log lockedbuffer.Buffer
	g := start(t, Options{AccessLog: &log}, fromURL(issuer.serve().URL)+"  rateLimit: {requests: 1, period: 1h, per: Key}\n", backend)
	var codes []string
	for _, subject := range []string{"alice", "alice", "bob"} {
		response, _ := g.get("/", "Authorization", "Bearer "+issuer.token(map[string]any{"sub": subject}))
		codes = append(codes, status(response))
	}
	want(t, "statuses", strings.Join(codes, " "), "200 429 200")
	eventually(t, "all are logged", func() bool { return len(log.Lines()) == 3 })
	want(t, "the last one", strings.Contains(log.Lines()[2], `"identity":"bob"`), true)
}

func TestTrailersNameNobody(t *testing.T) {
	issuer := newIssuer(t)
	issuer.publish()
	backend, requests := recording(t)
	g := start(t, Options{}, fromURL(issuer.serve().URL), backend)
	response, _ := g.raw("POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + issuer.token(nil) +
		"\r\nTransfer-Encoding: chunked\r\nTrailer: X-User, X-Forwarded-For, Digest\r\n\r\n2\r\nok\r\n0\r\nX-User: root\r\nX-Forwarded-For: 6.6.6.6\r\nDigest: x\r\n\r\n")
	want(t, "status", response.StatusCode, 200)
	r := <-requests
	want(t, "trailers", join(r.Trailer["X-User"])+join(r.Trailer["X-Forwarded-For"])+join(r.Trailer["Digest"]), "x")
}

func TestNamesThatABackendMayTakeForOneAreHiddenTogether(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	issuer := newIssuer(t)
	issuer.publish()
	backend, requests := recording(t)
	g := startTable(t, Options{}, compile(t, `
- host: key
  backendService: {name: app, port: 80}
  auth: {apiKey: {secretRef: {name: keys}, header: X_API_Key, clientHeader: X_Client}}
- host: basic
  backendService: {name: app, port: 80}
  auth: {basic: {secretRef: {name: users}, userHeader: X_Client}}
- host: token
  backendService: {name: app, port: 80}
  auth: {jwt: {issuer: "https://issuer.example.com", jwksURL: "`+issuer.serve().URL+`", claimsToHeaders: [{claim: sub, header: X_Client}]}}
`, map[string]map[string][]byte{"keys": {"alice": keyHash("secret")}, "users": {"alice": hash}}, backend))
	for host, proof := range map[string][]string{
		"key":   {"X_API_Key", "secret"},
		"basic": {"Authorization", "Basic YWxpY2U6c2VjcmV0"},
		"token": {"Authorization", "Bearer " + issuer.token(map[string]any{"sub": "alice"})},
	} {
		for _, name := range []string{"X_Client", "X-Client", "x-client", "X-API-Key", "X-API_Key"} {
			request := g.request("GET", "/", append([]string{"Host", host}, proof...)...)
			request.Header[name] = append(request.Header[name], "root")
			response, _ := g.send(request)
			want(t, host, response.StatusCode, 200)
			r := <-requests
			var got []string
			for name, values := range r.Header {
				if folded := strings.ReplaceAll(strings.ToLower(name), "_", "-"); folded == "x-client" || (folded == "x-api-key" && host == "key") {
					got = append(got, values...)
				}
			}
			want(t, host+": what the backend gets where a client sends "+name, join(got), "alice")
		}
	}
}
