package watch

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// material is what a gateway needs besides specs: the content of Secrets and ConfigMaps, by name.
type material map[string]map[string][]byte

// without is the rest of it, with something else in the place of one. Nil: nothing.
func (m material) without(name string, instead map[string][]byte) material {
	rest := maps.Clone(m)
	if delete(rest, name); instead != nil {
		rest[name] = instead
	}
	return rest
}

// alike checks that a pod that has seen everything serves in the end what one serves that is started now. start starts one and gives
// it the material, and returns how it is given other material, and what it serves after some time, if it is woken by then. kept stays in use for a moment.
func alike(t *testing.T, all material, kept []string, start func(t *testing.T, given material) (give func(material), serves func(time.Duration) string)) {
	t.Helper()
	for name := range all {
		for what, instead := range map[string]map[string][]byte{"deleted": nil, "emptied": {}, "spoilt": {"tls.crt": []byte("x"), "tls.key": []byte("x"), "ca.crt": []byte("x"), "keys": []byte("x"), "htpasswd": []byte("x")}} {
			t.Run(name+" is "+what, func(t *testing.T) {
				rest := all.without(name, instead)
				give, serves := start(t, all)
				before := serves(0)
				give(rest)
				at, later := serves(0), serves(keptAfter)
				if slices.Contains(kept, name) && at != before {
					t.Errorf("at once it serves (-before +now):\n%s", cmp.Diff(before, at))
				}
				_, started := start(t, rest)
				if diff := cmp.Diff(started(0), later); diff != "" {
					t.Errorf("a pod that is started now serves something else (-started now +old):\n%s", diff)
				}
				if later == before {
					t.Errorf("without it the pod serves the same:\n%s", later)
				}
				// Made again within the moment, nobody notices.
				give, serves = start(t, all)
				give(rest)
				serves(keptAfter / 2)
				give(all)
				if got := serves(keptAfter); got != before {
					t.Errorf("with it again it serves (-before +now):\n%s", cmp.Diff(before, got))
				}
			})
		}
	}
}

// served is what is served, as text: certificates and authorities by their hashes.
func served(secure []proxy.SecureListener, routes *table.Table, more ...any) string {
	text := &strings.Builder{}
	for i := range secure {
		l := &secure[i]
		fmt.Fprintf(text, "listener %d %q:", l.Port, l.Hostname)
		for k := range l.Certificates {
			fmt.Fprintf(text, " %x", sha256.Sum256(l.Certificates[k].Certificate.Certificate[0]))
		}
		if l.Clients != nil {
			fmt.Fprintf(text, " clients %s", l.Clients.Identity)
		}
		fmt.Fprintln(text)
	}
	for _, r := range routes.Routes {
		fmt.Fprintf(text, "route %s: unavailable %t, auth %t", r.Name, r.Unavailable != nil, r.Auth != nil)
		for _, b := range r.Backends {
			if b.TLS != nil {
				fmt.Fprintf(text, " %s", b.TLS.Identity)
			}
		}
		fmt.Fprintln(text)
	}
	for _, one := range more {
		fmt.Fprintln(text, one)
	}
	return text.String()
}

func tlsSecret(t *testing.T, ca *authority.Authority, name string) map[string][]byte {
	t.Helper()
	crt, key := ca.IssuePEM(t, x509.Certificate{DNSNames: []string{name}})
	return map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}
}

// What the pods of a Gateway serve does not depend on when they were started.
func TestPodsOfAGatewayServeAlike(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	now := time.Now()
	all := material{
		"edge": tlsSecret(t, ca, "shop.test"), "wild": tlsSecret(t, ca, "*.test"), "own": tlsSecret(t, ca, "edge.internal"),
		"clients": {"ca.crt": ca.PEM()}, "ca": {"ca.crt": other.PEM()}, "keys": {"alice": hashOf("alice")},
	}
	alike(t, all, []string{"edge", "wild", "own"}, func(t *testing.T, given material) (func(material), func(time.Duration) string) {
		t.Helper()
		f := newGatewayFixture(t)
		f.clock.SetTime(now)
		f.gateway(1, `{gatewayClassName: slipway,
			tls: {backend: {clientCertificateRef: {name: own}}, frontend: {default: {}, perPort: [{port: 8443, tls: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}]}},
			listeners: [{name: wild, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: wild}]}, allowedRoutes: {namespaces: {from: All}}},
				{name: shop, port: 443, protocol: HTTPS, hostname: shop.test, tls: {certificateRefs: [{name: edge}]}, allowedRoutes: {namespaces: {from: All}}},
				{name: known, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: wild}]}}]}`)
		f.synced(routeTo(t, "a", "one", 1))
		f.look(t.Context())
		f.backend("a")
		f.policy(1, appPolicy)
		f.attach("a", "p", 1, keysPolicy)
		give := func(given material) {
			copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-certificates", ResourceVersion: "1"}, Data: map[string][]byte{}}
			for name, namespace := range map[string]string{"clients": "infra", "ca": "a"} {
				if data, is := given[name]; is {
					copied.PutBundle(copies.Data, types.NamespacedName{Namespace: namespace, Name: name}, copied.Bundle{Authorities: data["ca.crt"], Version: "1"})
				}
			}
			if data, is := given["keys"]; is {
				f.must(copied.PutCredentials(copies.Data, types.NamespacedName{Namespace: "a", Name: "keys"}, copied.Credentials{Data: data, Version: "1"}))
			}
			f.must(f.secrets.watched["edge-certificates"].store.Replace([]any{copies}, ""))
			for _, name := range []string{"edge", "wild", "own"} {
				var objects []any
				if data, is := given[name]; is {
					objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, ResourceVersion: "1"}, Data: data})
				}
				f.must(f.secrets.watched[name].store.Replace(objects, ""))
			}
		}
		give(given)
		return give, func(after time.Duration) string {
			again := f.look(t.Context())
			if woken := !again.IsZero() && !again.After(f.clock.Now().Add(after)); woken {
				f.clock.Step(after)
				f.look(t.Context())
			}
			last := f.applied[len(f.applied)-1]
			return served(last.Secure, last.Proxy.Table, last.Ports, f.board.Current().Listeners, f.board.Current().Routes)
		}
	})
}

// A name whose certificate is gone is not served by another listener that covers it.
func TestNoListenerShowsItsCertificateForAnotherOne(t *testing.T) {
	ca := authority.New(t, "ca")
	f := newGatewayFixture(t)
	f.gateway(1, `{gatewayClassName: slipway, listeners: [
		{name: wild, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: wild}]}},
		{name: shop, port: 443, protocol: HTTPS, hostname: shop.test, tls: {certificateRefs: [{name: edge}]}}]}`)
	f.synced()
	f.look(t.Context())
	f.must(f.secrets.watched["wild"].store.Replace([]any{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "wild"}, Data: tlsSecret(t, ca, "*.test")}}, ""))
	f.must(f.secrets.watched["edge"].store.Replace(nil, ""))
	f.look(t.Context())
	certificates := map[string]int{}
	for _, l := range f.applied[len(f.applied)-1].Secure {
		certificates[l.Hostname] = len(l.Certificates)
	}
	if diff := cmp.Diff(map[string]int{"": 1, "shop.test": 0}, certificates); diff != "" {
		t.Errorf("certificates by name (-want +got):\n%s", diff)
	}
}

// What the pods of an APIGateway serve does not depend on when they were started.
func TestPodsOfAnAPIGatewayServeAlike(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	now := time.Now()
	all := material{
		"edge": tlsSecret(t, ca, "shop.test"), "stream": tlsSecret(t, ca, "db.test"), "own": tlsSecret(t, ca, "edge.internal"),
		"clients": {"ca.crt": ca.PEM()}, "ca": {"ca.crt": other.PEM()}, "keys": {"alice": hashOf("alice")},
	}
	configs := []string{"clients", "ca"}
	alike(t, all, []string{"edge", "stream"}, func(t *testing.T, given material) (func(material), func(time.Duration) string) {
		t.Helper()
		f := newFixture(t)
		f.clock.SetTime(now)
		f.spec("u", 1, `{routes: [{name: app, path: /, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}],
			tls: [{secretRef: {name: edge}}], clientCertificates: {caCertificates: [{name: clients}]},
			streams: [{name: db, port: 5432, protocol: TLS, tlsMode: Terminate, hostnames: [db.test], certificateRefs: [{name: stream}], backends: [{name: app, port: 80}]}],
			backendPolicies: [{name: app, port: 80, tls: {hostname: app.internal, caCertificates: [{name: ca}], clientCertificateRef: {name: own}}}]}`)
		f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
		f.look(t.Context())
		give := func(given material) {
			for name := range all {
				data, is := given[name]
				switch {
				case slices.Contains(configs, name) && !is:
					f.must(f.maps[name].Replace(nil, ""))
				case slices.Contains(configs, name):
					f.configMap(name, map[string]string{"ca.crt": string(data["ca.crt"])})
				case !is:
					f.must(f.stores[name].Replace(nil, ""))
				default:
					f.secret(name, data)
				}
			}
		}
		give(given)
		return give, func(after time.Duration) string {
			again := f.look(t.Context())
			if woken := !again.IsZero() && !again.After(f.clock.Now().Add(after)); woken {
				f.clock.Step(after)
				f.look(t.Context())
			}
			last := f.applied[len(f.applied)-1]
			var hashes []string
			for _, c := range last.Certificates {
				hashes = append(hashes, fmt.Sprintf("%x", sha256.Sum256(c.Certificate.Certificate[0])))
			}
			return served(last.Secure, last.Proxy.Table, hashes, last.Clients.Identity, last.Ports)
		}
	})
}
