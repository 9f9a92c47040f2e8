package crd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxFileBytes is how long a file with definitions may be.
const maxFileBytes = 64 << 20

// readDefinitions reads all definitions out of files. Objects of other kinds are skipped, so that a whole chart can be given.
func (o *crdCheckOptions) readDefinitions(files []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	seen := map[string]string{}
	for _, file := range files {
		definitions, err := o.readFile(file)
		if err != nil {
			return nil, err
		}
		if len(definitions) == 0 {
			return nil, fmt.Errorf("%s has no CustomResourceDefinition", file)
		}
		for _, crd := range definitions {
			if earlier, twice := seen[crd.Name]; twice {
				return nil, fmt.Errorf("%s: CustomResourceDefinition %q is in %s, too", file, crd.Name, earlier)
			}
			seen[crd.Name] = file
		}
		all = append(all, definitions...)
	}
	return all, nil
}

func (o *crdCheckOptions) readFile(file string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	in := o.Streams.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	definitions, err := definitionsIn(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return definitions, nil
}

// definitionsIn reads the definitions out of a stream of YAML or JSON documents.
func definitionsIn(in io.Reader) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	limited := &io.LimitedReader{R: in, N: maxFileBytes + 1}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(limited))
	var all []*apiextensionsv1.CustomResourceDefinition
	for number := 1; ; number++ {
		document, err := documents.Read()
		if limited.N <= 0 {
			return nil, fmt.Errorf("it is longer than %d bytes", maxFileBytes)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			all, err = appendDefinitions(all, document)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
	}
}

// document is what is asked of every document before it is read whole.
type document struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Items      []runtime.RawExtension `json:"items"`
}

// appendDefinitions adds the definitions of a document: itself, or the items of a list.
func appendDefinitions(all []*apiextensionsv1.CustomResourceDefinition, raw []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	head := &document{}
	if err := yaml.Unmarshal(raw, head); err != nil {
		return nil, err
	}
	group := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
	switch {
	case group.Kind == "List" || group.Kind == "CustomResourceDefinitionList":
		for i := range head.Items {
			var err error
			if all, err = appendDefinitions(all, head.Items[i].Raw); err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return all, nil
	case group.Group != apiextensionsv1.GroupName || group.Kind != "CustomResourceDefinition":
		return all, nil
	case group.Version != apiextensionsv1.SchemeGroupVersion.Version:
		return nil, fmt.Errorf(
			"%s of CustomResourceDefinition is not served by any supported Kubernetes: use apiextensions.k8s.io/v1", head.APIVersion,
		)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, crd); err != nil {
		return nil, err
	}
	if crd.Name == "" {
		return nil, errors.New("the CustomResourceDefinition has no name")
	}
	return append(all, crd), nil
}
