//go:build peers

package peers

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// contender is an implementation of the Gateway API.
type contender struct {
	name string
	// controller is what it calls itself in a GatewayClass.
	controller string
	// install starts it in the namespace of the fixture, and returns what is measured of it.
	install func(f *livetest.Fixture) []process
	// service is the name of the Service through which it serves.
	service string
	// parameters names the GatewayParameters of the GatewayClass. Empty: none.
	parameters string
	// ours fails the test by wrong answers.
	ours bool
	// withoutDataPlane is that there is nobody who serves, so that nobody is asked: its data plane is no Go program, and
	// cannot be built here.
	withoutDataPlane bool
}

var contenders = []contender{
	{
		name: "Slipway", controller: "slipway.dev/gateway", install: installSlipway, service: gateway + "-" + className("Slipway"),
		parameters: gateway, ours: true,
	},
	{name: "Traefik", controller: "traefik.io/gateway-controller", install: installTraefik, service: "traefik"},
	{
		name: "Envoy Gateway", controller: "gateway.envoyproxy.io/gatewayclass-controller", install: installEnvoyGateway,
		withoutDataPlane: true,
	},
}

// className is the name of the contender's GatewayClass.
func className(contender string) string {
	return strings.ToLower(strings.ReplaceAll(contender, " ", "-"))
}

// createGateway makes the class and the Gateway that everything goes through. The class goes with the test.
func (c *contender) createGateway(f *livetest.Fixture) {
	f.Helper()
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: className(c.name)},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(c.controller)},
	}
	if c.parameters != "" {
		class.Spec.ParametersRef = &gatewayv1.ParametersReference{
			Group: gatewayv1.Group(slipwayv1alpha1.SchemeGroupVersion.Group), Kind: "GatewayParameters",
			Name: c.parameters, Namespace: new(gatewayv1.Namespace(f.Namespace)),
		}
	}
	createForAll(f, class)
	f.Create(&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: gateway}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(class.Name),
		Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
	}})
}

// createForAll creates an object without a namespace, and deletes it when the test ends.
func createForAll(f *livetest.Fixture, object client.Object) {
	f.Helper()
	if err := f.Cluster.Create(f.Context(), object); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := f.Cluster.Delete(cleanupContext(f.T), object); err != nil {
			f.Errorf("delete %T: %v", object, err)
		}
	})
}

// installSlipway has nothing to start: the operator is there, and starts the pod with the Gateway. Requests are not logged, as
// Traefik does not log them either.
func installSlipway(f *livetest.Fixture) []process {
	f.Helper()
	f.Create(&slipwayv1alpha1.GatewayParameters{ObjectMeta: metav1.ObjectMeta{Name: gateway}, Spec: slipwayv1alpha1.GatewayParametersSpec{
		AccessLog: &slipwayv1alpha1.AccessLog{SamplePercent: new(int32(0))},
	}})
	return []process{
		{plane: "control plane", port: 8080, pod: func() (*corev1.Pod, error) { return f.Cluster.Leader(f.Context()) }},
		{plane: "data plane", port: 15021, pod: onlyPod(f, gatewayv1.GatewayNameLabelKey, gateway)},
	}
}

// installTraefik starts Traefik.
func installTraefik(f *livetest.Fixture) []process {
	f.Helper()
	startPeer(f, "traefik", "TRAEFIK_IMAGE")
	return []process{{plane: "both planes", port: 9100, pod: onlyPod(f, "app", "traefik")}}
}

// installEnvoyGateway starts the control plane of Envoy Gateway. The pods of Envoy that it makes never run: there is no image of
// Envoy.
func installEnvoyGateway(f *livetest.Fixture) []process {
	f.Helper()
	startPeer(f, "envoy-gateway", "ENVOY_GATEWAY_IMAGE")
	return []process{{plane: "control plane", port: 19001, pod: onlyPod(f, "app", "envoy-gateway")}}
}

// startPeer applies a manifest with the image that a variable of the environment names, and waits until the Deployment is ready. It may
// do everything: its rights are not what is measured.
func startPeer(f *livetest.Fixture, name, variable string) {
	f.Helper()
	image := os.Getenv(variable)
	if image == "" {
		f.Fatalf("%s is not set", variable)
	}
	createForAll(f, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: f.Namespace}},
	})
	manifest, err := os.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		f.Fatal(err)
	}
	file := f.TempDir() + "/peer.yaml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(manifest), name+":dev", image)), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Kubectl("apply", "--server-side", "-f", file)
	f.Kubectl("rollout", "status", "deployment/"+name, "--timeout=90s")
}

// onlyPod finds the one pod with a label.
func onlyPod(f *livetest.Fixture, label, value string) func() (*corev1.Pod, error) {
	return func() (*corev1.Pod, error) {
		pods := &corev1.PodList{}
		if err := f.Cluster.List(f.Context(), pods, client.InNamespace(f.Namespace), client.MatchingLabels{label: value}); err != nil {
			return nil, err
		}
		if len(pods.Items) != 1 {
			return nil, fmt.Errorf("%d pods have the label %s=%s, want 1", len(pods.Items), label, value)
		}
		return &pods.Items[0], nil
	}
}
