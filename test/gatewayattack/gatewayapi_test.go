//go:build apitest

package gatewayattack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// Every attack through a Gateway of the Gateway API, whose HTTPS listeners share a port and do not serve each other's hosts, to a
// backend that a BackendTLSPolicy has it reach with TLS; those that do not behave are reached without. The
// Gateway API has no keys: /private is for requests with a header, and the ways around it by odd paths are another matter, since
// nothing there says that a path is protected.
func TestNothingGetsThroughAGateway(t *testing.T) {
	t.Parallel()
	lanes := recordingLanes(t, ownAddress(t))
	lanes[0].authority, lanes[0].certified = lanes[0].overTLS(t, ownAddress(t)), lanes[0].host
	lanes = append(lanes, hostileLanes2(t, ownAddress(t), authority.New(t, "backends"))...)
	s := &suite{target: startGatewayOfTheAPI(t, lanes), lanes: lanes}
	apart := []string{"paths", "regular expressions", "addresses", "escaped control characters"} // the routes of the API protect none of them
	s.run(slices.DeleteFunc(append(allAttacks(), backendAnswers()...), func(a *attack) bool { return slices.Contains(apart, a.family) }))
	s.report(t)
	if len(s.played) < 1000 {
		t.Errorf("only %d attacks were played", len(s.played))
	}
}

// overTLS has the backend speak TLS. It returns the certificate of the authority that has issued its own.
func (l *lane) overTLS(t *testing.T, address string) []byte {
	t.Helper()
	certificate, key := newCertificate(t, x509.NewCertPool(), []string{l.host})
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(address, "0"), &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	l.records = recordOn(t, listener, (*recorder).serve)
	l.address = l.records.address()
	return certificate
}

// copiesName is the Secret with what the operator copies for the pods.
const copiesName = "attacked-certificates"

// site is an API server with the objects of one Gateway.
type site struct {
	*environment.Environment
	namespace string
}

// startGatewayOfTheAPI runs a gateway that follows a Gateway and HTTPRoutes in an API server. It reaches some lanes with TLS.
func startGatewayOfTheAPI(t *testing.T, lanes []*lane) *target {
	t.Helper()
	server, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	var crds []string
	for _, kind := range []string{"gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies", "listenersets"} {
		crds = append(crds, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml")
	}
	if err := server.InstallModule(t.Context(), "sigs.k8s.io/gateway-api", crds...); err != nil {
		t.Fatal(err)
	}
	c := &site{server, server.Namespace(t)}
	g := &target{
		name: "slipway-gateway", plain: freeAddress(t), secure: freeAddress(t), roots: x509.NewCertPool(), patience: patient,
	}
	c.listeners(t, g)
	c.routes(t, lanes)
	c.policies(t, lanes)
	c.run(t)
	return g
}

// ownAddress is an address of this machine that an EndpointSlice may have, which loopback is not.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback, which an EndpointSlice must not have")
	return ""
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// listeners makes the Gateway: one listener for HTTP, and one for HTTPS per certificate.
func (c *site) listeners(t *testing.T, g *target) {
	t.Helper()
	list := []string{fmt.Sprintf("{name: plain, port: %s, protocol: HTTP}", port(g.plain))}
	certificates := map[string]string{"cert-one": hostOne, "cert-two": hostTwo, "cert-rest": "*.test"}
	for _, name := range slices.Sorted(maps.Keys(certificates)) {
		certificate, key := newCertificate(t, g.roots, []string{certificates[name]})
		c.create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		})
		list = append(list, fmt.Sprintf("{name: %s, port: %s, protocol: HTTPS, hostname: %q, tls: {certificateRefs: [{name: %s}]}}", name, port(g.secure), certificates[name], name))
	}
	c.put(t, "Gateway", "attacked", "{gatewayClassName: slipway, listeners: ["+strings.Join(list, ", ")+"]}")
}

// routes makes a Service per lane, and the HTTPRoutes that gatewayConfig has as routes.
func (c *site) routes(t *testing.T, lanes []*lane) {
	t.Helper()
	for _, l := range lanes {
		c.backend(t, l)
		to := "backendRefs: [{name: " + l.name + ", port: 80}]"
		rules := []string{"{" + to + "}"}
		for _, match := range []string{
			"path: {type: PathPrefix, value: /private}",
			"path: {type: RegularExpression, value: /secret/.*}",
			"path: {type: PathPrefix, value: /query}, queryParams: [{name: q, type: RegularExpression, value: '.*secret.*'}]",
			"path: {type: PathPrefix, value: /method}, method: POST",
		} {
			rules = append(rules, locked(match, clientKey, to)...)
		}
		rules = append(rules, locked("path: {type: PathPrefix, value: /other}", otherKey, to)...)
		c.route(t, l.name, []string{l.host}, rules)
	}
	first := "backendRefs: [{name: " + lanes[0].name + ", port: 80}]"
	c.route(t, "one-and-two", []string{hostOne, hostTwo}, []string{"{" + first + "}"})
	c.route(t, "admin", []string{hostAdmin}, locked("path: {type: PathPrefix, value: /}", clientKey, first))
	c.route(t, "no-host", nil, []string{"{" + first + "}"})
}

// policies makes a BackendTLSPolicy for each lane that has an authority.
func (c *site) policies(t *testing.T, lanes []*lane) {
	t.Helper()
	// The operator copies the ConfigMaps that the policies name into this Secret.
	copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: copiesName}, Data: map[string][]byte{}}
	for _, l := range lanes {
		if l.authority == nil {
			continue
		}
		name := "authority-of-" + l.name
		copied.PutBundle(copies.Data, types.NamespacedName{Namespace: c.namespace, Name: name}, copied.Bundle{Authorities: l.authority, Version: "1"})
		c.put(t, "BackendTLSPolicy", l.name, fmt.Sprintf("{targetRefs: [{group: '', kind: Service, name: %s}], validation: {hostname: %s, caCertificateRefs: [{group: '', kind: ConfigMap, name: %s}]}}", l.name, l.certified, name))
	}
	c.create(t, copies)
}

// locked are rules for requests with the key, and for those without: 500, because a rule without backends has nobody to ask.
func locked(match, key, to string) []string {
	return []string{
		fmt.Sprintf("{matches: [{%s, headers: [{name: X-API-Key, value: %s}]}], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [X-API-Key]}}], %s}", match, key, to),
		fmt.Sprintf("{matches: [{%s}]}", match),
	}
}

func (c *site) route(t *testing.T, name string, hosts, rules []string) {
	t.Helper()
	c.put(t, "HTTPRoute", name, fmt.Sprintf("{parentRefs: [{name: attacked}], hostnames: [%s], rules: [%s]}", strings.Join(hosts, ", "), strings.Join(rules, ", ")))
}

// backend makes the Service of a lane, with its endpoint.
func (c *site) backend(t *testing.T, l *lane) {
	t.Helper()
	host, number, err := net.SplitHostPort(l.address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	var appProtocol *string
	if l.protocol != "" {
		appProtocol = &l.protocol
	}
	c.create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: l.name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80, AppProtocol: appProtocol}}},
	})
	c.create(t, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: l.name, Labels: map[string]string{discoveryv1.LabelServiceName: l.name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(port))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	})
}

func (c *site) create(t *testing.T, object ctrlclient.Object) {
	t.Helper()
	object.SetNamespace(c.namespace)
	if err := c.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// put creates an object of the Gateway API.
func (c *site) put(t *testing.T, kind, name, spec string) {
	t.Helper()
	object, parsed := &unstructured.Unstructured{Object: map[string]any{}}, map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	object.Object["spec"] = parsed
	object.SetAPIVersion("gateway.networking.k8s.io/v1")
	object.SetKind(kind)
	object.SetName(name)
	c.create(t, object)
}

// run runs the gateway until the test ends, and waits until it is ready.
func (c *site) run(t *testing.T) {
	t.Helper()
	said, admin, ended := &lockedbuffer.Buffer{}, make(chan net.Addr, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- gateway.Run(ctx, gateway.Options{
			Kind: gateway.KindGateway, Gateway: "attacked", Namespace: c.namespace, Access: c.Config, Admin: "127.0.0.1:0",
			BorrowedCertificates: copiesName,
			Log:                  slog.New(slog.NewJSONHandler(said, nil)), Listening: func(_, _, at net.Addr) { admin <- at },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the gateway: %v\n%s", err, said)
		}
	})
	at := <-admin
	waitUntil(t, "the gateway is ready", func() bool {
		response, err := http.Get("http://" + at.String() + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}
