package metadata

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const home = "https://github.com/slipway-dev/slipway"

// Change is one line of the changelog.
type Change struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

// kinds are the headings of the changelog, which are those of keepachangelog.com, and
// what Artifact Hub calls them.
var kinds = []string{"added", "changed", "deprecated", "removed", "fixed", "security"}

// Changes reads what a version changed out of the changelog: the bold first words of each
// point.
func Changes(changelog, version string) ([]Change, error) {
	_, rest, found := strings.Cut(changelog, "\n## "+version)
	if !found {
		return nil, fmt.Errorf("the changelog has no section %q", "## "+version)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	var changes []Change
	kind := ""
	for line := range strings.SplitSeq(section, "\n") {
		if heading, found := strings.CutPrefix(line, "### "); found {
			if kind = strings.ToLower(heading); !slices.Contains(kinds, kind) {
				return nil, fmt.Errorf("the changelog has the heading %q; it must be one of %q", heading, kinds)
			}
			continue
		}
		point, found := strings.CutPrefix(line, "- ")
		if !found {
			continue
		}
		bold, _, closed := strings.Cut(strings.TrimPrefix(point, "**"), "**")
		if !closed || !strings.HasPrefix(point, "**") || kind == "" {
			return nil, fmt.Errorf("a point of the changelog does not begin with bold words below a heading: %q", point)
		}
		changes = append(changes, Change{Kind: kind, Description: strings.TrimSuffix(bold, ".")})
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("the changelog says nothing about %s", version)
	}
	return changes, nil
}

func changesYAML(changes []Change) (string, error) {
	text, err := yaml.Marshal(changes)
	return string(text), err
}

// definition is what Artifact Hub shows of a CRD.
type definition struct {
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

type crd struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema struct {
					Description string `json:"description"`
				} `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// definitions reads the CRDs of a folder.
func definitions(folder string) ([]definition, error) {
	files, err := filepath.Glob(filepath.Join(folder, "slipway.dev_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no CRDs", folder))
	}
	var all []definition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var c crd
		if err := yaml.Unmarshal(content, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range c.Spec.Versions {
			words := strings.Join(strings.Fields(version.Schema.OpenAPIV3Schema.Description), " ")
			all = append(all, definition{
				Kind: c.Spec.Names.Kind, Version: version.Name, Name: c.Metadata.Name, DisplayName: c.Spec.Names.Kind, Description: words,
			})
		}
	}
	slices.SortFunc(all, func(a, b definition) int { return cmp.Compare(a.Name+a.Version, b.Name+b.Version) })
	return all, nil
}

// Chart adds the annotations for Artifact Hub to a Chart.yaml. It replaces changes, CRDs and images; what
// else is there already stays.
func Chart(chart []byte, crds, registry, version string, changes []Change) ([]byte, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal(chart, &fields); err != nil {
		return nil, err
	}
	annotations, ok := fields["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	all, err := definitions(crds)
	if err != nil {
		return nil, err
	}
	type image struct {
		Name      string   `json:"name"`
		Image     string   `json:"image"`
		Platforms []string `json:"platforms"`
	}
	var images []image
	for _, program := range []string{"slipway-operator", "slipway-gateway", "slipway-backup", "slipway-monitor"} {
		images = append(images, image{program, Image(registry, program, version), []string{"linux/amd64", "linux/arm64"}})
	}
	texts := map[string]any{"artifacthub.io/changes": changes, "artifacthub.io/crds": all, "artifacthub.io/images": images}
	for key, value := range texts {
		text, err := yaml.Marshal(value)
		if err != nil {
			return nil, err
		}
		annotations[key] = string(text)
	}
	for key, value := range map[string]string{
		"artifacthub.io/license":              "Apache-2.0",
		"artifacthub.io/operator":             "true",
		"artifacthub.io/operatorCapabilities": "Seamless Upgrades",
		"artifacthub.io/category":             "integration-delivery",
		"artifacthub.io/prerelease":           fmt.Sprint(strings.Contains(version, "-")),
	} {
		if _, there := annotations[key]; !there {
			annotations[key] = value
		}
	}
	fields["annotations"] = annotations
	return yaml.Marshal(fields)
}
