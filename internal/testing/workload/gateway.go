package workload

import (
	"context"
	"encoding/json"
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

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Gateways stands in for the admin ports of gateway pods: each has a loopback address
// and says truthfully what a gateway would serve that has read its APIGateway just now,
// with an endpoint behind every port of every Service. No Secret is looked at.
type Gateways struct {
	// Port is the admin port of every pod.
	Port int

	reader   client.Reader
	reserved net.Listener

	mutex sync.Mutex
	pods  map[types.NamespacedName]*gatewayPod
}

// gatewayPod is the admin port of one pod.
type gatewayPod struct {
	server *httptest.Server
	ip     string

	mutex    sync.Mutex
	replaced http.Handler
	last     revision.Document
	// read are the versions of what last was made of.
	read string
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
	return &Gateways{Port: address.Port, reader: reader, reserved: reserved, pods: map[types.NamespacedName]*gatewayPod{}}, nil
}

func listen(number, port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.9.%d.%d:%d", number/250, number%250+1, port)) //nolint:noctx // a test server
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

// Replace has a pod answer with a handler, or truthfully again with nil. Questions that
// are held back are cut off.
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
	number := len(g.pods) + 1
	listener, err := listen(number, g.Port)
	if err != nil {
		return "", err
	}
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", err
	}
	made := &gatewayPod{ip: host, last: revision.Document{Revision: time.Now().UnixMicro()}}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[slipwayv1alpha1.LabelAPIGateway]}
	made.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.mutex.Lock()
		replaced := made.replaced
		made.mutex.Unlock()
		if replaced != nil {
			replaced.ServeHTTP(w, r)
			return
		}
		made.answer(g.reader, name, w, r)
	}))
	_ = made.server.Listener.Close()
	made.server.Listener = listener
	made.server.Start()
	g.pods[key] = made
	return host, nil
}

// answer answers with the document, once it is another one than the client has.
func (p *gatewayPod) answer(reader client.Reader, gateway types.NamespacedName, w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	held := time.After(30 * time.Second)
	for {
		document, err := p.document(r.Context(), reader, gateway)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if r.URL.Query().Get("wait") != strconv.FormatInt(document.Revision, 10) {
			_ = json.NewEncoder(w).Encode(document)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-held:
			_ = json.NewEncoder(w).Encode(document)
			return
		case <-tick.C:
		}
	}
}

// document is the present one, with a revision that changes with it.
func (p *gatewayPod) document(ctx context.Context, reader client.Reader, gateway types.NamespacedName) (revision.Document, error) {
	in, err := read(ctx, reader, gateway)
	if err != nil {
		return revision.Document{}, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// Most of the time nothing has changed, and many ask.
	if versions := in.versions(); versions != p.read {
		document, err := in.truth()
		if err != nil {
			return document, err
		}
		document.Revision = p.last.Revision
		if !reflect.DeepEqual(document, p.last) {
			document.Revision++
		}
		p.last, p.read = document, versions
	}
	return p.last, nil
}

// input is what a gateway reads, shared with the cache: not to be changed.
type input struct {
	gateway  *unstructured.Unstructured // nil: there is none
	services []unstructured.Unstructured
}

func read(ctx context.Context, reader client.Reader, name types.NamespacedName) (input, error) {
	gateway := &unstructured.Unstructured{}
	gateway.SetGroupVersionKind(slipwayv1alpha1.SchemeGroupVersion.WithKind("APIGateway"))
	if err := reader.Get(ctx, name, gateway, client.UnsafeDisableDeepCopy); err != nil {
		return input{}, client.IgnoreNotFound(err)
	}
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
	err := reader.List(ctx, services, client.InNamespace(name.Namespace), client.UnsafeDisableDeepCopy)
	return input{gateway, services.Items}, err
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
	slices.Sort(versions)
	return strings.Join(versions, " ")
}

// truth is what a gateway would say that has read its APIGateway just now.
func (in input) truth() (revision.Document, error) {
	document := revision.Document{Protocol: revision.Protocol, Version: "test"}
	if in.gateway == nil {
		return document, nil
	}
	gateway := &slipwayv1alpha1.APIGateway{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.gateway.Object, gateway); err != nil {
		return document, err
	}
	services, err := servicesOf(in.services)
	if err != nil {
		return document, err
	}
	_, problems := table.Compile(table.Input{Routes: gateway.Spec.Routes, Services: services})
	document.UID, document.Generation = gateway.UID, gateway.Generation
	for _, p := range problems {
		document.Problems = append(document.Problems, revision.Problem{Route: p.Index, Name: p.Route, Reason: p.Reason, Message: p.Message})
	}
	return document, nil
}

// servicesOf are Services, with an endpoint behind every port.
func servicesOf(found []unstructured.Unstructured) (map[string]table.Service, error) {
	services := map[string]table.Service{}
	for i := range found {
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, service); err != nil {
			return nil, err
		}
		ports := map[int32]table.ServicePort{}
		for _, port := range service.Spec.Ports {
			ports[port.Port] = table.ServicePort{Endpoints: []string{"192.0.2.1:80"}}
		}
		services[service.Name] = table.Service{Ports: ports}
	}
	return services, nil
}
