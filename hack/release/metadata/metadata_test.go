package metadata

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const development = header + `kind: Deployment
args:
- --gateway-image=slipway-gateway:dev
- --backup-image=slipway-backup:dev
image: slipway-operator:dev
image: slipway-monitor:dev
`

func TestInstall(t *testing.T) {
	for registry, want := range map[string]string{
		"":                           "args:\n- --gateway-image=slipway-gateway:v1.2.3\n- --backup-image=slipway-backup:v1.2.3\nimage: slipway-operator:v1.2.3\nimage: slipway-monitor:v1.2.3\n",
		"registry.example.com/team/": "args:\n- --gateway-image=registry.example.com/team/slipway-gateway:v1.2.3\n- --backup-image=registry.example.com/team/slipway-backup:v1.2.3\nimage: registry.example.com/team/slipway-operator:v1.2.3\nimage: registry.example.com/team/slipway-monitor:v1.2.3\n",
	} {
		got, err := Install(development, registry, "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		want = "# Slipway v1.2.3: kubectl apply --server-side -f install.yaml\nkind: Deployment\n" + want
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", registry, diff)
		}
	}
}

// If a name were not replaced, it would be the name of an image that no cluster can pull.
func TestInstallRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a manifest of somebody else": strings.TrimPrefix(development, header),
		"no image of the operator":    strings.Replace(development, "image: slipway-operator:dev\n", "", 1),
		"two":                         development + "image: slipway-operator:dev\n",
		"another image of that tag":   development + "image: slipway-monitor:dev\n",
	} {
		if _, err := Install(text, "", "v1.2.3"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

const changelog = `# Changelog

## v1.2.3, a day

Words.

### Added

- **A first thing.** How it is
  used.
- **A second.**

### Fixed

- **A third:** why.

## v1.2.2

### Added

- **Something old.**
`

func TestChanges(t *testing.T) {
	got, err := Changes(changelog, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{{"added", "A first thing"}, {"added", "A second"}, {"fixed", "A third:"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"no such version":     strings.ReplaceAll(changelog, "v1.2.3", "v1.2.4"),
		"an unknown heading":  strings.Replace(changelog, "### Added", "### New", 1),
		"a point without one": strings.Replace(changelog, "### Added", "", 1),
		"a point not bold":    strings.Replace(changelog, "**A second.**", "A second.", 1),
		"nothing":             "# Changelog\n\n## v1.2.3\n",
	} {
		if _, err := Changes(text, "v1.2.3"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The changelog of the project has to say something about the version in VERSION.
func TestChangelogOfTheProject(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version, err := os.ReadFile("../../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Changes(string(text), strings.TrimSpace(string(version))); err != nil {
		t.Error(err)
	}
}

// The chart in the repository is of the version in VERSION.
func TestVersionOfTheChart(t *testing.T) {
	version, err := os.ReadFile("../../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../../charts/slipway/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(content, &chart); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(version)); chart.AppVersion != want || "v"+chart.Version != want {
		t.Errorf("the chart is %s of %s, want %s", chart.Version, chart.AppVersion, want)
	}
}

// What krew requires of a manifest (its package internal/index/validation).
var (
	safeName = regexp.MustCompile(`^[\w-]+$`)
	aSum     = regexp.MustCompile(`^[a-f0-9]{64}$`)
	aVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+`)
)

func TestKrew(t *testing.T) {
	folder := t.TempDir()
	for _, platform := range Platforms {
		if err := os.WriteFile(filepath.Join(folder, PluginArchive("v1.2.3", platform)), []byte(platform), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := Krew(folder, "https://downloads.example.com/v1.2.3/", "v1.2.3", []Change{{"added", "A thing"}})
	if err != nil {
		t.Fatal(err)
	}
	var plugin Plugin
	if err := yaml.UnmarshalStrict([]byte(text), &plugin); err != nil {
		t.Fatal(err)
	}
	switch {
	case plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin":
		t.Errorf("it is a %s %s", plugin.APIVersion, plugin.Kind)
	case !safeName.MatchString(plugin.Metadata.Name) || !aVersion.MatchString(plugin.Spec.Version):
		t.Errorf("it is called %q %q", plugin.Metadata.Name, plugin.Spec.Version)
	case plugin.Spec.ShortDescription == "" || strings.ContainsAny(plugin.Spec.ShortDescription, "\r\n"):
		t.Errorf("its short description is %q", plugin.Spec.ShortDescription)
	}
	var got []string
	for _, platform := range plugin.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		name := labels["os"] + "/" + labels["arch"]
		sum := sha256.Sum256([]byte(name))
		if len(labels) != 2 || !aSum.MatchString(platform.SHA256) || platform.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%v has the checksum %q", labels, platform.SHA256)
		}
		if want := "https://downloads.example.com/v1.2.3/" + PluginArchive("v1.2.3", name); platform.URI != want {
			t.Errorf("%s is at %q, want %q", name, platform.URI, want)
		}
		got = append(got, name+" "+platform.Bin)
		if len(platform.Files) == 0 || platform.Files[0] != (FileOperation{From: platform.Bin, To: "."}) {
			t.Errorf("%s takes %v out of its archive", name, platform.Files)
		}
	}
	want := []string{
		"linux/amd64 kubectl-slipway", "linux/arm64 kubectl-slipway", "darwin/amd64 kubectl-slipway", "darwin/arm64 kubectl-slipway",
		"windows/amd64 kubectl-slipway.exe", "windows/arm64 kubectl-slipway.exe",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestChart(t *testing.T) {
	chart := "name: slipway\nannotations:\n  artifacthub.io/category: networking\n"
	text, err := Chart([]byte(chart), "../../../config/crd", "registry.example.com/team", "v1.2.3", []Change{{"added", "A thing"}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatal(err)
	}
	var definitions []definition
	if err := yaml.UnmarshalStrict([]byte(got.Annotations["artifacthub.io/crds"]), &definitions); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, d := range definitions {
		if d.Description == "" || d.Version == "" || d.DisplayName == "" {
			t.Errorf("%s is not described: %+v", d.Kind, d)
		}
		kinds = append(kinds, d.Kind)
	}
	if !strings.Contains(strings.Join(kinds, " "), "APIGateway BackupRun Backup GatewayParameters GatewayPolicy MonitorRule Restore WebApp") {
		t.Errorf("the kinds are %q", kinds)
	}
	delete(got.Annotations, "artifacthub.io/crds")
	want := map[string]string{
		"artifacthub.io/category":             "networking",
		"artifacthub.io/changes":              "- description: A thing\n  kind: added\n",
		"artifacthub.io/license":              "Apache-2.0",
		"artifacthub.io/operator":             "true",
		"artifacthub.io/operatorCapabilities": "Seamless Upgrades",
		"artifacthub.io/prerelease":           "false",
		"artifacthub.io/images": "- image: registry.example.com/team/slipway-operator:v1.2.3\n  name: slipway-operator\n  platforms:\n  - linux/amd64\n  - linux/arm64\n" +
			"- image: registry.example.com/team/slipway-gateway:v1.2.3\n  name: slipway-gateway\n  platforms:\n  - linux/amd64\n  - linux/arm64\n" +
			"- image: registry.example.com/team/slipway-backup:v1.2.3\n  name: slipway-backup\n  platforms:\n  - linux/amd64\n  - linux/arm64\n" +
			"- image: registry.example.com/team/slipway-monitor:v1.2.3\n  name: slipway-monitor\n  platforms:\n  - linux/amd64\n  - linux/arm64\n",
	}
	if diff := cmp.Diff(want, got.Annotations); diff != "" || got.Name != "slipway" {
		t.Errorf("annotations of %s (-want +got):\n%s", got.Name, diff)
	}
}
