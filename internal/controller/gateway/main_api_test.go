//go:build apitest

package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is one test's namespaces with its class.
type fixture struct {
	*testing.T
	// namespace has the Gateway, other has what it refers to elsewhere.
	namespace, other string
	class            *gatewayv1.GatewayClass
	// pods of the Gateway answer with what is on the board, at this port.
	board *document.Board
	port  int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, namespace: env.Namespace(t), other: env.Namespace(t), board: document.NewBoard(clock.RealClock{}, "test")}
	f.install()
	f.class = f.newClass()
	server := httptest.NewServer(f.board)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	f.port = server.Listener.Addr().(*net.TCPAddr).Port
	return f
}

// newClass is a class of ours.
func (f *fixture) newClass() *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: gateway.Controller}}
}

// install installs the Gateway API, and the rights of the pods.
func (f *fixture) install() {
	f.Helper()
	var files []string
	for _, kind := range []string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes", "referencegrants", "backendtlspolicies", "listenersets"} {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml")
	}
	if err := env.InstallModule(f.Context(), "sigs.k8s.io/gateway-api", files...); err != nil {
		f.Fatal(err)
	}
	f.installRights()
}

// installRights installs the rights of the pods.
func (f *fixture) installRights() {
	f.Helper()
	raw, err := os.ReadFile("../../../config/rbac/gateway.yaml")
	if err != nil {
		f.Fatal(err)
	}
	ofRole, ofBinding, _ := strings.Cut(string(raw), "\n---\n")
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(ofRole), role), yaml.UnmarshalStrict([]byte(ofBinding), binding)); err != nil {
		f.Fatal(err)
	}
	for _, object := range []client.Object{role, binding} {
		if err := env.Client.Create(f.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			f.Fatal(err)
		}
	}
}

// startOperator runs the operator for the namespaces of the test alone.
func (f *fixture) startOperator(change func(*rest.Config)) *environment.Operator {
	f.Helper()
	return env.StartOperatorWith(f, func(config *rest.Config, options *environment.Options) {
		options.Namespaces = []string{f.namespace, f.other}
		options.Controllers = []string{"gateway", "gatewayclass"}
		options.GatewayAdminPort = f.port
		if change != nil {
			change(config)
		}
	})
}

func (f *fixture) create(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		if err := env.Client.Create(f.Context(), object); err != nil {
			f.Fatalf("create %T: %v", object, err)
		}
	}
}

func (f *fixture) delete(object client.Object) {
	f.Helper()
	if err := env.Client.Delete(f.Context(), object); err != nil {
		f.Fatalf("delete %T %q: %v", object, object.GetName(), err)
	}
}

// get reads the latest version of an object.
func (f *fixture) get(object client.Object) error {
	return env.Client.Get(f.Context(), client.ObjectKeyFromObject(object), object)
}

// update changes the latest version of an object.
func update[T client.Object](f *fixture, object T, change func(T)) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(object); err != nil {
			return err
		}
		change(object)
		return env.Client.Update(f.Context(), object)
	})
}

// updateStatus changes the status of an object.
func updateStatus[T client.Object](f *fixture, object T, change func(T)) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(object); err != nil {
			return err
		}
		change(object)
		return env.Client.Status().Update(f.Context(), object, client.FieldOwner("somebody"))
	})
}

// gateway is one with a listener for HTTP, changed as asked.
func (f *fixture) gateway(change ...func(*gatewayv1.Gateway)) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: f.namespace},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(f.class.Name),
			Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

// secure adds a listener that shows a certificate.
func secure(namespace, secret string) func(*gatewayv1.Gateway) {
	return func(g *gatewayv1.Gateway) {
		in := gatewayv1.Namespace(namespace)
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: "tls", Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Namespace: &in, Name: gatewayv1.ObjectName(secret)}}},
		})
	}
}

// route sends everything to a Service.
func (f *fixture) route(name, service string, change ...func(*gatewayv1.HTTPRoute)) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
			Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: ptr(gatewayv1.PortNumber(8080))},
			}}}}},
		},
	}
	for _, c := range change {
		c(route)
	}
	return route
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}},
	}
}

// certificate is a Secret with one.
func (f *fixture) certificate(namespace, name string) *corev1.Secret {
	f.Helper()
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Type: corev1.SecretTypeTLS, Data: f.pair()}
}

func (f *fixture) pair() map[string][]byte {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		f.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}
}

// grant permits Gateways and HTTPRoutes of the test's namespace to use Secrets and Services of the other one.
func (f *fixture) grant() *gatewayv1.ReferenceGrant {
	return &gatewayv1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Name: "grant", Namespace: f.other},
		Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{
				{Group: gatewayv1.GroupName, Kind: "Gateway", Namespace: gatewayv1.Namespace(f.namespace)},
				{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: gatewayv1.Namespace(f.namespace)},
			},
			To: []gatewayv1.ReferenceGrantTo{{Kind: "Secret"}, {Kind: "Service"}},
		},
	}
}

// child is an object by the name of the children.
func child[T client.Object](f *fixture, g *gatewayv1.Gateway, object T) T {
	object.SetNamespace(g.Namespace)
	object.SetName(desired.Name(g))
	return object
}

// running waits for the Deployment and gives the Gateway a ready pod, and an address.
func (f *fixture) running(g *gatewayv1.Gateway) *corev1.Pod {
	f.Helper()
	deployment := child(f, g, &appsv1.Deployment{})
	environment.Eventually(f, func() error { return f.get(deployment) })
	set := f.replicaSet(deployment)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name + "-1", Namespace: f.namespace, Labels: set.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway", Image: "gateway"}}},
	}
	f.create(pod)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if err := env.Client.Status().Update(f.Context(), pod); err != nil {
		f.Fatal(err)
	}
	exposed := child(f, g, &corev1.Service{})
	environment.Eventually(f, func() error { return f.get(exposed) })
	updateStatus(f, exposed, func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}}
	})
	return pod
}

// replicaSet makes one of the Deployment.
func (f *fixture) replicaSet(deployment *appsv1.Deployment) *appsv1.ReplicaSet {
	f.Helper()
	template := *deployment.Spec.Template.DeepCopy()
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "first"
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name + "-first", Namespace: f.namespace, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	f.create(set)
	return set
}

// serve has the pods say that they serve listeners and routes.
func (f *fixture) serve(g *gatewayv1.Gateway, listeners []document.ServedListener, routes ...client.Object) {
	doc := document.Document{UID: g.UID, Generation: g.Generation, View: &document.View{Current: true}, Listeners: listeners}
	for _, route := range routes {
		doc.Routes = append(doc.Routes, document.RouteDigest(route.GetUID(), route.GetGeneration()))
	}
	f.board.Publish(doc)
}

// web is the listener for HTTP as it is served.
func web() document.ServedListener {
	return document.ServedListener{Name: "web", Digest: document.ListenerDigest(80, false, "", nil)}
}

// has tells whether conditions have one of that status and reason, of that generation.
func has(conditions []metav1.Condition, generation int64, conditionType string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return fmt.Errorf("no condition %s in %+v", conditionType, conditions)
	}
	if c.Status != status || c.Reason != reason || c.ObservedGeneration != generation {
		return fmt.Errorf("%s is %s %s (%s) of generation %d, want %s %s of %d", conditionType, c.Status, c.Reason, c.Message, c.ObservedGeneration, status, reason, generation)
	}
	return nil
}

// waitGateway waits for a condition of the Gateway.
func (f *fixture) waitGateway(g *gatewayv1.Gateway, conditionType gatewayv1.GatewayConditionType, status metav1.ConditionStatus, reason gatewayv1.GatewayConditionReason) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		return has(g.Status.Conditions, g.Generation, string(conditionType), status, string(reason))
	})
}

// waitListener waits for a condition of a listener.
func (f *fixture) waitListener(g *gatewayv1.Gateway, name string, conditionType gatewayv1.ListenerConditionType, status metav1.ConditionStatus, reason gatewayv1.ListenerConditionReason) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		at := slices.IndexFunc(g.Status.Listeners, func(l gatewayv1.ListenerStatus) bool { return string(l.Name) == name })
		if at < 0 {
			return fmt.Errorf("no listener %q in %+v", name, g.Status.Listeners)
		}
		return has(g.Status.Listeners[at].Conditions, g.Generation, string(conditionType), status, string(reason))
	})
}

// entry is ours in the status of a route.
func entry(route *gatewayv1.HTTPRoute) (*gatewayv1.RouteParentStatus, error) {
	for i := range route.Status.Parents {
		if route.Status.Parents[i].ControllerName == gateway.Controller {
			return &route.Status.Parents[i], nil
		}
	}
	return nil, errors.New("no entry of ours")
}

// waitRoute waits for a condition in our entry of a route.
func (f *fixture) waitRoute(route *gatewayv1.HTTPRoute, conditionType string, status metav1.ConditionStatus, reason string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(route); err != nil {
			return err
		}
		of, err := entry(route)
		if err != nil {
			return err
		}
		return has(of.Conditions, route.Generation, conditionType, status, reason)
	})
}

// subjects are those of the ClusterRoleBinding in the test's namespace.
func (f *fixture) subjects() []string {
	f.Helper()
	binding := &rbacv1.ClusterRoleBinding{}
	if err := env.Client.Get(f.Context(), types.NamespacedName{Name: desired.RightsName}, binding); err != nil {
		f.Fatal(err)
	}
	var names []string
	for _, s := range binding.Subjects {
		if s.Namespace == f.namespace {
			names = append(names, s.Name)
		}
	}
	return names
}

func ptr[T any](value T) *T { return &value }
