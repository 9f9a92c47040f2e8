package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each field of an APIGateway that names something: what there is not is told, with the field and the name, whatever else there is.
func TestWhatAnAPIGatewayNamesAndThereIsNotIsTold(t *testing.T) {
	const app = `{name: app, path: /, backendService: {name: app, port: 80}}`
	route := func(more string) string {
		return `{routes: [{name: app, path: /, backendService: {name: app, port: 80}, ` + more + `}]}`
	}
	for field, test := range map[string]struct{ spec, says string }{
		"spec.routes[].backendService.name":                    {`{routes: [{path: /, backendService: {name: none, port: 80}}]}`, `spec.routes[0] BackendNotFound: backendService: Service "none" does not exist`},
		"spec.routes[].backends[].name":                        {`{routes: [{path: /, backends: [{name: app, port: 80}, {name: none, port: 80}]}]}`, `spec.routes[0] BackendNotFound: backends: Service "none" does not exist`},
		"spec.routes[].mirror.backendService.name":             {route(`mirror: {backendService: {name: none, port: 80}}`), `BackendNotFound: mirror.backendService: Service "none" does not exist`},
		"spec.routes[].mirrors[].backendService.name":          {route(`mirrors: [{backendService: {name: none, port: 80}}]`), `BackendNotFound: mirrors[0].backendService: Service "none" does not exist`},
		"spec.routes[].auth.external.backendService.name":      {route(`auth: {external: {backendService: {name: none, port: 80}}}`), `BackendNotFound: auth.external.backendService: Service "none" does not exist`},
		"spec.routes[].auth.apiKey.secretRef.name":             {route(`auth: {apiKey: {secretRef: {name: none}}}`), `SecretNotFound: auth.apiKey.secretRef: Secret "none"`},
		"spec.routes[].auth.basic.secretRef.name":              {route(`auth: {basic: {secretRef: {name: none}}}`), `SecretNotFound: auth.basic.secretRef: Secret "none"`},
		"spec.routes[].auth.jwt.jwksSecretRef.name":            {route(`auth: {jwt: {issuer: id, jwksSecretRef: {name: none, key: a}}}`), `SecretNotFound: auth.jwt.jwksSecretRef: Secret "none"`},
		"spec.routes[].auth.jwt.jwksSecretRef.key":             {route(`auth: {jwt: {issuer: id, jwksSecretRef: {name: empty, key: a}}}`), `KeyNotFound: auth.jwt.jwksSecretRef: Secret "empty" has no key "a"`},
		"spec.routes[].auth.jwt.jwksURL":                       {route(`auth: {jwt: {issuer: id, jwksURL: "https://id.test/keys"}}`), `KeysNotFetched: auth.jwt.jwksURL: `},
		"spec.routes[].auth.oidc.clientSecretRef.name":         {route(`auth: {oidc: {issuer: "https://id.test", clientID: a, clientSecretRef: {name: none, key: a}}}`), `SecretNotFound: auth.oidc.clientSecretRef: Secret "none"`},
		"spec.routes[].auth.oidc.clientSecretRef.key":          {route(`auth: {oidc: {issuer: "https://id.test", clientID: a, clientSecretRef: {name: empty, key: a}}}`), `KeyNotFound: auth.oidc.clientSecretRef: Secret "empty" has no key "a"`},
		"spec.backendPolicies[].tls.caCertificates[].name":     {`{routes: [` + app + `], backendPolicies: [{name: app, port: 80, tls: {hostname: app, caCertificates: [{name: none}]}}]}`, `ConfigMapNotFound: tls.caCertificates[0]: ConfigMap "none"`},
		"spec.backendPolicies[].tls.caCertificates[].key":      {`{routes: [` + app + `], backendPolicies: [{name: app, port: 80, tls: {hostname: app, caCertificates: [{name: empty, key: a}]}}]}`, `KeyNotFound: tls.caCertificates[0]: ConfigMap "empty" has no key "a"`},
		"spec.backendPolicies[].tls.clientCertificateRef.name": {`{routes: [` + app + `], backendPolicies: [{name: app, port: 80, tls: {hostname: app, clientCertificateRef: {name: none}}}]}`, `SecretNotFound: tls.clientCertificateRef: Secret "none"`},
		"spec.clientCertificates.caCertificates[].name":        {`{routes: [` + app + `], expose: {type: LoadBalancer}, tls: [{secretRef: {name: none}}], clientCertificates: {caCertificates: [{name: none}]}}`, `spec.clientCertificates ConfigMapNotFound: caCertificates[0]: ConfigMap "none"`},
		"spec.clientCertificates.caCertificates[].key":         {`{routes: [` + app + `], expose: {type: LoadBalancer}, tls: [{secretRef: {name: none}}], clientCertificates: {caCertificates: [{name: empty, key: a}]}}`, `spec.clientCertificates KeyNotFound: caCertificates[0]: ConfigMap "empty" has no key "a"`},
		"spec.streams[].backends[].name":                       {`{streams: [{name: db, port: 5432, protocol: TCP, backends: [{name: none, port: 80}]}]}`, `spec.streams[db] BackendNotFound: backends: Service "none" does not exist`},
		"spec.streams[].certificateRefs[].name":                {`{streams: [{name: db, port: 5432, protocol: TLS, tlsMode: Terminate, hostnames: [a.test], certificateRefs: [{name: none}], backends: [{name: app, port: 80}]}]}`, `spec.streams[db].certificateRefs[0] SecretNotFound: Secret "none"`},
		"spec.routes[].auth.oidc.issuer":                       {route(`auth: {oidc: {issuer: "https://id.test", clientID: a, clientSecretRef: {name: client, key: a}}}`), `ProviderNotFetched: auth.oidc.issuer: `},
		"spec.tls[].secretRef.name":                            {`{routes: [` + app + `], tls: [{secretRef: {name: none}}]}`, `spec.tls[0].secretRef SecretNotFound: Secret "none"`},
	} {
		t.Run(field, func(t *testing.T) {
			f := newFixture(t)
			f.missing = map[string]bool{"https://id.test/keys": true, "https://id.test/.well-known/openid-configuration": true}
			f.spec("u", 1, test.spec)
			f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
			f.look(t.Context())
			for name := range f.stores {
				switch name {
				case "empty":
					f.secret(name, map[string][]byte{"issuer": []byte("https://id.test")})
				case "client":
					f.secret(name, map[string][]byte{"issuer": []byte("https://id.test"), "a": []byte("a secret of the client")})
				default:
					f.must(f.stores[name].Replace(nil, ""))
				}
			}
			for name := range f.maps {
				if name == "empty" {
					f.configMap(name, nil)
				} else {
					f.must(f.maps[name].Replace(nil, ""))
				}
			}
			f.look(t.Context())
			var told []string
			for _, p := range f.options.Board.Current().Problems {
				told = append(told, fmt.Sprintf("%s %s: %s", p.Field, p.Reason, p.Message))
			}
			if !slices.ContainsFunc(told, func(one string) bool { return strings.Contains(one, test.says) }) {
				t.Errorf("it says %q, want %s", told, test.says)
			}
		})
	}
}
