//go:build apitest

package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
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
	canaries "github.com/slipway-dev/slipway/internal/testing/canary"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const (
	// canary is in every secret, and plain in what is none.
	canary = "CaNaRy7Zq"
	plain  = "PlainBird5x"
	// defined is the kind.
	defined = "canaries.birds.example.com"
)

// outlet is what came out of one place of the monitor. Where control is not found, the search was at the wrong place.
type outlet struct{ text, control string }

// defineCanaries makes a kind with a schema that declares one secret.
func defineCanaries(t *testing.T) {
	t.Helper()
	keep := true
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	spec := *open.DeepCopy()
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"login": {Type: "string", Format: "password"}}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: defined},
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
func bird(namespace, name string, n int) (*unstructured.Unstructured, map[string]any) {
	secret := fmt.Sprintf("%s-%d", canary, n)
	applied, _ := json.Marshal(map[string]any{"spec": map[string]any{"size": secret}})
	texts := map[string]any{}
	for i, form := range canaries.Forms() { // each has the canary, or what is looked for by itself
		texts[fmt.Sprint("form", i)] = form.Text
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "birds.example.com/v1", "kind": "Canary",
		"metadata": map[string]any{
			"name": name, "namespace": namespace,
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
			"texts":  texts,
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

// TestACanaryIsNowhere plants secrets in objects of a real cluster, changes and deletes one of them, and looks for them in
// everything that comes out of the monitor. In each place it must find what is no secret, too.
func TestACanaryIsNowhere(t *testing.T) {
	defineCanaries(t)
	namespace, folder := env.Namespace(t), t.TempDir()
	m := startMonitor(t, folder)
	response, err := m.open(t.Context(), "stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	stream := m.follow(response)
	rules := curious(t, namespace)
	for _, rule := range rules {
		says(t, rule, metav1.ConditionTrue, slipwayv1alpha1.ReasonEvaluating, nil)
	}
	object, _ := bird(namespace, "bird", 0)
	for _, name := range []string{"bird", "stays"} { // the state of one is in the store to the end
		environment.Eventually(t, func() error {
			first, _ := bird(namespace, name, 0)
			return env.Client.Create(t.Context(), first)
		})
		for n := range 4 {
			rewrite(t, namespace, name, n+1)
		}
	}
	for _, rule := range rules {
		if rule.Name == "canary-fails" {
			says(t, rule, metav1.ConditionFalse, slipwayv1alpha1.ReasonExpressionFailed, nil)
			continue
		}
		says(t, rule, metav1.ConditionTrue, slipwayv1alpha1.ReasonEvaluating, func(s *slipwayv1alpha1.MonitorRuleStatus) bool { return s.Firing > 1 })
	}
	environment.Eventually(t, func() error {
		for _, want := range []string{"canary-object", "canary-old", "canary-changes", "canary-health", "canary-status"} {
			if !strings.Contains(m.webhook.text(), `"rule":"`+want+`"`) {
				return fmt.Errorf("the webhook got nothing of %s", want)
			}
		}
		return nil
	})
	outlets := map[string]outlet{
		"metrics": {m.metrics(), `slipway_monitor_alarms_total{rule="canary-object"`}, "status of rules": {statuses(t, rules), plain},
		"page": {m.page("/"), "<!doctype html>"}, "script of the page": {m.page(m.script()), "api/v1/"},
	}
	of := "?kind=" + defined + "&name=bird&namespace=" + namespace
	for question, control := range map[string]string{
		"changes": plain, "kinds": defined, "health?all=true": `"reason":"NoLogin"`, "gaps": `"gaps":`, "rules": plain, "coverage": defined, "rate": `"view":`,
		"whoami": `"user":`, "definitions?name=" + defined + "&content=true": `"login"`,
		"history" + of: plain, "object" + of: plain,
	} {
		outlets["API: "+question] = outlet{m.raw(question), control}
	}
	if err := env.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		if !strings.Contains(m.webhook.text(), "ObjectDeleted") || !strings.Contains(stream.text(), `"type":"Deleted"`) {
			return fmt.Errorf("the webhook or the stream was not told of the end")
		}
		return nil
	})
	outlets["API: history after the end"] = outlet{m.raw("history" + of), plain}
	outlets["Events"] = outlet{events(t), plain}
	m.stop()
	outlets["stream"], outlets["webhook"] = outlet{stream.text(), plain}, outlet{m.webhook.text(), plain}
	outlets["headers of the webhook"], outlets["log"] = outlet{m.requests.text(), "Slipway-Signature"}, outlet{m.log.text(), namespace + "/bird"}
	outlets["files"] = outlet{canaries.Files(t, folder), "birds.example.com"}
	for part, text := range contents(t, folder) {
		outlets["store: "+part] = text
	}
	for name, o := range outlets {
		for _, form := range []string{canary, "swordfish", base64.StdEncoding.EncodeToString([]byte(canary)), "key-of-the-webhook"} {
			if at := strings.Index(o.text, form); at >= 0 {
				t.Errorf("%s: %s is in it: ...%s", name, form, o.text[max(0, at-200):min(len(o.text), at+100)])
			}
		}
		if !strings.Contains(o.text, o.control) {
			t.Errorf("%s: %q is not in it either: %.2000s", name, o.control, o.text)
		}
	}
}

// rewrite gives an object other secrets, and a status with some.
func rewrite(t *testing.T, namespace, name string, n int) {
	t.Helper()
	next, status := bird(namespace, name, n)
	now := next.DeepCopy()
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), kube.ObjectKeyFromObject(next), now); err != nil {
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

func (m *monitor) raw(question string) string {
	m.Helper()
	response, err := m.open(m.Context(), question)
	if err != nil {
		m.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return m.good(response)
}

// page returns a file of the web page.
func (m *monitor) page(path string) string {
	m.Helper()
	return m.get(m.config.Listen.API + path)
}

func (m *monitor) get(address string) string {
	m.Helper()
	response, err := http.Get("http://" + address)
	if err != nil {
		m.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return m.good(response)
}

// script is the path of the page's program.
func (m *monitor) script() string {
	m.Helper()
	found := regexp.MustCompile(`src="([^"]+[.]js)"`).FindStringSubmatch(m.page("/"))
	if found == nil {
		m.Fatal("the page has no script")
	}
	return "/" + found[1]
}

// good reads an answer, which must be a good one.
func (m *monitor) good(response *http.Response) string {
	m.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		m.Fatalf("%s: %s: %s (%v)", response.Request.URL, response.Status, body, err)
	}
	return string(body)
}

// follow takes what the stream sends until it ends.
func (m *monitor) follow(response *http.Response) *sink {
	m.Helper()
	if response.StatusCode != http.StatusOK {
		m.Fatalf("the stream is refused: %s", response.Status)
	}
	taken := &sink{}
	go func() { _, _ = io.Copy(taken, response.Body) }()
	return taken
}

func (m *monitor) metrics() string {
	m.Helper()
	return m.get(m.config.Listen.Metrics + "/metrics")
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

// contents is what the store has, unpacked.
func contents(t *testing.T, folder string) map[string]outlet {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(folder, historyFolder)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	marshal := func(value any, err error) string {
		t.Helper()
		raw, err2 := json.Marshal(value)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return string(raw)
	}
	var changes, states, values strings.Builder
	cursor := ""
	for {
		page, err := s.Changes(t.Context(), store.Query{Limit: 1000, Cursor: cursor})
		changes.WriteString(marshal(page, err))
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	kinds, err := s.Kinds(t.Context())
	all := map[string]outlet{"kinds": {marshal(kinds, err), "birds.example.com"}}
	for i := range kinds {
		for state, err := range s.StatesOf(t.Context(), kinds[i].GroupResource()) {
			states.WriteString(marshal(state, err))
			states.Write(state.Body)
			states.Write(state.Managers)
			states.Write(state.Noise)
		}
	}
	saved, err := s.Values(t.Context(), "")
	values.WriteString(marshal(saved, err))
	for _, v := range saved {
		values.Write(v.Data)
	}
	all["changes"], all["states"], all["values"] = outlet{changes.String(), plain}, outlet{states.String(), plain}, outlet{values.String(), plain}
	// Messages that were delivered are gone: the webhook has them.
	messages, _, err := s.NextMessages(t.Context(), time.Now().Add(48*time.Hour), 1000)
	all["messages"] = outlet{text: marshal(messages, err)}
	definitions, err := s.Definitions(t.Context(), defined)
	all["definitions"] = outlet{marshal(definitions, err), defined}
	return all
}
