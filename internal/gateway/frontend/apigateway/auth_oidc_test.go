package apigateway_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const (
	issuer   = "https://id.example.com"
	oneLogin = `[{path: PATH, backendService: {name: app, port: 80}, auth: {oidc: {issuer: "https://id.example.com", clientID: shop, clientSecretRef: {name: login, key: secret}}}}]`
)

// problemOf compiles routes and returns the first problem, but for Services.
func problemOf(t *testing.T, text string, secrets map[string]map[string][]byte) string {
	t.Helper()
	var spec []slipwayv1alpha1.Route
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	_, problems := apigateway.Compile(apigateway.Input{
		Routes: spec, Secrets: secrets,
		Services: map[string]model.Service{"app": {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}}},
	})
	if len(problems) == 0 {
		return ""
	}
	return problems[0].Reason + ": " + problems[0].Message
}

func login(of, secret string) map[string]map[string][]byte {
	return map[string]map[string][]byte{"login": {"issuer": []byte(of), "secret": []byte(secret)}}
}

func TestAClientSecretIsForTheIssuerThatItNames(t *testing.T) {
	for name, test := range map[string]struct {
		secrets map[string]map[string][]byte
		want    string
	}{
		"usable":               {login(issuer, "0123456789abcdef"), ""},
		"with a line end":      {login(issuer+"\n", "0123456789abcdef\n"), ""},
		"with the one before":  {login(issuer, "0123456789abcdef\nfedcba9876543210"), ""},
		"missing":              {nil, `SecretNotFound: auth.oidc.clientSecretRef: Secret "login" does not exist`},
		"without the key":      {map[string]map[string][]byte{"login": {"issuer": []byte(issuer)}}, "KeyNotFound"},
		"for another issuer":   {login("https://evil.test", "0123456789abcdef"), "InvalidSecret"},
		"for a longer issuer":  {login(issuer+"/", "0123456789abcdef"), "InvalidSecret"},
		"for something else":   {map[string]map[string][]byte{"login": {"secret": []byte("0123456789abcdef")}}, "InvalidSecret"},
		"too short":            {login(issuer, "0123456789abcde"), "InvalidSecret"},
		"with blanks":          {login(issuer, "0123456789 abcdef"), ""},
		"empty":                {login(issuer, " \n"), "InvalidSecret"},
		"three lines":          {login(issuer, "0123456789abcdef\n0123456789abcdeg\n0123456789abcdeh"), "InvalidSecret"},
		"a short one before":   {login(issuer, "0123456789abcdef\nshort"), "InvalidSecret"},
		"a password by itself": {map[string]map[string][]byte{"login": {"issuer": []byte("x"), "secret": []byte("canary-canary-canary")}}, "InvalidSecret"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemOf(t, strings.Replace(oneLogin, "PATH", "/", 1), test.secrets)
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" || strings.Contains(got, "canary") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestALogInMustBeAbleToEnd(t *testing.T) {
	for name, test := range map[string]struct {
		routes, want string
	}{
		"the route has the path":          {strings.Replace(oneLogin, "PATH", "/", 1), ""},
		"no route has it":                 {strings.Replace(oneLogin, "PATH", "/office", 1), `InvalidRoute: auth.oidc.redirectPath: requests for "/oauth2/callback" do not come`},
		"one with the same":               {strings.Replace(oneLogin, "PATH", "/office", 1) + "\n" + strings.Replace(oneLogin, "PATH", "/oauth2", 1), ""},
		"one without it":                  {strings.Replace(oneLogin, "PATH", "/", 1) + "\n" + `[{path: /oauth2, backendService: {name: app, port: 80}}]`, "InvalidRoute: auth.oidc.redirectPath"},
		"one with another":                {strings.Replace(oneLogin, "PATH", "/", 1) + "\n" + strings.Replace(strings.Replace(oneLogin, "PATH", "/oauth2", 1), "clientID: shop", "clientID: other", 1), "InvalidRoute: auth.oidc.redirectPath"},
		"a method that pages do not have": {strings.Replace(oneLogin, "path: PATH", "methods: [POST]", 1), "InvalidRoute: auth.oidc.redirectPath"},
		"a path with two readings":        {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, redirectPath: "/a/..%2fb"`, 1), "InvalidRoute: auth.oidc.redirectPath"},
		"the same path for both":          {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, logoutPath: /oauth2/callback`, 1), "InvalidRoute: auth.oidc: redirectPath and logoutPath"},
		"a page after the log-out":        {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, logoutPath: /out, afterLogout: /bye`, 1), ""},
		"the front page after it":         {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, logoutPath: /out, afterLogout: /`, 1), ""},
		"the log-out after the log-out":   {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, logoutPath: /out, afterLogout: /out`, 1), "InvalidRoute: auth.oidc.afterLogout"},
		"the log-in's end after it":       {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, logoutPath: /out, afterLogout: /oauth2/callback`, 1), "InvalidRoute: auth.oidc.afterLogout"},
		"another host after it":           {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, logoutPath: /out, afterLogout: //evil.test`, 1), "InvalidRoute: auth.oidc.afterLogout"},
		"a page after no log-out":         {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), "clientID: shop", `clientID: shop, afterLogout: /bye`, 1), ""},
		"an issuer that is none":          {strings.Replace(strings.Replace(oneLogin, "PATH", "/", 1), issuer, "https://a@id.example.com", 1), "InvalidRoute: auth.oidc.issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			joined := strings.ReplaceAll(test.routes, "]\n[", ",\n ")
			if got := problemOf(t, joined, login(issuer, "0123456789abcdef")); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
