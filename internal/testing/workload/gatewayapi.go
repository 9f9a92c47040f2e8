package workload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/settings"
)

// gatewayPod is a pod of a Gateway of the Gateway API. It reads HTTPRoutes, TLSRoutes, TCPRoutes, UDPRoutes, GatewayPolicies,
// ReferenceGrants, Services and the Secrets with certificates and credentials: those of its own namespace, and the copies of
// others. It reads no GRPCRoutes, no BackendTLSPolicies and no authorities.
type gatewayPod struct {
	gateway types.NamespacedName
	// copies is the name of the Secret with the certificates of other namespaces.
	copies   string
	settings settings.Settings
	// elsewhere are further namespaces that it reads.
	elsewhere []string
}

// newGatewayPod takes from the arguments of a pod what it does.
func newGatewayPod(pod *corev1.Pod, gateway string, elsewhere []string) (*gatewayPod, error) {
	p := &gatewayPod{gateway: types.NamespacedName{Namespace: pod.Namespace, Name: gateway}, elsewhere: elsewhere}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&p.copies, "borrowed-certificates", "", "")
	p.settings.Bind(flags)
	if err := flags.Parse(pod.Spec.Containers[0].Args); err != nil {
		return nil, fmt.Errorf("the arguments of pod %q: %w", pod.Name, err)
	}
	return p, nil
}

// gatewayReading is what a pod of a Gateway has read, shared with the cache: not to be changed. Most of the time nothing has
// changed since the last look, so it gets types only when that matters.
type gatewayReading struct {
	of *gatewayPod
	// gateway is nil where there is none.
	gateway *unstructured.Unstructured
	// objects are by kind. The Secrets are those of the pod's namespace.
	objects map[string][]unstructured.Unstructured
}

func (p *gatewayPod) read(ctx context.Context, reader client.Reader) (*gatewayReading, error) {
	in := &gatewayReading{of: p, objects: map[string][]unstructured.Unstructured{}}
	gateway := &unstructured.Unstructured{}
	gateway.SetGroupVersionKind(gatewayKind("Gateway"))
	if err := reader.Get(ctx, p.gateway, gateway, client.UnsafeDisableDeepCopy); err != nil {
		return in, client.IgnoreNotFound(err)
	}
	in.gateway = gateway
	kinds := []schema.GroupVersionKind{
		gatewayKind("HTTPRoute"), gatewayKind("TLSRoute"), gatewayKind("TCPRoute"), gatewayKind("UDPRoute"), gatewayKind("ReferenceGrant"),
		slipwayv1alpha1.SchemeGroupVersion.WithKind("GatewayPolicy"), corev1.SchemeGroupVersion.WithKind("Service"),
	}
	for _, namespace := range append([]string{p.gateway.Namespace}, p.elsewhere...) {
		for _, kind := range kinds {
			if err := in.list(ctx, reader, kind, namespace); err != nil {
				return nil, err
			}
		}
	}
	return in, in.list(ctx, reader, corev1.SchemeGroupVersion.WithKind("Secret"), p.gateway.Namespace)
}

// gatewayKind is a kind of the Gateway API.
func gatewayKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: kind}
}

func (in *gatewayReading) list(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace string) error {
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, objects, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	in.objects[kind.Kind] = append(in.objects[kind.Kind], objects.Items...)
	return err
}

func (in *gatewayReading) versions() string {
	if in.gateway == nil {
		return "none"
	}
	versions := []string{in.gateway.GetResourceVersion()}
	for _, objects := range in.objects {
		for i := range objects {
			versions = append(versions, objects[i].GetResourceVersion())
		}
	}
	slices.Sort(versions)
	return strings.Join(versions, " ")
}

// typed are objects with their type.
func typed[T any](objects []unstructured.Unstructured) ([]*T, error) {
	var made []*T
	for i := range objects {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, object); err != nil {
			return nil, err
		}
		made = append(made, object)
	}
	return made, nil
}

func (in *gatewayReading) truth() (document.Document, error) {
	doc := document.Document{Protocol: document.Protocol, Version: "test"}
	if in.gateway == nil {
		return doc, nil
	}
	gateways, err := typed[gatewayv1.Gateway]([]unstructured.Unstructured{*in.gateway})
	if err != nil {
		return doc, err
	}
	gateway := gateways[0]
	secrets, err := typed[corev1.Secret](in.objects["Secret"])
	if err != nil {
		return doc, err
	}
	input, certificates, err := in.input(gateway, secrets)
	if err != nil {
		return doc, err
	}
	built := gatewayapi.Build(input)
	doc.UID, doc.Generation = gateway.UID, gateway.Generation
	doc.View = &document.View{Current: true}
	version := func(name types.NamespacedName) string { return certificates[name].Version }
	for _, l := range built.Listeners {
		if !l.Valid {
			continue
		}
		parts := append(l.Parts(version, func(types.NamespacedName) string { return "" }), in.of.settings.Arguments()...)
		doc.Listeners = append(doc.Listeners, document.ServedListener{
			Name: string(l.Name), Digest: document.ListenerDigest(l.Port, l.Secure(), l.Hostname, parts),
		})
	}
	ruled := map[*gatewayapi.Route]bool{}
	for _, rule := range built.Rules {
		ruled[rule.Route] = true
	}
	for _, route := range built.Routes {
		if ruled[route] && slices.ContainsFunc(route.Parents, (*gatewayapi.Parent).Accepted) {
			doc.Routes = append(doc.Routes, document.RouteDigest(route.UID, route.Generation))
		}
	}
	for _, policy := range built.GatewayPolicies {
		if policy.Served {
			doc.Routes = append(doc.Routes, policy.Digest(func(name types.NamespacedName) string {
				return in.of.credentials(secrets, name).Version
			}))
		}
	}
	return doc, nil
}

// input is what the graph is built of, and the certificates among it.
func (in *gatewayReading) input(
	gateway *gatewayv1.Gateway, secrets []*corev1.Secret,
) (gatewayapi.Input, map[types.NamespacedName]copied.Certificate, error) {
	made := gatewayapi.Input{
		Gateway: gateway, ReservedPorts: desired.ReservedPorts(),
		Namespaces: map[string]map[string]string{}, Services: map[types.NamespacedName]gatewayapi.Service{},
		Secrets: map[types.NamespacedName]gatewayapi.Secret{},
	}
	services, err := typed[corev1.Service](in.objects["Service"])
	if err := errors.Join(err, in.addRoutes(&made)); err != nil {
		return made, nil, err
	}
	made.Authentication = gatewayapi.Authenticate(made.GatewayPolicies, func(name types.NamespacedName) (map[string][]byte, bool) {
		found := in.of.credentials(secrets, name)
		return found.Data, found.Version != ""
	})
	for _, namespace := range append([]string{gateway.Namespace}, in.of.elsewhere...) {
		made.Namespaces[namespace] = map[string]string{corev1.LabelMetadataName: namespace}
	}
	for _, service := range services {
		of := gatewayapi.Service{
			External: service.Spec.Type == corev1.ServiceTypeExternalName, Ports: map[int32]gatewayapi.Port{},
			UDP: map[int32]gatewayapi.Port{},
		}
		for _, port := range service.Spec.Ports {
			ports := of.Ports
			if port.Protocol == corev1.ProtocolUDP {
				ports = of.UDP
			}
			ports[port.Port] = gatewayapi.Port{Name: port.Name}
		}
		made.Services[client.ObjectKeyFromObject(service)] = of
	}
	certificates := map[types.NamespacedName]copied.Certificate{}
	for _, name := range gatewayapi.Certificates(gateway) {
		certificate, found := in.of.certificate(secrets, name)
		if !found {
			continue
		}
		certificates[name], made.Secrets[name] = certificate, gatewayapi.Secret{}
		if _, err := tls.X509KeyPair(certificate.Certificate, certificate.PrivateKey); err != nil {
			made.Secrets[name] = gatewayapi.Secret{Problem: err.Error()}
		}
	}
	return made, certificates, nil
}

// addRoutes adds routes, the policies that may be for them, and grants.
func (in *gatewayReading) addRoutes(to *gatewayapi.Input) error {
	var errs [6]error
	to.HTTPRoutes, errs[0] = typed[gatewayv1.HTTPRoute](in.objects["HTTPRoute"])
	to.TLSRoutes, errs[1] = typed[gatewayv1.TLSRoute](in.objects["TLSRoute"])
	to.TCPRoutes, errs[2] = typed[gatewayv1.TCPRoute](in.objects["TCPRoute"])
	to.UDPRoutes, errs[3] = typed[gatewayv1.UDPRoute](in.objects["UDPRoute"])
	to.GatewayPolicies, errs[4] = typed[slipwayv1alpha1.GatewayPolicy](in.objects["GatewayPolicy"])
	to.Grants, errs[5] = typed[gatewayv1.ReferenceGrant](in.objects["ReferenceGrant"])
	return errors.Join(errs[:]...)
}

// credentials returns what a policy's Secret holds, or its copy. The version is empty if there is none.
func (p *gatewayPod) credentials(secrets []*corev1.Secret, name types.NamespacedName) copied.Credentials {
	own := name.Namespace == p.gateway.Namespace
	for _, secret := range secrets {
		switch {
		case own && secret.Name == name.Name:
			return copied.Credentials{Data: secret.Data, Version: secret.ResourceVersion}
		case !own && secret.Name == p.copies:
			found, _ := copied.FindCredentials(secret, name)
			return found
		}
	}
	return copied.Credentials{}
}

// certificate returns what a Secret has, or its copy if it is in another namespace, which the pod may not read.
func (p *gatewayPod) certificate(secrets []*corev1.Secret, name types.NamespacedName) (copied.Certificate, bool) {
	own := name.Namespace == p.gateway.Namespace
	for _, secret := range secrets {
		switch {
		case own && secret.Name == name.Name:
			return copied.Certificate{
				Certificate: secret.Data[corev1.TLSCertKey], PrivateKey: secret.Data[corev1.TLSPrivateKeyKey],
				Version: secret.ResourceVersion,
			}, true
		case !own && secret.Name == p.copies:
			return copied.Find(secret, name)
		}
	}
	return copied.Certificate{}, false
}
