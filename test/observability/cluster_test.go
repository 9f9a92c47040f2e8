//go:build observability

package observability

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/operator"
)

// cluster is an API server without nodes. Pods are objects in it that stand for programs on this machine.
type cluster struct {
	client client.Client
	// kubeconfig is an administrator's, discovery the one of a Prometheus with the rights of rbac.yaml.
	kubeconfig, discovery string
	// token is a file with a token of that Prometheus.
	token string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	definitions := []string{filepath.Join(root, "config", "crd")}
	for _, kind := range []string{"gatewayclasses", "gateways"} {
		definitions = append(definitions, filepath.Join(moduleFolder(t, "sigs.k8s.io/gateway-api"), "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+".yaml"))
	}
	env := &envtest.Environment{CRDDirectoryPaths: definitions, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		t.Fatalf("start the API server (is KUBEBUILDER_ASSETS set? see docs/dev/testing.md): %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	c := &cluster{}
	if c.client, err = client.New(config, client.Options{Scheme: operator.Scheme()}); err != nil {
		t.Fatal(err)
	}
	c.kubeconfig = writeFile(t, "kubeconfig", env.KubeConfig)
	account, err := env.AddUser(envtest.User{Name: "system:serviceaccount:monitoring:prometheus"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	discovery, err := account.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	c.discovery = writeFile(t, "discovery", discovery)
	for _, name := range []string{"slipway-system", "apps", "shop", "monitoring"} {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	prometheus := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: "monitoring"}}
	c.create(t, prometheus)
	request := &authenticationv1.TokenRequest{}
	if err := c.client.SubResource("token").Create(t.Context(), prometheus, request); err != nil {
		t.Fatal(err)
	}
	c.token = writeFile(t, "token", []byte(request.Status.Token))
	for _, file := range []string{filepath.Join(folder, "rbac.yaml"), filepath.Join(root, "config", "monitor", "kinds.yaml")} {
		for _, object := range decode(t, readFile(t, file)) {
			c.create(t, object)
		}
	}
	return c
}

// moduleFolder is where the source of a module that the project needs lies.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// decode reads a stream of objects.
func decode(t *testing.T, text string) []client.Object {
	t.Helper()
	var objects []client.Object
	decoder := yamlstream.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

func (c *cluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.client.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// installWebhook has the API server call the webhooks at an address of this machine.
func (c *cluster) installWebhook(t *testing.T, port int) {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(root, "config", "webhook", "configuration.yaml"))), configuration); err != nil {
		t.Fatal(err)
	}
	for i := range configuration.Webhooks {
		address := fmt.Sprintf("https://127.0.0.1:%d%s", port, *configuration.Webhooks[i].ClientConfig.Service.Path)
		configuration.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &address}
	}
	c.create(t, configuration)
}

// operatorTemplate is what the pods of the operator are made from.
func operatorTemplate(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(root, "config", "manager", "deployment.yaml"))), deployment); err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template
}

// gatewayTemplate is what the operator makes the pods of an APIGateway from.
func (c *cluster) gatewayTemplate(t *testing.T, namespace, gateway string) corev1.PodTemplateSpec {
	t.Helper()
	deployments := &appsv1.DeploymentList{}
	eventually(t, time.Minute, func() error {
		err := c.client.List(t.Context(), deployments, client.InNamespace(namespace), client.MatchingLabels{slipwayv1alpha1.LabelAPIGateway: gateway})
		if err == nil && len(deployments.Items) != 1 {
			err = fmt.Errorf("the APIGateway has %d Deployments", len(deployments.Items))
		}
		return err
	})
	return deployments.Items[0].Spec.Template
}

// standIn makes a pod that stands for a program on this machine: the named port is the program's.
func (c *cluster) standIn(t *testing.T, namespace, name string, template corev1.PodTemplateSpec, portName string, port int) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels}, Spec: *template.Spec.DeepCopy()}
	found := false
	for i := range pod.Spec.Containers {
		for j := range pod.Spec.Containers[i].Ports {
			if p := &pod.Spec.Containers[i].Ports[j]; p.Name == portName {
				p.ContainerPort, found = int32(port), true
			}
		}
	}
	if !found {
		t.Fatalf("the pods of %s have no port %s", name, portName)
	}
	c.create(t, pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}}
	if err := c.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}
