package metadata

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Plugin is a plugin manifest of krew, with the fields that we use.
type Plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec PluginSpec `json:"spec"`
}

// PluginSpec is what krew shows, and where it finds the plugin for a machine.
type PluginSpec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []Platform `json:"platforms"`
}

// Platform is the plugin for one kind of machine.
type Platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string          `json:"uri"`
	SHA256 string          `json:"sha256"`
	Bin    string          `json:"bin"`
	Files  []FileOperation `json:"files"`
}

// FileOperation takes a file out of the archive.
type FileOperation struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Platforms are the machines that the plugin is for, as os/architecture.
var Platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

const description = `Follow the rollout of a WebApp until it is ready or has failed (status --watch),
say what is not ready, down to the pod and its last log lines (why), show what
ran before and what changed (history), and go back to it (rollback).

The cluster needs Slipway, an application platform operator.
`

// PluginArchive is the file name of the plugin for a platform.
func PluginArchive(version, platform string) string {
	system, architecture, _ := strings.Cut(platform, "/")
	format := "tar.gz"
	if system == "windows" {
		format = "zip"
	}
	return fmt.Sprintf("kubectl-slipway-%s-%s-%s.%s", version, system, architecture, format)
}

// Krew is the manifest for krew. The archives are in the folder, and will be found at the
// address.
func Krew(folder, address, version string, changes []Change) (string, error) {
	hub, err := changesYAML(changes)
	if err != nil {
		return "", err
	}
	plugin := Plugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"}
	plugin.Metadata.Name = "slipway"
	plugin.Metadata.Annotations = map[string]string{
		"artifacthub.io/displayName": "Slipway",
		"artifacthub.io/license":     "Apache-2.0",
		"artifacthub.io/category":    "integration-delivery",
		"artifacthub.io/keywords":    "- deployment\n- rollout\n- operator\n- gateway\n",
		"artifacthub.io/changes":     hub,
	}
	plugin.Spec = PluginSpec{
		Version:          version,
		Homepage:         home,
		ShortDescription: "See, explain and undo rollouts of Slipway WebApps",
		Description:      description,
	}
	for _, name := range Platforms {
		system, architecture, _ := strings.Cut(name, "/")
		archive := PluginArchive(version, name)
		content, err := os.ReadFile(filepath.Join(folder, archive))
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(content)
		platform := Platform{
			URI:    strings.TrimSuffix(address, "/") + "/" + archive,
			SHA256: hex.EncodeToString(sum[:]),
			Bin:    "kubectl-slipway",
		}
		if system == "windows" {
			platform.Bin += ".exe"
		}
		platform.Selector.MatchLabels = map[string]string{"os": system, "arch": architecture}
		for _, file := range []string{platform.Bin, "LICENSE", "THIRD-PARTY-LICENSES"} {
			platform.Files = append(platform.Files, FileOperation{From: file, To: "."})
		}
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, platform)
	}
	text, err := yaml.Marshal(plugin)
	return string(text), err
}
