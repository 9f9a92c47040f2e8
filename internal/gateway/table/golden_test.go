package table_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// goldenInput is one document of a corpus.
type goldenInput struct {
	Routes          []slipwayv1alpha1.Route              `json:"routes"`
	Unknown         map[int]string                       `json:"unknown"`
	HealthChecks    []slipwayv1alpha1.BackendHealthCheck `json:"healthChecks"`
	UnknownChecks   map[int]string                       `json:"unknownChecks"`
	BackendPolicies []slipwayv1alpha1.BackendPolicy      `json:"backendPolicies"`
	UnknownPolicies map[int]string                       `json:"unknownPolicies"`
	// Backends are the ports of Services, by name:port. External and Bare are the Services
	// of type ExternalName and those without ports.
	Backends map[string]struct {
		Addresses   []string `json:"addresses"`
		AppProtocol string   `json:"appProtocol"`
	} `json:"backends"`
	External   []string                     `json:"external"`
	Bare       []string                     `json:"bare"`
	Secrets    map[string]map[string]string `json:"secrets"`
	ConfigMaps map[string]map[string]string `json:"configMaps"`
	Unreadable []string                     `json:"unreadable"`
}

func (g *goldenInput) input(t *testing.T) apiroutes.Input {
	t.Helper()
	in := apiroutes.Input{
		Routes: g.Routes, Unknown: g.Unknown, HealthChecks: g.HealthChecks, UnknownChecks: g.UnknownChecks,
		BackendPolicies: g.BackendPolicies, UnknownPolicies: g.UnknownPolicies,
		Services: map[string]model.Service{}, Secrets: map[string]map[string][]byte{}, Unreadable: map[string]bool{},
		ConfigMaps: map[string]map[string][]byte{},
	}
	for key, backend := range g.Backends {
		name, number, _ := strings.Cut(key, ":")
		port, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		if in.Services[name].Ports == nil {
			in.Services[name] = model.Service{Ports: map[int32]model.ServicePort{}}
		}
		in.Services[name].Ports[int32(port)] = model.ServicePort{AppProtocol: backend.AppProtocol, Endpoints: backend.Addresses}
	}
	for _, name := range g.External {
		in.Services[name] = model.Service{External: true}
	}
	for _, name := range g.Bare {
		in.Services[name] = model.Service{}
	}
	for name, secret := range g.Secrets {
		in.Secrets[name] = map[string][]byte{}
		for key, value := range secret {
			in.Secrets[name][key] = []byte(value)
		}
	}
	for name, object := range g.ConfigMaps {
		in.ConfigMaps[name] = map[string][]byte{}
		for key, value := range object {
			in.ConfigMaps[name][key] = []byte(value)
		}
	}
	for _, name := range g.Unreadable {
		in.Unreadable[name] = true
	}
	return in
}

// The corpus has what the other tests, the documentation and the samples write. The golden
// files say what a table does with it, so a change of the compiler shows all that it changes.
func TestWhatAnAPIGatewayLeadsTo(t *testing.T) {
	files, err := filepath.Glob("testdata/apigateway/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".in.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out := &strings.Builder{}
			for i, document := range strings.Split(string(text), "\n---\n") {
				var in goldenInput
				if err := yaml.UnmarshalStrict([]byte(document), &in); err != nil {
					t.Fatalf("document %d: %v", i, err)
				}
				fmt.Fprintf(out, "=== %d\n", i)
				writeTable(out, in.input(t))
			}
			golden.Check(t, name+".out.txt", out.String())
		})
	}
}
