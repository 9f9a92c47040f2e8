package environment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// FreePort returns a port that nobody listens at. It is below those that the system gives
// to connections, which would take it at any time.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// Webhooks installs what config/webhook says, for a namespace, and others, and an operator that serves
// webhooks at this port of this machine.
func (e *Environment) Webhooks(t testing.TB, namespace string, port int, others ...string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(), "config", "webhook", "configuration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(raw, configuration); err != nil {
		t.Fatal(err)
	}
	for i := range configuration.Webhooks {
		hook := &configuration.Webhooks[i]
		url := fmt.Sprintf("https://127.0.0.1:%d%s", port, *hook.ClientConfig.Service.Path)
		hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url}
		var conditions []string
		for _, of := range append([]string{namespace}, others...) {
			conditions = append(conditions, fmt.Sprintf("request.namespace == %q", of))
		}
		hook.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "test", Expression: strings.Join(conditions, " || ")}}
	}
	if err := e.Client.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Client.Delete(context.Background(), configuration); err != nil {
			t.Error(err)
		}
	})
}
