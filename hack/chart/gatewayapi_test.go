package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upstream is a definition as the Gateway API ships it.
func upstream(version, channel string) string {
	return fmt.Sprintf("kind: CustomResourceDefinition\nmetadata:\n  annotations:\n    %s: %s\n    %s: %s\n", bundleVersion, version, bundleChannel, channel)
}

func TestTheDefinitionsOfTheGatewayAPIAreCopiedAsTheyAre(t *testing.T) {
	const policy = "kind: ValidatingAdmissionPolicy\n---\nkind: ValidatingAdmissionPolicyBinding\n"
	tests := map[string]struct {
		standard, experimental map[string]string
		want                   map[string]string
		refused                string
	}{
		"definitions, and a policy": {
			standard:     map[string]string{"gateway.networking.k8s.io_a.yaml": upstream("v1.2.3", "standard"), "gateway.networking.k8s.io_vap.yaml": policy, "kustomization.yaml": "resources: []\n"},
			experimental: map[string]string{"gateway.networking.k8s.io_a.yaml": upstream("v1.2.3", "experimental"), "gateway.networking.x-k8s.io_b.yaml": upstream("v1.2.3", "experimental")},
			want: map[string]string{
				"Chart.yaml": fmt.Sprintf(subchart, "1.2.3", "v1.2.3"),
				"files/experimental/gateway.networking.k8s.io_a.yaml":   copied + upstream("v1.2.3", "experimental"),
				"files/experimental/gateway.networking.x-k8s.io_b.yaml": copied + upstream("v1.2.3", "experimental"),
				"files/standard/gateway.networking.k8s.io_a.yaml":       copied + upstream("v1.2.3", "standard"),
			},
		},
		"two versions": {
			standard:     map[string]string{"gateway.networking.k8s.io_a.yaml": upstream("v1.2.3", "standard")},
			experimental: map[string]string{"gateway.networking.k8s.io_a.yaml": upstream("v1.2.4", "experimental")},
			refused:      "2 versions",
		},
		"another channel": {
			standard: map[string]string{"gateway.networking.k8s.io_a.yaml": upstream("v1.2.3", "experimental")},
			refused:  `is of the channel "experimental", want "standard"`,
		},
		"no version": {
			standard: map[string]string{"gateway.networking.k8s.io_a.yaml": upstream(`""`, "standard")},
			refused:  `has the version ""`,
		},
		"no definitions": {
			standard: map[string]string{"kustomization.yaml": "resources: []\n"},
			refused:  "no definitions in",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from, chart := t.TempDir(), t.TempDir()
			fill(t, filepath.Join(from, "standard"), tc.standard)
			fill(t, filepath.Join(from, "experimental"), tc.experimental)
			// A kind that is gone is in the chart no longer.
			fill(t, filepath.Join(chart, "files", "standard"), map[string]string{"gateway.networking.k8s.io_gone.yaml": "kind: Gone\n"})
			err := gatewayAPI(from, chart)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want one with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, content(t, chart)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Who follows the documentation gets the version that the programs are built with.
func TestTheDocumentationInstallsTheVersionOfTheChart(t *testing.T) {
	root := filepath.Join("..", "..")
	chart, err := os.ReadFile(filepath.Join(root, "charts", "slipway", "charts", "gateway-api", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(chart), "\nappVersion: ")
	version = strings.TrimSpace(version)
	if !strings.HasPrefix(version, "v") {
		t.Fatalf("the chart has the version %q", version)
	}
	for _, want := range []string{"gateway-api/releases/download/" + version + "/", "is built with version " + version + ","} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/install.md does not say %q", want)
		}
	}
}

// fill writes files into a folder.
func fill(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// content returns the files in a folder and below, by their paths.
func content(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		files[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
