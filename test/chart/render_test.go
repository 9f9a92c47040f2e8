//go:build helm

package chart

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// valueSets are the files in testdata/values.
func valueSets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sets of values (%v)", err)
	}
	return files
}

func TestLint(t *testing.T) {
	for _, file := range valueSets(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if output, err := helm(t.Context(), "lint", "--strict", chartFolder, "-f", file); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// The definitions are compared with config in TestTheDefaultIsInstallYAML.
func TestGolden(t *testing.T) {
	for _, file := range valueSets(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			golden := filepath.Join("testdata", "golden", filepath.Base(file))
			got := render(t, "slipway-system", "-f", file, "--set", "crds.install=false")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(readFile(t, golden), got); diff != "" {
				t.Errorf("-want +got (go test -tags helm ./test/chart -update rewrites it):\n%s", diff)
			}
		})
	}
}

// Objects come from config, which names the namespace of install.yaml. A name of it that stays
// points at nothing, or at another release.
func TestNothingNamesAnotherNamespaceThanTheReleases(t *testing.T) {
	for _, file := range valueSets(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			for line := range strings.Lines(render(t, "elsewhere", "-f", file)) {
				if strings.Contains(line, "slipway-system") {
					t.Errorf("helm template -n elsewhere has %q", strings.TrimSpace(line))
				}
			}
		})
	}
}

// The API server has to find the Service, wherever the release is.
func TestTheWebhookPointsAtItsService(t *testing.T) {
	objects := parse(t, render(t, "elsewhere"))
	named(t, objects, "Service", "elsewhere", "slipway-webhook")
	configuration := as[admissionregistrationv1.ValidatingWebhookConfiguration](t, named(t, objects, "ValidatingWebhookConfiguration", "", "slipway.dev"))
	if len(configuration.Webhooks) == 0 {
		t.Error("there is no webhook")
	}
	for _, webhook := range configuration.Webhooks {
		service := webhook.ClientConfig.Service
		if service.Namespace != "elsewhere" || service.Name != "slipway-webhook" {
			t.Errorf("%s asks %s/%s", webhook.Name, service.Namespace, service.Name)
		}
	}
}

// The API server would ask an operator that does not serve the webhook.
func TestAWebhookIsThereForTheKindsThatAreOn(t *testing.T) {
	for set, want := range map[string][]string{
		"gateway.enabled=true":  {"apigateways.slipway.dev", "backups.slipway.dev"},
		"gateway.enabled=false": {"backups.slipway.dev"},
		"backup.enabled=false":  {"apigateways.slipway.dev"},
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			objects := parse(t, render(t, "slipway-system", "--set", set))
			configuration := as[admissionregistrationv1.ValidatingWebhookConfiguration](t, named(t, objects, "ValidatingWebhookConfiguration", "", "slipway.dev"))
			var got []string
			for _, webhook := range configuration.Webhooks {
				got = append(got, webhook.Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	neither := parse(t, render(t, "slipway-system", "--set", "gateway.enabled=false", "--set", "backup.enabled=false"))
	if hooks := ofKind(neither, "ValidatingWebhookConfiguration"); len(hooks) > 0 {
		t.Errorf("there is a webhook, and no kind for it: %v", hooks)
	}
}

func TestWhatContradictsItselfIsRefused(t *testing.T) {
	tests := map[string]struct {
		set  []string
		want string
	}{
		"a value that is none":                        {[]string{"replica=2"}, "additional properties 'replica' not allowed"},
		"a value that is none, further down":          {[]string{"gateway.enable=false"}, "additional properties 'enable' not allowed"},
		"text for a number":                           {[]string{"replicas=two"}, "got string, want integer"},
		"a namespace that cannot be":                  {[]string{"namespaces={team_a}"}, "/namespaces/0"},
		"several namespaces in one word":              {[]string{`namespaces={a\,b}`}, "/namespaces/0"},
		"every namespace, as an empty name":           {[]string{`namespaces[0]=`}, "/namespaces/0"},
		"a namespace twice":                           {[]string{"namespaces={a,a}"}, "items at 0 and 1 are equal"},
		"an image with an option in its name":         {[]string{"images.operator.tag=v1 --x"}, "/images/operator/tag"},
		"a digest that is too short":                  {[]string{"images.gateway.digest=sha256:00"}, "/images/gateway/digest"},
		"a webhook without rights in the cluster":     {[]string{"namespaces={a}", "webhook.enabled=true"}, "webhook.enabled: an install that is limited"},
		"a monitor without rights in the cluster":     {[]string{"namespaces={a}", "monitor.enabled=true"}, "monitor.enabled: an install that is limited"},
		"patterns of a monitor that is off":           {[]string{"monitor.enabled=false", "monitor.include={a.b}"}, "monitor.include: there is no monitor"},
		"a configuration of a monitor that cannot be": {[]string{"namespaces={a}", "monitor.config.kinds.max=1"}, "monitor.config: there is no monitor"},
		"a monitor that reads Secrets":                {[]string{"monitor.builtin={secrets}"}, "monitor.builtin: the monitor reads no Secrets"},
		"every built-in kind":                         {[]string{"monitor.builtin={*}"}, "/monitor/builtin/0"},
		"a pattern that is none":                      {[]string{"monitor.include={A b}"}, "/monitor/include/0"},
		"a size that is none":                         {[]string{"monitor.storage.size=big"}, "/monitor/storage/size"},
		"a certificate for nothing":                   {[]string{"metrics.authentication=false", "metrics.certificateSecret=a"}, "nothing is served with it"},
		"a webhook of kinds that are off":             {[]string{"gateway.enabled=false", "backup.enabled=false", "webhook.enabled=true"}, "webhook.enabled: gateway.enabled and backup.enabled are false"},
		"the Gateway API without gateways":            {[]string{"gateway.enabled=false", "gatewayAPI.install=true"}, "gatewayAPI.install: gateway.enabled is false"},
		"the Gateway API without a look at a cluster": {[]string{"gatewayAPI.install=true"}, "gatewayAPI.install: Helm does not look at a cluster"},
		"a channel that is none":                      {[]string{"gatewayAPI.channel=beta"}, "/gatewayAPI/channel"},
		"no classes with rights in the cluster":       {[]string{"gateway.classes=false"}, "gateway.classes: namespaces is empty"},
		"hooks of backups that are off":               {[]string{"backup.enabled=false", "backup.hooks.enabled=true"}, "backup.hooks.enabled: backup.enabled is false"},
		"peers of policies that are not made":         {[]string{"networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b"}, "networkPolicy.metricsFrom: networkPolicy.enabled is false"},
		"clients of policies that are not made":       {[]string{"networkPolicy.clientsFrom[0].ipBlock.cidr=10.0.0.0/8"}, "networkPolicy.clientsFrom: networkPolicy.enabled is false"},
		"namespaces of policies that are not made":    {[]string{"networkPolicy.gatewayNamespaces={a}"}, "networkPolicy.gatewayNamespaces: networkPolicy.enabled is false"},
		"clients of gateways that there are not":      {[]string{"networkPolicy.enabled=true", "gateway.enabled=false", "networkPolicy.clientsFrom[0].ipBlock.cidr=10.0.0.0/8"}, "networkPolicy.clientsFrom: gateway.enabled is false"},
		"namespaces of gateways that there are not":   {[]string{"networkPolicy.enabled=true", "gateway.enabled=false", "networkPolicy.gatewayNamespaces={a}"}, "networkPolicy.gatewayNamespaces: gateway.enabled is false"},
		"a peer that lets in everybody":               {[]string{"networkPolicy.metricsFrom[0]=null"}, "/networkPolicy/metricsFrom/0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"template", "slipway", chartFolder}
			for _, set := range tc.set {
				args = append(args, "--set", set)
			}
			output, err := helm(t.Context(), args...)
			if err == nil || !strings.Contains(output, tc.want) {
				t.Errorf("error %v, want one with %q:\n%s", err, tc.want, output[:min(len(output), 500)])
			}
		})
	}
}

// Helm takes null for: as if the value were not there. What is a map or a list may be none.
func TestAMapOrAListMayBeNull(t *testing.T) {
	whole := render(t, "ops")
	for _, name := range []string{
		"resources", "namespaces", "podLabels", "podAnnotations", "nodeSelector", "tolerations", "images.pullSecrets",
		"networkPolicy.metricsFrom", "networkPolicy.clientsFrom", "networkPolicy.gatewayNamespaces",
		"monitor.include", "monitor.exclude", "monitor.builtin", "monitor.config", "monitor.resources",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(whole, render(t, "ops", "--set", name+"=null")); diff != "" {
				t.Errorf("-default +null:\n%s", diff)
			}
		})
	}
}

// A value without a comment, or without a schema, is one that nobody can use.
func TestEveryValueHasACommentAndASchema(t *testing.T) {
	text := readFile(t, chartFolder, "values.yaml")
	key := regexp.MustCompile(`^ *[a-zA-Z]+:`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if key.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(lines[i-1]), "# ") {
			t.Errorf("values.yaml:%d has no comment above it: %s", i+1, line)
		}
	}
	var values, schema map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(readFile(t, chartFolder, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	hasSchema(t, "", values, schema, schema["definitions"].(map[string]any))
}

// hasSchema checks that each value has a schema, and that each schema with values has one.
func hasSchema(t *testing.T, path string, values, schema, definitions map[string]any) {
	t.Helper()
	if name, ok := schema["$ref"].(string); ok {
		schema = definitions[strings.TrimPrefix(name, "#/definitions/")].(map[string]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	if properties != nil && schema["additionalProperties"] != false {
		t.Errorf("the schema of %q lets pass values that do not exist", path)
	}
	for name, value := range values {
		property, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("%s.%s has no schema", path, name)
			continue
		}
		if below, ok := value.(map[string]any); ok && len(below) > 0 {
			hasSchema(t, path+"."+name, below, property, definitions)
		}
	}
	for name := range properties {
		if _, ok := values[name]; !ok && name != "global" { // Helm's own
			t.Errorf("%s.%s has a schema and is not in values.yaml", path, name)
		}
	}
}

func TestTheNotesGiveTheNextCommand(t *testing.T) {
	output, err := helm(t.Context(), "install", "slipway", chartFolder, "-n", "ops", "--dry-run=client", "--set", "namespaces={team-a,team-b}")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	_, notes, _ := strings.Cut(output, "\nNOTES:\n")
	for _, want := range []string{
		"kubectl rollout status deployment/slipway-operator -n ops\n",
		"kubectl apply -n team-a -f - <<'YAML'\n",
		"kubectl get slipway -n team-a\n",
		"for the namespaces team-a, team-b only",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}
