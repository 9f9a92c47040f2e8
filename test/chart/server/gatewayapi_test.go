//go:build chart

package server

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	yamldecoder "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	suffix        = ".gateway.networking.k8s.io"
	bundleVersion = "gateway.networking.k8s.io/bundle-version"
	// installGatewayAPI is the value that has the chart install the Gateway API.
	installGatewayAPI = "gatewayAPI.install=true"
)

// kubectl runs kubectl with a manifest, as somebody who is not Helm.
func (w *world) kubectl(manifest string, args ...string) {
	w.Helper()
	command := exec.CommandContext(w.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(args, "-f", "-")...)
	command.Stdin = strings.NewReader(manifest)
	if output, err := command.CombinedOutput(); err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// olderChart is the chart with an older version of the Gateway API, in which Gateways have no short name.
func olderChart(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "slipway")
	if err := os.CopyFS(folder, os.DirFS(chartFolder)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "charts", "gateway-api", "files", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the chart has no definitions of the Gateway API (%v)", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		version := lineWith(t, string(raw), bundleVersion)
		text := strings.Replace(string(raw), version, "    "+bundleVersion+": v1.5.9\n", 1)
		text = strings.Replace(text, "    shortNames:\n    - gtw\n", "", 1)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func lineWith(t *testing.T, text, part string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	t.Fatalf("nothing says %s", part)
	return ""
}

// from are the arguments for a chart that installs the Gateway API.
func from(chart, command string, more ...string) []string {
	return append([]string{command, "slipway", chart, "--set", "replicas=2", "--set", installGatewayAPI}, more...)
}

// What is there is left alone, whatever happens to the release. What the release has installed is replaced by what is newer, and by
// nothing else.
func TestTheGatewayAPIIsInstalledWhereItIsAbsentAndNeverTakenAway(t *testing.T) {
	w := begin(t)
	theirs := w.shipped("standard")["httproutes"+suffix]
	theirs.Annotations[bundleVersion] = "v1.2.1"
	text, err := yaml.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl(string(text), "apply", "--server-side")
	foreign := w.gatewayCRDs()

	w.mustHelm(from(olderChart(t), "install", "--create-namespace")...)
	w.unchanged("the installation", foreign, without(w.shipped("standard"), "httproutes")...)
	w.everyOneIs("v1.5.9", "httproutes")
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/any"}}
	environment.Eventually(t, func() error { return client.IgnoreAlreadyExists(w.Create(t.Context(), class)) })
	older := w.gatewayCRDs()
	w.mustHelm("upgrade", "slipway", chartFolder, "--set", "replicas=2")
	w.unchanged("an upgrade without the value", older)

	w.mustHelm(from(chartFolder, "upgrade")...)
	w.unchanged("the upgrade", map[string]string{"httproutes" + suffix: foreign["httproutes"+suffix]}, without(w.shipped("standard"), "httproutes")...)
	for name, crd := range w.shipped("standard") {
		if name != theirs.Name {
			w.isShipped(crd)
		}
	}
	w.storedSizeIsBelow(768 << 10)

	// Somebody has put a newer one in its place, and somebody has replaced another one, with what Helm had written on it.
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"v9.0.0"}}}`, bundleVersion))
	if err := w.Patch(t.Context(), w.reference("gateways"), patch); err != nil {
		t.Fatal(err)
	}
	replaced, err := yaml.Marshal(w.shipped("standard")["grpcroutes"+suffix])
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl(string(replaced), "replace")
	before := w.gatewayCRDs()
	w.mustHelm(from(chartFolder, "upgrade", "--set", "podLabels.try=this")...)
	w.unchanged("an upgrade with nothing newer", before)
	w.mustHelm("rollback", "slipway", "1", "--force-conflicts")
	w.unchanged("a rollback to the older chart", before)
	w.mustHelm("uninstall", "slipway")
	w.unchanged("the uninstallation", before)
	w.mustHelm("install", "another", chartFolder, "--set", installGatewayAPI, "--take-ownership")
	w.unchanged("the installation of another release", before)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
		t.Errorf("the GatewayClass: %v", err)
	}
}

// without are the names of definitions, as they are before the group, but one.
func without(all map[string]*apiextensionsv1.CustomResourceDefinition, but string) []string {
	var names []string
	for name := range all {
		if short, _, _ := strings.Cut(name, "."); short != but {
			names = append(names, short)
		}
	}
	return names
}

// everyOneIs checks the version of all definitions but one, and that every kind of the standard channel is there.
func (w *world) everyOneIs(version, but string) {
	w.Helper()
	for name := range w.shipped("standard") {
		if got := w.getCRD(name).Annotations[bundleVersion]; got != version && name != but+suffix {
			w.Errorf("%s is of %s, want %s", name, got, version)
		}
	}
}

// storedSizeIsBelow checks what Helm stores of the release: the API server takes no Secret of more than 1 MiB.
func (w *world) storedSizeIsBelow(most int) {
	w.Helper()
	secrets := &corev1.SecretList{}
	if err := w.List(w.Context(), secrets, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		w.Fatal(err)
	}
	if len(secrets.Items) == 0 {
		w.Error("Helm has stored nothing")
	}
	for i := range secrets.Items {
		size := len(secrets.Items[i].Data["release"])
		w.Logf("%s has %d bytes", secrets.Items[i].Name, size)
		if size > most {
			w.Errorf("%s has %d bytes, want at most %d", secrets.Items[i].Name, size, most)
		}
	}
}

// The policy that comes with the Gateway API decides, where somebody has installed it. A step back to fewer fields is not made.
func TestTheChannelOfTheGatewayAPIOnlyChangesToTheOneWithMore(t *testing.T) {
	w := begin(t)
	w.matchesGolden("gateway-api-standard.yaml", "standard")
	w.matchesGolden("gateway-api-experimental.yaml", "experimental")
	policy, err := os.ReadFile(filepath.Join(moduleFolder(t), "standard", "gateway.networking.k8s.io_vap_safeupgrades.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl(string(policy), "apply", "--server-side")
	w.mustHelm(from(chartFolder, "install", "--create-namespace")...)
	standard := w.gatewayCRDs()
	experimental := from(chartFolder, "upgrade", "--set", "gatewayAPI.channel=experimental")
	environment.Eventually(t, func() error {
		crd := w.reference("gateways")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"gateway.networking.k8s.io/channel":"experimental"}}}`))
		if err := w.Patch(t.Context(), crd, patch, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "is prohibited by default") {
			return fmt.Errorf("the policy is not in force: %w", err)
		}
		return nil
	})
	if output, err := w.helm(experimental...); err == nil || !strings.Contains(output, "is prohibited by default") {
		t.Errorf("helm upgrade: error %v, want that of the policy\n%s", err, output)
	}
	w.unchanged("the refused upgrade", standard)

	w.kubectl(string(policy), "delete")
	environment.Eventually(t, func() error {
		output, err := w.helm(experimental...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
	for _, crd := range w.shipped("experimental") {
		w.isShipped(crd)
	}
	w.storedSizeIsBelow(768 << 10)
	before := w.gatewayCRDs()
	w.mustHelm(from(chartFolder, "upgrade")...)
	w.unchanged("the step back", before)
}

// matchesGolden compares the metadata of what the chart would install into an empty cluster.
func (w *world) matchesGolden(name, channel string) {
	w.Helper()
	output, err := w.helm("template", "slipway", chartFolder, "--dry-run=server", "--set", installGatewayAPI, "--set", "gatewayAPI.channel="+channel)
	if err != nil {
		w.Fatalf("%v\n%s", err, output)
	}
	var got strings.Builder
	decoder := yamldecoder.NewYAMLOrJSONDecoder(strings.NewReader(output), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			w.Fatal(err)
		}
		if !strings.Contains(object.GetName(), ".gateway.networking.") {
			continue
		}
		text, err := yaml.Marshal(object.Object["metadata"])
		if err != nil {
			w.Fatal(err)
		}
		got.WriteString("---\n" + string(text))
	}
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		w.Errorf("%s: -want +got (go test -tags chart ./test/chart/server -update rewrites it):\n%s", name, diff)
	}
}
