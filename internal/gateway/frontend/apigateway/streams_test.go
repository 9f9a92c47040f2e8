package apigateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

func streams(t *testing.T, text string) []slipwayv1alpha1.Stream {
	t.Helper()
	var list []slipwayv1alpha1.Stream
	if err := yaml.UnmarshalStrict([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestStreamsThatCannotBeServed(t *testing.T) {
	tests := map[string]struct{ streams, says string }{
		"the port of HTTP":              {`[{name: a, port: 80, protocol: TCP, backends: &b [{name: db, port: 5432}]}]`, "PortConflict: port: 80 is for HTTP"},
		"the port of HTTPS":             {`[{name: a, port: 443, protocol: TLS, backends: &b [{name: db, port: 5432}]}]`, "PortConflict: port: 443 is for HTTPS"},
		"the admin port":                {`[{name: a, port: 8081, protocol: TCP, backends: &b [{name: db, port: 5432}]}]`, "PortConflict: port: 8081 is for the admin port"},
		"the port between replicas":     {`[{name: a, port: 15022, protocol: TCP, backends: &b [{name: db, port: 5432}]}]`, "PortConflict: port: 15022 is for rate limits that the pods share"},
		"two with one port":             {`[{name: a, port: 5432, protocol: TCP, backends: &b [{name: db, port: 5432}]}, {name: b, port: 5432, protocol: TCP, backends: *b}]`, "PortConflict: port: an earlier stream has port 5432"},
		"TCP and TLS":                   {`[{name: a, port: 5432, protocol: TLS, backends: &b [{name: db, port: 5432}]}, {name: b, port: 5432, protocol: TCP, backends: *b}]`, "PortConflict: port: an earlier stream has port 5432"},
		"one host name twice":           {`[{name: a, port: 5432, protocol: TLS, hostnames: [a.test], backends: &b [{name: db, port: 5432}]}, {name: b, port: 5432, protocol: TLS, hostnames: [b.test, a.test], backends: *b}]`, `PortConflict: hostnames: the earlier stream "a" has port 5432 and the host name "a.test"`},
		"any host name twice":           {`[{name: a, port: 5432, protocol: TLS, backends: &b [{name: db, port: 5432}]}, {name: b, port: 5432, protocol: TLS, backends: *b}]`, `PortConflict: hostnames`},
		"one name twice":                {`[{name: a, port: 1, protocol: TCP, backends: &b [{name: db, port: 5432}]}, {name: a, port: 2, protocol: TCP, backends: *b}]`, "DuplicateName"},
		"the name of another port":      {`[{name: https, port: 1, protocol: TCP, backends: [{name: db, port: 5432}]}]`, "InvalidStream: name"},
		"host names of TCP":             {`[{name: a, port: 1, protocol: TCP, hostnames: [a.test], backends: [{name: db, port: 5432}]}]`, "InvalidStream: hostnames, tlsMode and certificateRefs need protocol TLS"},
		"a host name that is none":      {`[{name: a, port: 1, protocol: UDP, backends: [{name: db, port: 5432}]}]`, "InvalidStream: protocol"},
		"no certificate":                {`[{name: a, port: 1, protocol: TLS, tlsMode: Terminate, backends: [{name: db, port: 5432}]}]`, "InvalidStream: certificateRefs: tlsMode Terminate needs one"},
		"a certificate for passthrough": {`[{name: a, port: 1, protocol: TLS, certificateRefs: [{name: a}], backends: [{name: db, port: 5432}]}]`, "InvalidStream: certificateRefs: they need"},
		"no backend":                    {`[{name: a, port: 1, protocol: TCP, backends: []}]`, "InvalidStream: backends"},
		"an address that is none":       {`[{name: a, port: 1, protocol: TCP, clientAddresses: {allow: [x]}, backends: [{name: db, port: 5432}]}]`, "InvalidStream: clientAddresses"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := apigateway.Input{Streams: streams(t, tc.streams), Services: map[string]model.Service{"db": {Ports: map[int32]model.ServicePort{5432: {Endpoints: []string{"10.0.0.1:1"}}}}}}
			_, problems := apigateway.Compile(in)
			if len(problems) != 1 || problems[0].List != "streams" || !strings.Contains(problems[0].Reason+": "+problems[0].Message, tc.says) {
				t.Errorf("problems: %+v, want %s", problems, tc.says)
			}
			if got := len(in.StreamListeners()); got != len(in.Streams)-1 {
				t.Errorf("%d of %d streams are served", got, len(in.Streams))
			}
		})
	}
}

// A stream serves its own port and names, and is no way to the routes.
func TestWhereConnectionsOfStreamsGo(t *testing.T) {
	in := apigateway.Input{
		Streams: streams(t, `
- {name: db, port: 5432, protocol: TCP, backends: [{name: db, port: 5432}]}
- {name: a, port: 6443, protocol: TLS, hostnames: [a.test, "*.b.test"], backends: [{name: db, port: 5432}]}
- {name: ended, port: 6443, protocol: TLS, hostnames: [c.test], tlsMode: Terminate, certificateRefs: [{name: c}], backends: [{name: db, port: 5432}]}
- {name: any, port: 7443, protocol: TLS, backends: [{name: none, port: 1}]}
- {name: later, port: 7000, protocol: TCP, backends: [{name: db, port: 5432}]}`),
		UnknownStreams: map[int]string{4: "proxyProtocol"},
		Services:       map[string]model.Service{"db": {Ports: map[int32]model.ServicePort{5432: {Endpoints: []string{"10.0.0.1:1"}}}}},
	}
	unmarshal(t, `[{name: web, directResponse: {statusCode: 200}}]`, &in.Routes)
	unmarshal(t, `[{name: db, port: 5432, maxConnections: 7, tls: {hostname: db.internal}}]`, &in.BackendPolicies)
	in.HealthChecks = []slipwayv1alpha1.BackendHealthCheck{{Name: "db", Port: 5432}}
	compiled, problems := apigateway.Compile(in)
	var said []string
	for _, p := range problems {
		said = append(said, fmt.Sprintf("%d %s[%s] %s", p.Index, p.List, p.Route, p.Reason))
	}
	if diff := cmp.Diff([]string{"-1 streams[later] ImageIncompatible", "-1 streams[any] BackendNotFound"}, said); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		port   int32
		secure bool
		name   string
		goes   string
	}{
		{5432, false, "", "TCP stream:db"},
		{6443, true, "a.test", "TLS stream:a"},
		{6443, true, "x.y.b.test", "TLS stream:a"},
		{6443, true, "c.test", "TCP stream:ended"},
		{6443, true, "d.test", "TLS nowhere"},
		{6443, true, "", "TLS nowhere"},
		{7443, true, "d.test", "TLS stream:any"},
		{7000, false, "", "no listener"},
	} {
		transport, route, found := compiled.Stream(tc.port, tc.secure, false, tc.name)
		got := "no listener"
		if found {
			got = string(transport) + " nowhere"
			if route != nil {
				got = string(transport) + " " + route.Name
			}
		}
		if got != tc.goes {
			t.Errorf("%d %q goes to %s, want %s", tc.port, tc.name, got, tc.goes)
		}
	}
	for _, b := range compiled.Backends {
		if b.Service != "db" {
			continue
		}
		if secure := b.Transport == model.TransportTCP; (b.TLS != nil) != secure || b.HealthCheck != nil || b.Limits.Connections != 7 {
			t.Errorf("%s: TLS %v, check %v, limits %+v", b.ID, b.TLS, b.HealthCheck, b.Limits)
		}
	}
}
