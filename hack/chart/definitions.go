package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// revisionAnnotation numbers the set of fields of a CustomResourceDefinition. The chart's
// admission policy refuses a lower number: with an older definition, the API server would
// drop the fields of objects that this definition does not know.
const revisionAnnotation = "slipway.dev/schema-revision"

// definitions returns a template for each CustomResourceDefinition, by file name, and their
// revisions, by their names. It also updates the file of revisions.
func definitions(p paths) (templates map[string][]byte, revisions map[string]string, err error) {
	names, err := filepath.Glob(filepath.Join(p.config, "crd", "*_*.yaml"))
	if err != nil || len(names) == 0 {
		return nil, nil, fmt.Errorf("no definitions in %q (%w)", p.config, err)
	}
	text, err := os.ReadFile(p.revisions)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	known := string(text)
	templates, revisions = map[string][]byte{}, map[string]string{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		var revision int
		if known, revision, err = revise(known, crd.Name, digest(fields(crd))); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.revisions, err)
		}
		revisions[crd.Name] = strconv.Itoa(revision)
		if templates[crd.Spec.Names.Plural+".yaml"], err = template(raw, revision); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if known == string(text) {
		return templates, revisions, nil
	}
	return templates, revisions, os.WriteFile(p.revisions, []byte(known), 0o644)
}

// revise returns the text of the file of revisions, and the revision of a definition. When
// the fields differ from those in the definition's last line, the text gets one more line.
func revise(known, crd, digest string) (string, int, error) {
	last, lastDigest := 0, ""
	for line := range strings.Lines(known) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != crd {
			continue
		}
		number, err := strconv.Atoi(words[1])
		if err != nil || number <= last {
			return known, 0, fmt.Errorf("%q: the revision after %d must be a greater number", strings.TrimSpace(line), last)
		}
		last, lastDigest = number, words[2]
	}
	if lastDigest == digest {
		return known, last, nil
	}
	return known + fmt.Sprintf("%s %d %s\n", crd, last+1, digest), last + 1, nil
}

// fields lists the paths of all fields of a definition.
func fields(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			walk(version.Name, version.Schema.OpenAPIV3Schema, &all)
		}
	}
	slices.Sort(all)
	return all
}

func walk(path string, schema *apiextensionsv1.JSONSchemaProps, all *[]string) {
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields {
		*all = append(*all, path+".**")
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		*all = append(*all, path+"."+name)
		walk(path+"."+name, &property, all)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, all)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", schema.AdditionalProperties.Schema, all)
	}
}

func digest(fields []string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(fields, "\n"))))[:16]
}

// template makes a template of a definition. It adds the revision, and the annotation that
// keeps the definition when the chart is uninstalled. It escapes the braces that Helm would
// interpret.
func template(raw []byte, revision int) ([]byte, error) {
	const head = "  annotations:\n"
	before, after, found := bytes.Cut(bytes.TrimPrefix(raw, []byte("---\n")), []byte(head))
	if !found {
		return nil, errors.New("it has no annotations to add to")
	}
	escape := func(text []byte) []byte {
		return []byte(strings.NewReplacer("{{", "{{ `{{` }}", "}}", "{{ `}}` }}").Replace(string(text)))
	}
	var out bytes.Buffer
	out.WriteString(generated + "{{- if .Values.crds.install }}\n")
	out.Write(escape(before))
	fmt.Fprintf(&out, "%s    helm.sh/resource-policy: keep\n    %s: %q\n", head, revisionAnnotation, strconv.Itoa(revision))
	out.Write(escape(after))
	out.WriteString("{{- end }}\n")
	return out.Bytes(), nil
}
