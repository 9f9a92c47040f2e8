package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// Gateways simulates the admin ports of gateway pods. Each has a loopback address. It answers
// what a gateway would serve that has just read its APIGateway, with an endpoint behind every
// port of every Service. It reads the Secrets of routes, and no certificates. For the pods of a
// Gateway of the Gateway API see gatewayapi.go.
type Gateways struct {
	// Port is the admin port of every pod.
	Port int
	// Elsewhere are further namespaces whose objects the pods of Gateways read. Default: those of
	// their own namespace alone.
	Elsewhere []string
	// Seen changes when what the reader shows does: what has not changed is not read again. Default: it is not known when that
	// does.
	Seen func() int

	reader   client.Reader
	reserved net.Listener

	mutex sync.Mutex
	pods  map[types.NamespacedName]*adminPort
	// addresses is how many were given away: no pod gets one that another had.
	addresses int
	// documents are what the pods say: those of one gateway with the same arguments say the same.
	documents map[servedBy]*gatewayDocument
}

// servedBy tells apart what pods serve.
type servedBy struct {
	// kind is that of the gateway.
	kind string
	name types.NamespacedName
	// arguments are those of the pods, where they matter.
	arguments string
}

// adminPort is that of one pod.
type adminPort struct {
	server *httptest.Server
	ip     string

	mutex    sync.Mutex
	replaced http.Handler
}

// reading is what a gateway has read.
type reading interface {
	// versions identify what was read.
	versions() string
	// truth is what a gateway would say that has read this just now.
	truth() (document.Document, error)
}

// gatewayDocument is what the pods of a gateway say.
type gatewayDocument struct {
	read func(ctx context.Context) (reading, error)
	seen func() int // nil: it is not known

	mutex sync.Mutex
	last  document.Document
	// known are the versions of what last was made of, and looked is when that was.
	known  string
	looked time.Time
	// at is what seen was then.
	at int
}

// NewGateways returns no pods yet. Close ends them all. The reader may be a cache of
// unstructured objects.
func NewGateways(reader client.Reader) (*Gateways, error) {
	// Whoever has this address and port has the port on all the others.
	reserved, err := listen(0, 0)
	if err != nil {
		return nil, err
	}
	address, ok := reserved.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("%v is no TCP address", reserved.Addr())
	}
	return &Gateways{
		Port: address.Port, reader: reader, reserved: reserved,
		pods: map[types.NamespacedName]*adminPort{}, documents: map[servedBy]*gatewayDocument{},
	}, nil
}

func listen(number, port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.9.%d.%d:%d", number/250, number%250+1, port))
}

// Close ends every pod.
func (g *Gateways) Close() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, pod := range g.pods {
		pod.server.CloseClientConnections()
		pod.server.Close()
	}
	_ = g.reserved.Close()
}

// Replace lets a handler answer for a pod; nil brings back the answer of a real gateway.
// Requests that wait for an answer are cut off.
func (g *Gateways) Replace(pod types.NamespacedName, handler http.Handler) error {
	g.mutex.Lock()
	known := g.pods[pod]
	g.mutex.Unlock()
	if known == nil {
		return fmt.Errorf("pod %v has no admin port", pod)
	}
	known.mutex.Lock()
	known.replaced = handler
	known.mutex.Unlock()
	known.server.CloseClientConnections()
	return nil
}

// address returns where a pod answers, and has it answer.
func (g *Gateways) address(pod *corev1.Pod) (string, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	key := client.ObjectKeyFromObject(pod)
	if known := g.pods[key]; known != nil {
		return known.ip, nil
	}
	listener, err := listen(g.addresses+1, g.Port)
	if err != nil {
		return "", err
	}
	g.addresses++
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", err
	}
	made := &adminPort{ip: host}
	doc, err := g.document(pod)
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	made.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.mutex.Lock()
		replaced := made.replaced
		made.mutex.Unlock()
		if replaced != nil {
			replaced.ServeHTTP(w, r)
			return
		}
		doc.answer(w, r)
	}))
	_ = made.server.Listener.Close()
	made.server.Listener = listener
	made.server.Start()
	g.pods[key] = made
	return host, nil
}

// document returns what a pod and those like it say. The mutex is held.
func (g *Gateways) document(pod *corev1.Pod) (*gatewayDocument, error) {
	by := servedBy{
		kind: "APIGateway", name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[slipwayv1alpha1.LabelAPIGateway]},
	}
	read := func(ctx context.Context) (reading, error) { return read(ctx, g.reader, by.name) }
	if name := pod.Labels[gatewayv1.GatewayNameLabelKey]; name != "" {
		of, err := newGatewayPod(pod, name, g.Elsewhere)
		if err != nil {
			return nil, err
		}
		by = servedBy{kind: "Gateway", name: of.gateway, arguments: strings.Join(pod.Spec.Containers[0].Args, " ")}
		read = func(ctx context.Context) (reading, error) { return of.read(ctx, g.reader) }
	}
	if g.documents[by] == nil {
		g.documents[by] = &gatewayDocument{read: read, seen: g.Seen, last: document.Document{Revision: time.Now().UnixMicro()}}
	}
	return g.documents[by], nil
}

// forget ends a pod that was deleted.
func (g *Gateways) forget(pod types.NamespacedName) {
	g.mutex.Lock()
	known := g.pods[pod]
	delete(g.pods, pod)
	g.mutex.Unlock()
	if known != nil {
		known.server.CloseClientConnections()
		known.server.Close()
	}
}

// lookEvery is how soon a pod notices that something has changed.
const lookEvery = 20 * time.Millisecond

// answer answers with the document, once it is another one than the client has.
func (d *gatewayDocument) answer(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	held := time.After(30 * time.Second)
	known := r.URL.Query().Get("wait")
	for {
		doc, err := d.now(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if known != strconv.FormatInt(doc.Revision, 10) {
			_ = json.NewEncoder(w).Encode(doc)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-held:
			_ = json.NewEncoder(w).Encode(doc)
			return
		case <-tick.C:
		}
	}
}

// now is the present document, with a revision that changes with it. Most of the time
// nothing has changed, and many ask: one look is enough for all of them.
func (d *gatewayDocument) now(ctx context.Context) (document.Document, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if time.Since(d.looked) < lookEvery/2 {
		return d.last, nil
	}
	at := 0
	if d.seen != nil {
		at = d.seen() // before what it is about is read
	}
	if d.seen != nil && !d.looked.IsZero() && at == d.at {
		return d.last, nil
	}
	in, err := d.read(ctx)
	if err != nil {
		return document.Document{}, err
	}
	if versions := in.versions(); versions != d.known {
		doc, err := in.truth()
		if err != nil {
			return doc, err
		}
		doc.Revision = d.last.Revision
		if !reflect.DeepEqual(doc, d.last) {
			doc.Revision++
		}
		d.last, d.known = doc, versions
	}
	d.looked, d.at = time.Now(), at
	return d.last, nil
}

// input is what a pod of an APIGateway reads, shared with the cache: not to be changed.
type input struct {
	gateway  *unstructured.Unstructured // nil: there is none
	services []unstructured.Unstructured
	// secrets are those that routes name and that exist.
	secrets []*unstructured.Unstructured
	// configMaps are those with authorities that exist.
	configMaps []*unstructured.Unstructured
}

func read(ctx context.Context, reader client.Reader, name types.NamespacedName) (input, error) {
	gateway := &unstructured.Unstructured{}
	gateway.SetGroupVersionKind(slipwayv1alpha1.SchemeGroupVersion.WithKind("APIGateway"))
	if err := reader.Get(ctx, name, gateway, client.UnsafeDisableDeepCopy); err != nil {
		return input{}, client.IgnoreNotFound(err)
	}
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
	if err := reader.List(ctx, services, client.InNamespace(name.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return input{}, err
	}
	in := input{gateway: gateway, services: services.Items}
	for _, secretName := range secretsOf(gateway) {
		secret := &unstructured.Unstructured{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := reader.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: secretName}, secret, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return input{}, err
		}
		if err == nil {
			in.secrets = append(in.secrets, secret)
		}
	}
	for _, mapName := range configMapsOf(gateway) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := reader.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: mapName}, object, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return input{}, err
		}
		if err == nil {
			in.configMaps = append(in.configMaps, object)
		}
	}
	return in, nil
}

// versions identify the input.
func (in input) versions() string {
	if in.gateway == nil {
		return "none"
	}
	versions := []string{in.gateway.GetResourceVersion()}
	for i := range in.services {
		versions = append(versions, in.services[i].GetResourceVersion())
	}
	for _, object := range slices.Concat(in.secrets, in.configMaps) {
		versions = append(versions, object.GetResourceVersion())
	}
	slices.Sort(versions)
	return strings.Join(versions, " ")
}

// truth is what a gateway would say that has read its APIGateway just now.
func (in input) truth() (document.Document, error) {
	doc := document.Document{Protocol: document.Protocol, Version: "test"}
	if in.gateway == nil {
		return doc, nil
	}
	gateway := &slipwayv1alpha1.APIGateway{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.gateway.Object, gateway); err != nil {
		return doc, err
	}
	services, err := servicesOf(in.services)
	if err != nil {
		return doc, err
	}
	secrets, err := contentsOf(in.secrets)
	if err != nil {
		return doc, err
	}
	made := apigateway.Input{
		Routes: gateway.Spec.Routes, BackendPolicies: gateway.Spec.BackendPolicies, Streams: gateway.Spec.Streams,
		Services: services, Secrets: secrets, ConfigMaps: map[string]map[string][]byte{},
	}
	for _, object := range in.configMaps {
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		of := map[string][]byte{}
		for key, value := range data {
			of[key] = []byte(value)
		}
		made.ConfigMaps[object.GetName()] = of
	}
	_, problems := apigateway.Compile(made)
	doc.UID, doc.Generation = gateway.UID, gateway.Generation
	doc.View = &document.View{Current: true}
	for i := range gateway.Spec.Routes {
		digest, err := document.Digest(&gateway.Spec.Routes[i])
		if err != nil {
			return doc, err
		}
		doc.Routes = append(doc.Routes, digest)
	}
	for _, p := range problems {
		field := ""
		if p.Index < 0 {
			field = fmt.Sprintf("spec.%s[%s]", p.List, p.Route)
		}
		doc.Problems = append(doc.Problems,
			document.Problem{Route: p.Index, Name: p.Route, Field: field, Reason: p.Reason, Message: p.Message})
	}
	if gateway.Spec.ClientCertificates != nil {
		if _, f := made.Clients(gateway.Spec.ClientCertificates); f != nil {
			doc.Problems = append(doc.Problems, document.Problem{
				Route: -1, Name: "clientCertificates", Field: "spec.clientCertificates", Reason: f.Reason, Message: f.Message,
			})
		}
	}
	return doc, nil
}
