package desired

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

// Kind is the kind that owns everything built here.
const Kind = "Gateway"

// AdminPort is where a pod says whether it is ready and what it serves. No listener can have it.
const AdminPort = 15021

// ReservedPorts are those for TCP that no listener can have: the admin port, and the one by which the pods reach each other. The
// second is open only while a policy has the pods count together. It is reserved in any case: whoever may write policies could
// otherwise take a port from a listener.
func ReservedPorts() []int32 { return []int32{AdminPort, quota.Port} }

// RightsName is the name of the ClusterRole with what the pods of every Gateway may read, and of its ClusterRoleBinding.
const RightsName = "slipway-gateway"

// LimitedRightsName is the name of the Role and the RoleBinding that are there instead in each namespace to which Slipway is limited.
// No child of a Gateway or an APIGateway can have it.
const LimitedRightsName = "slipway:gateway"

// Inputs is all that the builders look at.
type Inputs struct {
	// Gateway is the Gateway.
	Gateway *gatewayv1.Gateway
	// Image is what the pods run.
	Image string
	// Namespaces are the ones to which the pods are limited. Empty: they read all.
	Namespaces []string
	// ServiceType is that of the Service where the parameters name none.
	ServiceType corev1.ServiceType
	// Parameters are those of the Gateway.
	Parameters slipwayv1alpha1.GatewayParametersSpec
	// Listeners are those of the Gateway. Only valid ones have a port.
	Listeners []*gatewayapi.Listener
	// Secrets are those whose certificates are shown, and those that say whom policies let in.
	Secrets []types.NamespacedName
	// Current is the Deployment as it is, or nil.
	Current *appsv1.Deployment
	// Replicas is how many pods to ask for, or nil to leave the number to whoever else sets it.
	Replicas *int32
}

// Name returns the name of every child but the Secret: <gateway>-<class>, or something like it with a hash where that is
// no name of a Service.
func Name(gateway *gatewayv1.Gateway) string {
	whole := gateway.Name + "-" + string(gateway.Spec.GatewayClassName)
	if len(validation.IsDNS1035Label(whole)) == 0 {
		return whole
	}
	label := strings.ReplaceAll(whole, ".", "-")
	if label[0] >= '0' && label[0] <= '9' {
		label = "g-" + label
	}
	return hashed(label, whole)
}

// CopiesName returns the name of the Secret with the certificates of other namespaces.
func CopiesName(gateway *gatewayv1.Gateway) string { return copied.SecretName(Name(gateway)) }

// LabelValue is the value of the label with the name of a Gateway, by which its pods are found: the name, or something like it
// with a hash where that is too long.
func LabelValue(gateway *gatewayv1.Gateway) string { return label(gateway.Name) }

// Selector returns the labels by which the Deployment and the Service find the pods of a Gateway.
func Selector(gateway *gatewayv1.Gateway) map[string]string { return owner(gateway).Selector() }

func label(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return hashed(name, name)
}

// hashed cuts a name and adds a hash of what it stands for.
func hashed(name, of string) string {
	sum := sha256.Sum256([]byte(of))
	return fmt.Sprintf("%s-%x", name[:min(len(name), validation.DNS1035LabelMaxLength-11)], sum[:5])
}

// owner is what the children have in common with those of other kinds. What spec.infrastructure says is on all of them.
func owner(gateway *gatewayv1.Gateway) children.Owner {
	o := children.Owner{
		Kind: Kind, APIVersion: gatewayv1.GroupVersion.String(), Object: gateway, Child: Name(gateway),
		Label: gatewayv1.GatewayNameLabelKey, LabelValue: LabelValue(gateway), More: map[string]string{},
	}
	if in := gateway.Spec.Infrastructure; in != nil {
		for key, value := range in.Labels {
			o.More[string(key)] = string(value)
		}
		for key, value := range in.Annotations {
			if o.Annotations == nil {
				o.Annotations = map[string]string{}
			}
			o.Annotations[string(key)] = string(value)
		}
	}
	o.More[gatewayv1.GatewayClassNameLabelKey] = label(string(gateway.Spec.GatewayClassName))
	return o
}

// port is a port of the Service. A number may be one for TCP and one for UDP.
type port struct {
	number    int32
	transport corev1.Protocol
}

// ports are those of the valid listeners with the protocol of each, in order. Where listeners of two protocols share a port, it
// is called after HTTPS.
func ports(listeners []*gatewayapi.Listener) ([]port, map[port]gatewayv1.ProtocolType) {
	protocols := map[port]gatewayv1.ProtocolType{}
	for _, l := range listeners {
		at := port{l.Port, corev1.ProtocolTCP}
		if l.Protocol == gatewayv1.UDPProtocolType {
			at.transport = corev1.ProtocolUDP
		}
		if l.Valid && protocols[at] != gatewayv1.HTTPSProtocolType {
			protocols[at] = l.Protocol
		}
	}
	inOrder := func(a, b port) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.transport, b.transport))
	}
	return slices.SortedFunc(maps.Keys(protocols), inOrder), protocols
}

// Secrets are the names of those Secrets that are in the Gateway's own namespace, each once, in order.
func Secrets(gateway *gatewayv1.Gateway, certificates []types.NamespacedName) []string {
	var names []string
	for _, secret := range certificates {
		if secret.Namespace == gateway.Namespace {
			names = append(names, secret.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
