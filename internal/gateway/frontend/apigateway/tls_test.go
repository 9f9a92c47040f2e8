package apigateway_test

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// A policy that asks for TLS and cannot be used keeps every request from its backend: from the route, from copies and from what
// is asked who may come in.
func TestABackendWhoseTLSCannotBeUsedIsNotReached(t *testing.T) {
	ca := authority.New(t, "ca")
	crt, key := ca.IssuePEM(t, x509.Certificate{DNSNames: []string{"gateway"}})
	_, otherKey := ca.IssuePEM(t, x509.Certificate{DNSNames: []string{"gateway"}})
	const good = `{name: pay, port: 443, tls: {hostname: pay.internal, caCertificates: [{name: ca}], clientCertificateRef: {name: own}}}`
	tests := map[string]struct {
		policies string
		unknown  map[int]string
		change   func(in *apigateway.Input)
		says     string
	}{
		"good":                {policies: good},
		"a Secret, a key":     {policies: `{name: pay, port: 443, tls: {hostname: pay.internal, caCertificates: [{kind: Secret, name: ca, key: roots}]}}`},
		"of the system":       {policies: `{name: pay, port: 443, tls: {hostname: pay.internal}}`},
		"no ConfigMap":        {policies: good, change: func(in *apigateway.Input) { in.ConfigMaps = nil }, says: `ConfigMapNotFound: tls.caCertificates[0]: ConfigMap "ca" does not exist`},
		"no right":            {policies: good, change: func(in *apigateway.Input) { in.ConfigMaps, in.UnreadableConfigMaps = nil, map[string]bool{"ca": true} }, says: `ConfigMapNotFound: tls.caCertificates[0]: ConfigMap "ca" may not be read by the gateway`},
		"no Secret":           {policies: `{name: pay, port: 443, tls: {hostname: pay.internal, caCertificates: [{kind: Secret, name: none}]}}`, says: `SecretNotFound: tls.caCertificates[0]: Secret "none" does not exist`},
		"no key":              {policies: `{name: pay, port: 443, tls: {hostname: pay.internal, caCertificates: [{name: ca}, {name: ca, key: more}]}}`, says: `KeyNotFound: tls.caCertificates[1]: ConfigMap "ca" has no key "more"`},
		"an empty bundle":     {policies: good, change: func(in *apigateway.Input) { in.ConfigMaps["ca"]["ca.crt"] = nil }, says: `InvalidCACertificates: tls.caCertificates[0]: key "ca.crt" of ConfigMap "ca" cannot be used: there is no certificate in PEM`},
		"a broken bundle":     {policies: good, change: func(in *apigateway.Input) { in.ConfigMaps["ca"]["ca.crt"] = append(ca.PEM(), ca.PEM()[:99]...) }, says: `InvalidCACertificates: tls.caCertificates[0]: key "ca.crt" of ConfigMap "ca" cannot be used: a block of PEM cannot be read`},
		"a key in the bundle": {policies: good, change: func(in *apigateway.Input) { in.ConfigMaps["ca"]["ca.crt"] = key }, says: `InvalidCACertificates: tls.caCertificates[0]`},
		"another kind":        {policies: `{name: pay, port: 443, tls: {hostname: pay.internal, caCertificates: [{kind: Pod, name: ca}]}}`, says: `Invalid: tls.caCertificates[0]: kind: "Pod" is neither`},
		"no host name":        {policies: `{name: pay, port: 443, tls: {hostname: "", subjectAltNames: [pay.internal]}}`, says: `Invalid: tls.hostname`},
		"no certificate":      {policies: good, change: func(in *apigateway.Input) { delete(in.Secrets, "own") }, says: `SecretNotFound: tls.clientCertificateRef: Secret "own" does not exist`},
		"half a certificate":  {policies: good, change: func(in *apigateway.Input) { delete(in.Secrets["own"], "tls.key") }, says: `InvalidCertificate: tls.clientCertificateRef: Secret "own" must have`},
		"an empty Secret":     {policies: good, change: func(in *apigateway.Input) { in.Secrets["own"] = nil }, says: `InvalidCertificate: tls.clientCertificateRef: Secret "own" must have`},
		"another's key":       {policies: good, change: func(in *apigateway.Input) { in.Secrets["own"]["tls.key"] = otherKey }, says: `InvalidCertificate: tls.clientCertificateRef: Secret "own": the certificate to show and its key`},
		"a later field":       {policies: good, unknown: map[int]string{0: "pins"}, says: `ImageIncompatible: pins`},
		"wrong limits":        {policies: strings.Replace(good, "tls:", "maxRequests: 0, tls:", 1), says: `Invalid: maxConnections`},
		"a wrong protocol":    {policies: strings.Replace(good, "tls:", "protocol: SPDY, tls:", 1), says: `Invalid: protocol`},
		"a second policy":     {policies: `{name: pay, port: 443}, ` + good, says: `Invalid: there is an earlier policy`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := apigateway.Input{
				UnknownPolicies: tc.unknown,
				Services:        map[string]model.Service{"pay": {Ports: map[int32]model.ServicePort{443: {Endpoints: []string{"10.0.0.1:443"}}}}},
				ConfigMaps:      map[string]map[string][]byte{"ca": {"ca.crt": ca.PEM()}},
				Secrets:         map[string]map[string][]byte{"own": {"tls.crt": crt, "tls.key": key}, "ca": {"roots": ca.PEM()}},
			}
			unmarshal(t, `[`+tc.policies+`]`, &in.BackendPolicies)
			unmarshal(t, `
- {name: one, path: /one, backendService: {name: pay, port: 443}}
- {name: copy, path: /copy, backends: [{name: pay, port: 443}], mirror: {backendService: {name: pay, port: 443}}}
- {name: ask, path: /ask, directResponse: {statusCode: 200}, auth: {external: {backendService: {name: pay, port: 443}}}}`, &in.Routes)
			if tc.change != nil {
				tc.change(&in)
			}
			compiled, problems := apigateway.Compile(in)
			if tc.says == "" {
				if len(problems) > 0 || len(compiled.Backends) != 1 || compiled.Backends[0].TLS == nil {
					t.Errorf("problems %v, backends %+v", problems, compiled.Backends)
				}
				return
			}
			if len(compiled.Backends) > 0 {
				t.Errorf("it is reached: %+v", compiled.Backends[0])
			}
			if p := problems[0]; p.List != "backendPolicies" || p.Route != "pay:443" || !strings.Contains(p.Reason+": "+p.Message, tc.says) {
				t.Errorf("it says %+v, want %s", p, tc.says)
			}
			for route := range 3 {
				if !slices.ContainsFunc(problems, func(p model.Problem) bool {
					return p.Index == route && strings.Contains(p.Message, `port 443 of Service "pay" is not reached`)
				}) {
					t.Errorf("route %d is said to be live: %v", route, problems)
				}
			}
		})
	}
}

func TestNamesOfTLS(t *testing.T) {
	var in apigateway.Input
	unmarshal(t, `[{name: pay, port: 443, tls: {hostname: pay.internal, subjectAltNames: [a.internal, "*.b.internal", spiffe://prod/pay]}}]`, &in.BackendPolicies)
	unmarshal(t, `[{backendService: {name: pay, port: 443}}]`, &in.Routes)
	in.Services = map[string]model.Service{"pay": {Ports: map[int32]model.ServicePort{443: {AppProtocol: "https", Endpoints: []string{"10.0.0.1:443"}}}}}
	compiled, problems := apigateway.Compile(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := compiled.Backends[0].TLS
	if got.ServerName != "pay.internal" || !slices.Equal(got.Names, []string{"a.internal", "*.b.internal"}) || !slices.Equal(got.URIs, []string{"spiffe://prod/pay"}) || got.Roots != nil {
		t.Errorf("got %+v", got)
	}
}

// A header that says who a client is must not be one by which the gateway says where a request comes from.
func TestHeadersThatSayWhoAClientIs(t *testing.T) {
	ca := authority.New(t, "ca")
	in := apigateway.Input{ConfigMaps: map[string]map[string][]byte{"ca": {"ca.crt": ca.PEM()}}}
	for name, says := range map[string]string{
		"X-Client": "", "x_client": "",
		"X-Forwarded-Client-Cert": "what the gateway says", "x_forwarded_for": "what the gateway says", "Forwarded": "what the gateway says", "X-Real-Ip": "what the gateway says",
		"Host": "cannot be changed", "a b": "header",
	} {
		spec := slipwayv1alpha1.ClientCertificates{CACertificates: []slipwayv1alpha1.CACertificates{{Name: "ca"}}, NameHeader: name}
		made, f := in.Clients(&spec)
		switch {
		case says == "" && (f != nil || made.Name == ""):
			t.Errorf("%s: %v", name, f)
		case says != "" && (f == nil || !strings.Contains(f.Message, says) || made.Identity != "nobody"):
			t.Errorf("%s: %v, want %q", name, f, says)
		}
	}
}

func unmarshal[T []slipwayv1alpha1.Route | []slipwayv1alpha1.BackendPolicy](t *testing.T, text string, into *T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
