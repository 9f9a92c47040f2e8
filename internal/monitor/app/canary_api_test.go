//go:build apitest

package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const (
	// canary is in every secret, and plain in what is none: where plain is not found, nothing was looked at.
	canary = "CaNaRy7Zq"
	plain  = "PlainBird5x"
)

// defineCanaries makes a kind with a schema that declares one secret.
func defineCanaries(t *testing.T) {
	t.Helper()
	keep := true
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	spec := *open.DeepCopy()
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"login": {Type: "string", Format: "password"}}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "canaries.birds.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "birds.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "canaries", Kind: "Canary"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": open},
				}},
			}},
		},
	}
	if err := env.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// bird is an object with secrets wherever there may be some.
func bird(namespace string, n int) (*unstructured.Unstructured, map[string]any) {
	secret := fmt.Sprintf("%s-%d", canary, n)
	applied, _ := json.Marshal(map[string]any{"spec": map[string]any{"size": secret}})
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "birds.example.com/v1", "kind": "Canary",
		"metadata": map[string]any{
			"name": "bird", "namespace": namespace,
			"annotations": map[string]any{
				"example.com/api-token": secret, "kubectl.kubernetes.io/last-applied-configuration": string(applied),
			},
		},
		"spec": map[string]any{
			"color": fmt.Sprintf("%s-%d", plain, n), "password": secret, "login": secret,
			"credentials": map[string]any{"user": secret}, "tokens": []any{secret},
			"env":    []any{map[string]any{"name": "DB_PASSWORD", "value": secret}},
			"args":   []any{"--db-password=" + secret},
			"config": `{"db":{"password":"` + secret + `"}}`,
			"pem":    "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----",
			"url":    "postgres://app:" + secret + "@db:5432/app",
		},
	}}
	return object, map[string]any{
		"adminPassword": secret,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "NoLogin", "message": plain + " cannot log in: password=" + secret,
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}
}

// curious are rules that tell as much of an object as they can, and fail with it.
func curious(t *testing.T, namespace string) []*slipwayv1alpha1.MonitorRule {
	base := slipwayv1alpha1.MonitorRuleSpec{
		Kinds:      []slipwayv1alpha1.MonitoredKind{{Group: "birds.example.com", Kind: "Canary"}},
		Namespaces: []string{namespace}, Outputs: &slipwayv1alpha1.MonitorOutputs{Webhooks: []string{"on-call"}},
	}
	var rules []*slipwayv1alpha1.MonitorRule
	for name, spec := range map[string][2]string{
		"canary-object":  {"true", "object.spec.color + ' ' + object.spec.password + ' ' + object.spec.login + ' ' + object.spec.args[0] + ' ' + object.spec.env[0].value + ' ' + object.spec.url + ' ' + object.metadata.annotations['example.com/api-token']"},
		"canary-old":     {"oldObject != null", "oldObject.spec.color + ' ' + oldObject.spec.password + ' ' + oldObject.spec.config + ' ' + oldObject.spec.pem"},
		"canary-changes": {"changes.size() > 0", ""},
		"canary-health":  {"health.state != 'Healthy'", ""},
		"canary-fails":   {"object.spec.color == '' || int(object.spec.password) > 1", ""},
		"canary-status":  {"has(object.status)", "object.status.conditions[0].message + ' ' + object.status.adminPassword"},
	} {
		one := *base.DeepCopy()
		one.When, one.Message = spec[0], spec[1]
		rules = append(rules, makeRule(t, name, one))
	}
	return rules
}

// TestACanaryIsNowhere plants secrets in an object of a real cluster, changes and deletes it, and looks for them in everything
// that comes out of the monitor.
func TestACanaryIsNowhere(t *testing.T) {
	defineCanaries(t)
	namespace, folder := env.Namespace(t), t.TempDir()
	m := startMonitor(t, folder)
	rules := curious(t, namespace)
	for _, rule := range rules {
		says(t, rule, metav1.ConditionTrue, slipwayv1alpha1.ReasonEvaluating, nil)
	}
	object, _ := bird(namespace, 0)
	environment.Eventually(t, func() error { return env.Client.Create(t.Context(), object.DeepCopy()) })
	write := func(n int) {
		t.Helper()
		next, status := bird(namespace, n)
		now := object.DeepCopy()
		environment.Eventually(t, func() error {
			if err := env.Client.Get(t.Context(), kube.ObjectKeyFromObject(object), now); err != nil {
				return err
			}
			next.SetResourceVersion(now.GetResourceVersion())
			return env.Client.Update(t.Context(), next)
		})
		next.Object["status"] = status
		if err := env.Client.Status().Update(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		write(n + 1)
	}
	for _, rule := range rules {
		says(t, rule, metav1.ConditionTrue, slipwayv1alpha1.ReasonEvaluating, func(s *slipwayv1alpha1.MonitorRuleStatus) bool {
			return s.Firing > 0 || rule.Name == "canary-fails" && len(s.Conditions) == 2
		})
	}
	environment.Eventually(t, func() error {
		for _, want := range []string{"canary-object", "canary-old", "canary-changes", "canary-health", "canary-status"} {
			if !strings.Contains(m.webhook.text(), `"rule":"`+want+`"`) {
				return fmt.Errorf("the webhook got nothing of %s", want)
			}
		}
		return nil
	})
	sinks := map[string]string{"metrics": m.metrics(), "status of rules": statuses(t, rules)}
	for _, question := range []string{
		"changes", "kinds", "health?all=true", "gaps", "rules", "coverage", "rate", "whoami", "definitions?name=canaries.birds.example.com&content=true",
		"history?kind=canaries.birds.example.com&name=bird&namespace=" + namespace, "object?kind=canaries.birds.example.com&name=bird&namespace=" + namespace,
		"tree?kind=canaries.birds.example.com&name=bird&namespace=" + namespace,
	} {
		sinks["API: "+question] = m.raw(question)
	}
	if err := env.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		if !strings.Contains(m.webhook.text(), "ObjectDeleted") {
			return fmt.Errorf("the webhook was not told of the end")
		}
		return nil
	})
	sinks["API: history after the end"] = m.raw("history?kind=canaries.birds.example.com&name=bird&namespace=" + namespace)
	sinks["Events"] = events(t)
	m.stop()
	sinks["webhook"], sinks["headers of the webhook"], sinks["log"] = m.webhook.text(), m.requests.text(), m.log.text()
	sinks["files"], sinks["store"] = files(t, folder), contents(t, folder)
	for name, text := range sinks {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), "key-of-the-webhook"} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s: %s is in it: ...%s", name, form, text[max(0, at-200):min(len(text), at+100)])
			}
		}
		if text == "" {
			t.Errorf("%s: there is nothing in it", name)
		}
	}
	for _, name := range []string{"webhook", "Events", "store", "status of rules", "API: changes", "API: rules", "API: history after the end"} {
		if !strings.Contains(sinks[name], plain) {
			t.Errorf("%s: what is no secret is not in it either: %.2000s", name, sinks[name])
		}
	}
}

func (m *monitor) raw(path string) string {
	m.Helper()
	response, err := m.open(m.Context(), path)
	if err != nil {
		m.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		m.Fatal(err)
	}
	return string(body)
}

func (m *monitor) metrics() string {
	m.Helper()
	response, err := http.Get("http://" + m.config.Listen.Metrics + "/metrics")
	if err != nil {
		m.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), `slipway_monitor_alarms_total{rule="canary-object"`) {
		m.Fatalf("the metrics are %.3000s (%v)", body, err)
	}
	return string(body)
}

func statuses(t *testing.T, rules []*slipwayv1alpha1.MonitorRule) string {
	t.Helper()
	text := ""
	for _, rule := range rules {
		raw, err := json.Marshal(rule.Status)
		if err != nil {
			t.Fatal(err)
		}
		text += string(raw)
	}
	return text
}

func events(t *testing.T) string {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := env.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// files are all files as they are on the disk.
func files(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// contents is what the store has, unpacked.
func contents(t *testing.T, folder string) string {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(folder, historyFolder)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var all strings.Builder
	add := func(value any, err error) {
		t.Helper()
		raw, err2 := json.Marshal(value)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		all.Write(raw)
	}
	cursor := ""
	for {
		page, err := s.Changes(t.Context(), store.Query{Limit: 1000, Cursor: cursor})
		add(page, err)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	kinds, err := s.Kinds(t.Context())
	add(kinds, err)
	for i := range kinds {
		for state, err := range s.StatesOf(t.Context(), kinds[i].GroupResource()) {
			add(state, err)
			all.Write(state.Body)
			all.Write(state.Managers)
			all.Write(state.Noise)
		}
	}
	values, err := s.Values(t.Context(), "")
	add(values, err)
	for _, v := range values {
		all.Write(v.Data)
	}
	messages, _, err := s.NextMessages(t.Context(), time.Now().Add(48*time.Hour), 1000)
	add(messages, err)
	definitions, err := s.Definitions(t.Context(), "canaries.birds.example.com")
	add(definitions, err)
	return all.String()
}
