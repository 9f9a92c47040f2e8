package workload

import (
	"context"
	"crypto/tls"
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

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
	"github.com/slipway-dev/slipway/internal/gateway/settings"
	"github.com/slipway-dev/slipway/internal/gatewayapi/borrowed"
	"github.com/slipway-dev/slipway/internal/gatewayapi/graph"
)

// gatewayPod is a pod of a Gateway of the Gateway API. It reads HTTPRoutes, ReferenceGrants, Services and the Secrets with
// certificates: those of its own namespace, and the copies of others. It reads no GRPCRoutes, no policies and no authorities.
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

// gatewayReading is what a pod of a Gateway has read. It shares nothing with the cache.
type gatewayReading struct {
	of *gatewayPod
	// gateway is nil where there is none.
	gateway  *gatewayv1.Gateway
	routes   []*gatewayv1.HTTPRoute
	grants   []*gatewayv1.ReferenceGrant
	services []*corev1.Service
	// secrets are those of the pod's namespace that the Gateway names, and the one with the copies.
	secrets []*corev1.Secret
	// read are the versions of all of them.
	read []string
}

func (p *gatewayPod) read(ctx context.Context, reader client.Reader) (*gatewayReading, error) {
	in := &gatewayReading{of: p}
	gateways, err := get[gatewayv1.Gateway](ctx, reader, in, gatewayv1.SchemeGroupVersion.WithKind("Gateway"), p.gateway)
	if err != nil || len(gateways) == 0 {
		return in, err
	}
	in.gateway = gateways[0]
	for _, namespace := range append([]string{p.gateway.Namespace}, p.elsewhere...) {
		routes, err := list[gatewayv1.HTTPRoute](ctx, reader, in, gatewayv1.SchemeGroupVersion.WithKind("HTTPRoute"), namespace)
		if err != nil {
			return nil, err
		}
		grants, err := list[gatewayv1.ReferenceGrant](ctx, reader, in, gatewayv1.SchemeGroupVersion.WithKind("ReferenceGrant"), namespace)
		if err != nil {
			return nil, err
		}
		services, err := list[corev1.Service](ctx, reader, in, corev1.SchemeGroupVersion.WithKind("Service"), namespace)
		if err != nil {
			return nil, err
		}
		in.routes, in.grants, in.services = append(in.routes, routes...), append(in.grants, grants...), append(in.services, services...)
	}
	names := append(graph.Certificates(in.gateway), types.NamespacedName{Namespace: p.gateway.Namespace, Name: p.copies})
	for _, name := range names {
		if name.Namespace != p.gateway.Namespace {
			continue // the pod may not read it
		}
		secrets, err := get[corev1.Secret](ctx, reader, in, corev1.SchemeGroupVersion.WithKind("Secret"), name)
		if err != nil {
			return nil, err
		}
		in.secrets = append(in.secrets, secrets...)
	}
	return in, nil
}

// get reads an object, if there is one, and notes its version.
func get[T any](ctx context.Context, reader client.Reader, in *gatewayReading, kind schema.GroupVersionKind, name types.NamespacedName) ([]*T, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := reader.Get(ctx, name, object, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return typed[T](in, []unstructured.Unstructured{*object})
}

// list does the same with all objects of a namespace.
func list[T any](ctx context.Context, reader client.Reader, in *gatewayReading, kind schema.GroupVersionKind, namespace string) ([]*T, error) {
	objects := &unstructured.UnstructuredList{}
	kind.Kind += "List"
	objects.SetGroupVersionKind(kind)
	if err := reader.List(ctx, objects, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return typed[T](in, objects.Items)
}

func typed[T any](in *gatewayReading, objects []unstructured.Unstructured) ([]*T, error) {
	var made []*T
	for i := range objects {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, object); err != nil {
			return nil, err
		}
		made = append(made, object)
		in.read = append(in.read, objects[i].GetResourceVersion())
	}
	return made, nil
}

func (in *gatewayReading) versions() string {
	if in.gateway == nil {
		return "none"
	}
	slices.Sort(in.read)
	return strings.Join(in.read, " ")
}

func (in *gatewayReading) truth() (revision.Document, error) {
	document := revision.Document{Protocol: revision.Protocol, Version: "test"}
	if in.gateway == nil {
		return document, nil
	}
	built := graph.Build(in.input())
	document.UID, document.Generation = in.gateway.UID, in.gateway.Generation
	document.View = &revision.View{Current: true}
	for _, l := range built.Listeners {
		if !l.Valid {
			continue
		}
		parts := append(l.Parts(in.version, func(types.NamespacedName) string { return "" }), in.of.settings.Arguments()...)
		document.Listeners = append(document.Listeners, revision.ServedListener{
			Name: string(l.Name), Digest: revision.ListenerDigest(l.Port, l.Secure(), l.Hostname, parts),
		})
	}
	ruled := map[*graph.Route]bool{}
	for _, rule := range built.Rules {
		ruled[rule.Route] = true
	}
	for _, route := range built.Routes {
		if ruled[route] && slices.ContainsFunc(route.Parents, (*graph.Parent).Accepted) {
			document.Routes = append(document.Routes, revision.RouteDigest(route.UID, route.Generation))
		}
	}
	return document, nil
}

func (in *gatewayReading) input() graph.Input {
	made := graph.Input{
		Gateway: in.gateway, HTTPRoutes: in.routes, Grants: in.grants, ReservedPorts: []int32{desired.AdminPort},
		Namespaces: map[string]map[string]string{}, Services: map[types.NamespacedName]graph.Service{}, Secrets: map[types.NamespacedName]graph.Secret{},
	}
	for _, namespace := range append([]string{in.gateway.Namespace}, in.of.elsewhere...) {
		made.Namespaces[namespace] = map[string]string{corev1.LabelMetadataName: namespace}
	}
	for _, service := range in.services {
		ports := map[int32]graph.Port{}
		for _, port := range service.Spec.Ports {
			ports[port.Port] = graph.Port{Name: port.Name}
		}
		made.Services[client.ObjectKeyFromObject(service)] = graph.Service{External: service.Spec.Type == corev1.ServiceTypeExternalName, Ports: ports}
	}
	for _, name := range graph.Certificates(in.gateway) {
		certificate, found := in.certificate(name)
		if !found {
			continue
		}
		secret := graph.Secret{}
		if _, err := tls.X509KeyPair(certificate.Certificate, certificate.PrivateKey); err != nil {
			secret.Problem = err.Error()
		}
		made.Secrets[name] = secret
	}
	return made
}

func (in *gatewayReading) version(name types.NamespacedName) string {
	certificate, _ := in.certificate(name)
	return certificate.Version
}

// certificate returns what a Secret has, or its copy if it is in another namespace.
func (in *gatewayReading) certificate(name types.NamespacedName) (borrowed.Certificate, bool) {
	own := name.Namespace == in.gateway.Namespace
	for _, secret := range in.secrets {
		switch {
		case own && secret.Name == name.Name:
			return borrowed.Certificate{
				Certificate: secret.Data[corev1.TLSCertKey], PrivateKey: secret.Data[corev1.TLSPrivateKeyKey], Version: secret.ResourceVersion,
			}, true
		case !own && secret.Name == in.of.copies:
			return borrowed.Find(secret, name)
		}
	}
	return borrowed.Certificate{}, false
}
