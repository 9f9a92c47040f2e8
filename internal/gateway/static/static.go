// Package static reads the configuration of a gateway from a file, for a gateway without
// Kubernetes. The file has an APIGateway, the addresses of its backends and its secrets.
package static

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
)

// document is the content of the file: an APIGateway, and the data that otherwise comes
// from the cluster.
type document struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   slipwayv1alpha1.APIGatewaySpec `json:"spec,omitempty"`
	Status any                            `json:"status,omitempty"` // ignored; a document that was copied from a cluster has it

	// Backends are the addresses behind a port of a Service, by "name:port".
	Backends map[string]backend `json:"backends,omitempty"`
	// Secrets are the contents of Secrets, by name and key.
	Secrets map[string]map[string]string `json:"secrets,omitempty"`
	// ConfigMaps are the contents of ConfigMaps, by name and key.
	ConfigMaps map[string]map[string]string `json:"configMaps,omitempty"`
}

// backend is the backend behind a port of a Service.
type backend struct {
	// Addresses are the endpoints, as host:port.
	Addresses []string `json:"addresses"`
	// AppProtocol is the protocol of the endpoints, as in a Service. Default: HTTP/1.1.
	AppProtocol string `json:"appProtocol,omitempty"`
}

// Config is the configuration of a gateway.
type Config struct {
	Proxy        proxy.Config
	Certificates []proxy.Certificate
	// Clients is how clients of HTTPS prove who they are. Nil: they need not.
	Clients *proxy.ClientCheck
	// Problems are the routes and health checks that do not work as the file says.
	Problems []model.Problem
}

// Parse reads the content of a file. The error names the field.
func Parse(text []byte) (*Config, error) {
	var doc document
	if err := yaml.UnmarshalStrict(text, &doc); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if want := slipwayv1alpha1.SchemeGroupVersion.String(); doc.APIVersion != want || doc.Kind != "APIGateway" {
		return nil, fmt.Errorf("want apiVersion %s and kind APIGateway, got %q and %q", want, doc.APIVersion, doc.Kind)
	}
	if len(doc.Spec.Streams) > 0 {
		return nil, errors.New("spec.streams: they are served in a cluster only")
	}
	services, err := servicesOf(doc.Backends)
	if err != nil {
		return nil, err
	}
	secrets := contentsOf(doc.Secrets)
	config := &Config{}
	if config.Proxy, err = proxy.NewConfig(&doc.Spec); err != nil {
		return nil, err
	}
	in := apigateway.Input{
		Routes: doc.Spec.Routes, HealthChecks: doc.Spec.HealthChecks, BackendPolicies: doc.Spec.BackendPolicies, Services: services, Secrets: secrets,
		ConfigMaps: contentsOf(doc.ConfigMaps),
	}
	config.Proxy.Table, config.Problems = apigateway.Compile(in)
	if doc.Spec.ClientCertificates != nil {
		if len(doc.Spec.TLS) == 0 {
			return nil, errors.New("spec.clientCertificates: without spec.tls nobody can show a certificate")
		}
		clients, f := in.Clients(doc.Spec.ClientCertificates)
		if f != nil {
			return nil, fmt.Errorf("spec.clientCertificates: %s", f.Message)
		}
		config.Clients = &proxy.ClientCheck{Identity: clients.Identity, Roots: clients.Roots, Optional: clients.Optional}
		config.Proxy.ClientHeaders = proxy.ClientHeaders{Fingerprint: clients.Fingerprint, Name: clients.Name}
	}
	config.Certificates, err = certificatesOf(doc.Spec.TLS, secrets)
	return config, err
}

// contentsOf returns the contents of Secrets or ConfigMaps.
func contentsOf(in map[string]map[string]string) map[string]map[string][]byte {
	contents := make(map[string]map[string][]byte, len(in))
	for name, data := range in {
		contents[name] = make(map[string][]byte, len(data))
		for key, value := range data {
			contents[name][key] = []byte(value)
		}
	}
	return contents
}

func servicesOf(backends map[string]backend) (map[string]model.Service, error) {
	services := map[string]model.Service{}
	for key, backend := range backends {
		name, text, _ := strings.Cut(key, ":")
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || name == "" || port == 0 {
			return nil, fmt.Errorf("backends: %q is not name:port", key)
		}
		for i, address := range backend.Addresses {
			if colon := strings.LastIndexByte(address, ':'); colon <= 0 || colon == len(address)-1 {
				return nil, fmt.Errorf("backends[%s].addresses[%d]: %q is not host:port", key, i, address)
			}
		}
		service, ok := services[name]
		if !ok {
			service.Ports = map[int32]model.ServicePort{}
		}
		service.Ports[int32(port)] = model.ServicePort{AppProtocol: backend.AppProtocol, Endpoints: backend.Addresses}
		services[name] = service
	}
	return services, nil
}

func certificatesOf(spec []slipwayv1alpha1.GatewayTLS, secrets map[string]map[string][]byte) ([]proxy.Certificate, error) {
	certificates := make([]proxy.Certificate, 0, len(spec))
	for i, in := range spec {
		secret := secrets[in.SecretRef.Name]
		if secret == nil {
			return nil, fmt.Errorf("spec.tls[%d].secretRef: there is no secret %q", i, in.SecretRef.Name)
		}
		pair, err := model.ParsePair(secret["tls.crt"], secret["tls.key"])
		if err != nil {
			return nil, fmt.Errorf("spec.tls[%d].secretRef: tls.crt and tls.key of secret %q: %w", i, in.SecretRef.Name, err)
		}
		certificate := proxy.Certificate{Certificate: pair, Secret: in.SecretRef.Name}
		for _, host := range in.Hosts {
			certificate.Hosts = append(certificate.Hosts, string(host))
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}
