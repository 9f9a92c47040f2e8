package static

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

const head = "apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {name: edge}\n"

func TestParse(t *testing.T) {
	config, err := Parse([]byte(head + `
spec:
  trustedProxies: [10.0.0.0/8]
  accessLog: {samplePercent: 5}
  healthChecks:
    - {name: user-service, port: 8080, path: /healthz}
    - {name: user-service, port: 9090, path: healthz}
  routes:
    - {host: api.example.com, path: /users/, backendService: {name: user-service, port: 8080}}
    - {host: api.example.com, path: /grpc/, backendService: {name: user-service, port: 9090}}
    - {host: gone.example.com, backendService: {name: gone, port: 80}}
backends:
  user-service:8080: {addresses: ["127.0.0.1:9001", "[::1]:9001"]}
  user-service:9090: {addresses: ["localhost:9002"], appProtocol: kubernetes.io/h2c}
`))
	if err != nil {
		t.Fatal(err)
	}
	backends := map[string]*model.Backend{}
	for _, backend := range config.Proxy.Table.Backends {
		backends[backend.ID] = backend
	}
	if got := backends["user-service:8080"]; got == nil || strings.Join(got.Endpoints, " ") != "127.0.0.1:9001 [::1]:9001" || got.Protocol != model.ProtocolHTTP1 || got.HealthCheck == nil || got.HealthCheck.Path != "/healthz" {
		t.Errorf("got %+v", got)
	}
	if got := backends["user-service:9090"]; got == nil || got.Protocol != model.ProtocolH2C || got.HealthCheck != nil {
		t.Errorf("got %+v", got)
	}
	if len(config.Problems) != 2 || config.Problems[0].Reason != "BackendNotFound" || config.Problems[1].Route != "user-service:9090" {
		t.Errorf("got problems %v", config.Problems)
	}
	if config.Proxy.LogPercent != 5 || len(config.Proxy.TrustedProxies) != 1 {
		t.Errorf("got %+v", config.Proxy)
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                                       "read the document",
		"kind: APIGateway":                           "want apiVersion slipway.dev/v1alpha1",
		head + "spec: {routs: []}":                   "routs",
		head + "backends: {a: {}}":                   `"a" is not name:port`,
		head + `backends: {"a:0": {}}`:               `"a:0" is not name:port`,
		head + `backends: {"a:99999": {}}`:           `"a:99999" is not name:port`,
		head + `backends: {"a:1": {addresses: [b]}}`: `backends[a:1].addresses[0]: "b" is not host:port`,
		head + "spec: {trustedProxies: [10.0.0.1]}":  "spec.trustedProxies[0]",
		head + "spec: {clientCertificates: {caCertificates: [{name: x}]}}\nconfigMaps: {x: {ca.crt: a}}": "spec.clientCertificates: without spec.tls",
		head + "spec: {tls: [{secretRef: {name: x}}]}":                                                   `there is no secret "x"`,
		head + "spec: {tls: [{secretRef: {name: x}}]}\nsecrets: {x: {tls.crt: a, tls.key: KEY}}":         "tls.crt and tls.key",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "KEY") {
			t.Errorf("a secret is in %v", err)
		}
	}
}

func TestFollowAppliesChangesAndKeepsWhatWorked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(text string) {
		t.Helper()
		// The file is renamed into place, so that no reader sees half a file.
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	document := func(routes int) string {
		return head + "spec: {routes: [" + strings.Repeat("{directResponse: {statusCode: 200}},", routes) + "]}\n...\n"
	}
	clock := testingclock.NewFakeClock(time.Now())
	applied, failed := make(chan int), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	apply := func(config *Config) error {
		applied <- len(config.Proxy.Table.Routes)
		return nil
	}
	if err := Follow(ctx, clock, path, apply, nil, nil); err == nil {
		t.Error("a missing file is no error")
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	write(document(1))
	wait.Go(func() {
		if err := Follow(ctx, clock, path, apply, func(err error) { failed <- err }, nil); err != nil {
			t.Error(err)
		}
	})
	next := func() (int, error) {
		t.Helper()
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		deadline := time.After(10 * time.Second)
		for {
			select {
			case routes := <-applied:
				return routes, nil
			case err := <-failed:
				return 0, err
			case <-ticks.C:
				clock.Step(time.Second)
			case <-deadline:
				t.Fatal("nothing happened for 10 s")
			}
		}
	}
	for _, step := range []struct {
		text   string
		routes int
		fails  bool
	}{
		{text: document(1), routes: 1},
		{text: document(3), routes: 3},
		{text: "nonsense", fails: true},
		{text: document(2), routes: 2},
	} {
		write(step.text)
		routes, err := next()
		if routes != step.routes || (err != nil) != step.fails {
			t.Errorf("%s: got %d routes, error %v", step.text, routes, err)
		}
	}
}

// The file that makes the gateway panic is refused like one that is wrong.
func TestAPanicOfReadingTheFileIsAnError(t *testing.T) {
	var told string
	f := &follower{
		parse:  func([]byte) (*Config, error) { panic("a defect") },
		apply:  func(*Config) error { t.Error("it is applied"); return nil },
		panics: func(what string, _ any, _ []byte) { told = what },
	}
	if err := f.take([]byte("{}")); !errors.Is(err, panics.ErrPanicked) || told != "read the configuration" {
		t.Errorf("got %v, told of %q", err, told)
	}
}
