package operator

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func selects(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(set))
}

// Users copy the policy. One that keeps the operator or the clients out is worse than none.
func TestTheNetworkPolicyOfSecurityLetsInWhoIsNeeded(t *testing.T) {
	_, text, _ := strings.Cut(readFile(t, "../../SECURITY.md"), "```yaml\n")
	text, _, _ = strings.Cut(text, "```\n")
	policy := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict([]byte(text), policy); err != nil {
		t.Fatal(err)
	}
	operator := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "../../config/manager/deployment.yaml")), operator); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "../../config/manager/namespace.yaml")), namespace); err != nil {
		t.Fatal(err)
	}
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team"}}
	pods := desired.Deployment(desired.Inputs{Gateway: gateway}).Spec.Template
	if policy.Kind != "NetworkPolicy" || policy.APIVersion != "networking.k8s.io/v1" || !selects(t, &policy.Spec.PodSelector, pods.Labels) {
		t.Errorf("it is no NetworkPolicy of gateway pods: %+v", policy)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes); diff != "" {
		t.Error(diff)
	}
	// The ports that everybody reaches, and those that the operator reaches.
	var everybody, theOperator []int32
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			if len(rule.From) == 0 {
				everybody = append(everybody, port.Port.IntVal)
			}
			if slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
				name := map[string]string{corev1.LabelMetadataName: namespace.Name}
				return peer.NamespaceSelector != nil && peer.PodSelector != nil &&
					selects(t, peer.NamespaceSelector, name) && selects(t, peer.PodSelector, operator.Spec.Template.Labels)
			}) {
				theOperator = append(theOperator, port.Port.IntVal)
			}
		}
	}
	var clients []int32
	for _, port := range pods.Spec.Containers[0].Ports {
		if *port.ContainerPort != desired.AdminPort {
			clients = append(clients, *port.ContainerPort)
		}
	}
	if diff := cmp.Diff(clients, everybody); diff != "" {
		t.Errorf("everybody reaches other ports than those of clients: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int32{desired.AdminPort}, theOperator); diff != "" {
		t.Errorf("the operator: -want +got:\n%s", diff)
	}
}
