//go:build disttest

package main

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/hack/release/metadata"
	"github.com/slipway-dev/slipway/hack/release/seal"
)

// verifyAsDocumented runs what docs/dev/release.md tells a user to run.
func verifyAsDocumented(t *testing.T, folder string) error {
	t.Helper()
	for _, words := range [][]string{
		{"openssl", "pkeyutl", "-verify", "-pubin", "-inkey", made.publicKey, "-rawin", "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig"},
		{"sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"},
	} {
		run := exec.CommandContext(t.Context(), words[0], words[1:]...)
		run.Dir = folder
		if err := run.Run(); err != nil {
			return err
		}
	}
	return nil
}

func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "release")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestVerification(t *testing.T) {
	if err := verifyAsDocumented(t, made.first); err != nil {
		t.Error(err)
	}
	if err := seal.Verify(made.first, made.publicKey, made.version); err != nil {
		t.Error(err)
	}
	if err := seal.Verify(made.first, made.publicKey, "v0.0.1"); err == nil {
		t.Error("the release is taken for v0.0.1")
	}
}

// One changed bit in any file is found, by our program and by those that everybody has.
func TestAnyChangeIsFound(t *testing.T) {
	folder := copied(t, made.first)
	for name := range sums(t, folder) {
		path := filepath.Join(folder, name)
		content := read(t, path)
		changed := bytes.Clone(content)
		changed[len(changed)/3] ^= 4
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := seal.Verify(folder, made.publicKey, made.version); err == nil {
			t.Errorf("release verify: a change of %s is not found", name)
		}
		if err := verifyAsDocumented(t, folder); err == nil {
			t.Errorf("openssl and sha256sum: a change of %s is not found", name)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := verifyAsDocumented(t, folder); err != nil {
		t.Errorf("without a change: %v", err)
	}
}

// Skopeo, which shares no code with what wrote the images, reads them.
func TestAnotherToolReadsTheImages(t *testing.T) {
	for _, program := range []string{"slipway-operator", "slipway-gateway", "slipway-backup", "slipway-monitor", "slipway-demo"} {
		archive := filepath.Join(made.first, program+"-"+made.version+".oci.tar")
		for _, architecture := range []string{"amd64", "arm64"} {
			for _, source := range []string{
				"oci-archive:" + archive + ":" + made.version,
				"docker-archive:" + filepath.Join(made.first, program+"-"+made.version+"-"+architecture+".tar"),
			} {
				var got struct {
					Architecture, Os string
					Labels           map[string]string
				}
				text := output(t, "skopeo", "inspect", "--override-arch", architecture, source)
				if err := json.Unmarshal([]byte(text), &got); err != nil {
					t.Fatal(err)
				}
				if got.Architecture != architecture || got.Os != "linux" || got.Labels["org.opencontainers.image.version"] != made.version {
					t.Errorf("%s for %s is %+v", source, architecture, got)
				}
			}
		}
		// Every blob is read, and compared with its digest.
		output(t, "skopeo", "--insecure-policy", "copy", "--quiet", "--all", "oci-archive:"+archive, "dir:"+t.TempDir())
	}
}

// modules are the modules that an SBOM names, and those that the linker wrote into the
// program.
func modules(t *testing.T, sbom string, program []byte) (named, linked map[string]string) {
	t.Helper()
	var bill struct {
		BOMFormat    string
		SerialNumber string
		Metadata     struct {
			Timestamp string
			Component struct{ Version string }
		}
		Components []struct {
			Name, Version string
			Licenses      any
		}
	}
	if err := json.Unmarshal(read(t, sbom), &bill); err != nil {
		t.Fatal(err)
	}
	if bill.BOMFormat != "CycloneDX" || bill.SerialNumber != "" || bill.Metadata.Timestamp != "" || bill.Metadata.Component.Version != made.version {
		t.Errorf("%s is %q of %q, %q %q", sbom, bill.BOMFormat, bill.Metadata.Component.Version, bill.SerialNumber, bill.Metadata.Timestamp)
	}
	named, linked = map[string]string{}, map[string]string{}
	for _, component := range bill.Components {
		named[component.Name] = component.Version
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	linked["std"] = info.GoVersion
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		linked[module.Path] = module.Version
	}
	return named, linked
}

// An SBOM names exactly the modules that are in the program, with their versions.
func TestSBOMs(t *testing.T) {
	check := func(program, platform string, content []byte) {
		named, linked := modules(t, filepath.Join(made.first, program+"-"+made.version+"-"+platform+".cdx.json"), content)
		if diff := cmp.Diff(linked, named); diff != "" {
			t.Errorf("modules of %s for %s (-linked +named):\n%s", program, platform, diff)
		}
	}
	for _, program := range []string{"slipway-operator", "slipway-gateway", "slipway-backup", "slipway-monitor", "slipway-demo"} {
		for _, image := range images(t, program) {
			check(program, "linux-"+image.Architecture, image.Program)
		}
	}
	for _, platform := range metadata.Platforms {
		folder, name := unpacked(t, platform)
		check("kubectl-slipway", strings.ReplaceAll(platform, "/", "-"), read(t, filepath.Join(folder, name)))
	}
}

// unpacked is a folder with the plugin for a platform, and the program's name.
func unpacked(t *testing.T, platform string) (folder, program string) {
	t.Helper()
	folder = t.TempDir()
	archive := filepath.Join(made.first, metadata.PluginArchive(made.version, platform))
	if !strings.HasSuffix(archive, ".zip") {
		output(t, "tar", "-C", folder, "-xzf", archive)
		return folder, "kubectl-slipway"
	}
	reader, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := os.CopyFS(folder, reader); err != nil {
		t.Fatal(err)
	}
	return folder, "kubectl-slipway.exe"
}

// Every archive that the manifest for krew names is in the release, with that checksum,
// and holds what krew is told to take out of it.
func TestKrewManifest(t *testing.T) {
	var plugin metadata.Plugin
	if err := yaml.UnmarshalStrict(read(t, filepath.Join(made.first, "slipway.yaml")), &plugin); err != nil {
		t.Fatal(err)
	}
	known := sums(t, made.first)
	if len(plugin.Spec.Platforms) != len(metadata.Platforms) || plugin.Spec.Version != made.version {
		t.Errorf("%d platforms of %s", len(plugin.Spec.Platforms), plugin.Spec.Version)
	}
	for _, platform := range plugin.Spec.Platforms {
		name := filepath.Base(platform.URI)
		if known[name] == "" || known[name] != platform.SHA256 {
			t.Errorf("%s has the checksum %q, and in the manifest %q", name, known[name], platform.SHA256)
		}
		folder, _ := unpacked(t, platform.Selector.MatchLabels["os"]+"/"+platform.Selector.MatchLabels["arch"])
		for _, file := range platform.Files {
			if _, err := os.Stat(filepath.Join(folder, file.From)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Each image holds the licenses of what is linked, and a license that may not be shipped
// stops the build. A wrong call of the tool once found no license, and reported no problem.
func TestLicenses(t *testing.T) {
	for _, image := range images(t, "slipway-operator") {
		text := string(image.Licenses["THIRD-PARTY-LICENSES"])
		for _, want := range []string{"==== Go, its standard library", "==== k8s.io/client-go/LICENSE", "==== sigs.k8s.io/controller-runtime/LICENSE", "/NOTICE\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("for %s: no %q among %d bytes", image.Architecture, want, len(text))
			}
		}
	}
	ours := string(read(t, "../../LICENSE"))
	for name, test := range map[string]struct{ license, want string }{
		"Apache": {ours, "all allowed"},
		"none":   {"", "Did not find license"},
		"GPL":    {string(read(t, "/usr/share/common-licenses/GPL-3")), "Not allowed license 'GPL-3.0'"},
	} {
		folder := t.TempDir()
		write := func(name, text string) {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("LICENSE", ours)
		write("go.mod", "module example.com/main\n\ngo 1.26.0\n\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n")
		write("main.go", "package main\n\nimport _ \"example.com/other\"\n\nfunc main() {}\n")
		write("other/go.mod", "module example.com/other\n\ngo 1.26.0\n")
		write("other/other.go", "package other\n")
		if test.license != "" {
			write("other/LICENSE", test.license)
		}
		text, err := exec.CommandContext(t.Context(), "../licenses.sh", "check", folder, "linux", "./...").CombinedOutput()
		if (err == nil) != (name == "Apache") || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: %v, and it says:\n%s", name, err, text)
		}
	}
}

// A release is refused when something is not committed, or when the commit's tag names another version.
func TestWhatIsNotARelease(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	output(t, "git", "clone", "-q", "--no-local", "../..", clone)
	for name, test := range map[string]struct {
		change []string
		want   string
	}{
		"a file that is not committed": {[]string{"touch", clone + "/evil.go"}, "the tree is not clean"},
		"a commit of another version":  {[]string{"git", "-C", clone, "tag", "v9.9.9"}, "the commit has the tag v9.9.9"},
	} {
		output(t, test.change...)
		text, err := exec.CommandContext(t.Context(), "make", "-C", clone, "dist").CombinedOutput()
		if err == nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: %v, and it says:\n%s", name, err, text)
		}
		output(t, "git", "-C", clone, "clean", "-qfd")
	}
}
