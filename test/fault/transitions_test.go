//go:build faulttest

package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/boundary"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// Every property of every spec is changed from every value to every other, and the end
// has to be that of an object which had the value from the start. The properties and
// their values come from the schema; what it cannot tell from
// testdata/<kind>/transitions.yaml. A kind joins by that file and its kind.yaml.
func TestTransitionsOfASpecLeadToTheStateOfANewObject(t *testing.T) {
	t.Parallel()
	for _, played := range kinds {
		file := filepath.Join("testdata", played.Name, "transitions.yaml")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		kind, err := readSpecKind(file)
		if err != nil {
			t.Fatal(err)
		}
		trials, err := kind.trials()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		trials = sampledTrials(kind, trials)
		t.Run(kind.name, func(t *testing.T) {
			rig := newTransitionRig(t, kind, namespacesFor(trials))
			for _, trial := range trials {
				trial.rig = rig
				t.Run(trial.title(), func(t *testing.T) {
					t.Parallel()
					trial.run(t)
				})
			}
		})
	}
}

// sampledTrials are those that the sample has, of properties with values that are held back and of others.
func sampledTrials(kind *specKind, trials []*specTrial) []*specTrial {
	var plain, held []*specTrial
	for _, trial := range trials {
		if len(trial.hint.HeldBack) > 0 {
			held = append(held, trial)
		} else {
			plain = append(plain, trial)
		}
	}
	return slices.Concat(pick(kind.name+" plain", sampledProperties, plain), pick(kind.name+" held back", sampledProperties, held))
}

// namespacesFor is how many namespaces the trials need: one for every value, since
// the objects of a trial have one name, and one for an object that is born with a value
// which cannot be carried out.
func namespacesFor(trials []*specTrial) int {
	most := 0
	for _, trial := range trials {
		most = max(most, len(trial.property.Valid))
	}
	return most + 1
}

// specKind is a declared kind, as its CRD and testdata/<kind>/transitions.yaml tell.
type specKind struct {
	// name is that of the folder, and the singular name of the CRD.
	name   string
	gvk    schema.GroupVersionKind
	schema apiextensionsv1.JSONSchemaProps

	// observed are the kinds of what is made of an object, and controllers the ones that
	// act on it.
	observed    []scenario.Reference
	controllers []string

	// Past is what depends on how an object got where it is. It is not compared.
	Past struct {
		Fields []string `json:"fields"`
		Kinds  []string `json:"kinds"`
	} `json:"past"`
	// Kept are kinds of what stays although the spec asks for it no longer.
	Kept []string `json:"kept"`
	// Gone are kinds of what was made of an object and goes when that is ready.
	Gone []string `json:"gone"`
	// ElsewhereIn are namespaces that specs name, so that the operator looks there too.
	ElsewhereIn []string `json:"elsewhereIn"`
	// Objects exist before: in the namespace that they name, or else in that of each object.
	Objects []map[string]any `json:"objects"`
	// Pods is how the pods of an image behave, ready unless said here.
	Pods map[string]workload.Behaviour `json:"pods"`
	// Bases are specs in which one property after the other is changed. A property is
	// tried in the first that has it, or else in the first that has room for it. NAMESPACE
	// and NAME in a text are those of the object, where no two objects may have the same.
	Bases []specBase `json:"bases"`
	// Immutable is what the refusal of every change of a spec says. Then objects are recreated to change a value.
	Immutable string `json:"immutable"`
	// Round are properties that are in no child, as are those below them: nothing but status
	// depends on them. Of their values each is reached from its two neighbours, not from
	// every other.
	Round []string `json:"round"`
	// Properties is what the schema cannot tell.
	Properties map[string]specHint `json:"properties"`
}

type specBase struct {
	Name string         `json:"name"`
	Spec map[string]any `json:"spec"`
}

// specHint is what the schema cannot tell about a property.
type specHint struct {
	boundary.Hint `json:",inline"`
	// Bases are the bases to try it in, instead of the one that is found.
	Bases []string `json:"bases"`
	// HeldBack are values that the API server accepts and that cannot be carried out.
	HeldBack []heldBack `json:"heldBack"`
	// RefusedChanges are the changes from one valid value to others that a rule refuses,
	// by name. "*" is every other.
	RefusedChanges map[string][]string `json:"refusedChanges"`
	// Alone reports whether no two objects of the cluster may have the same value: they follow
	// each other, and the last one goes through all changes.
	Alone bool `json:"alone"`
}

// heldBack is a value that the API server accepts and that changes nothing but
// status, until it is replaced.
type heldBack struct {
	Value any `json:"value"`
	// Condition tells of it, for example Stalled=True.
	Condition string `json:"condition"`
	// Says is part of the condition's message.
	Says string `json:"says"`
	// Changes are kinds of what changes with the value nevertheless.
	Changes []string `json:"changes"`
	// Bases are the bases in which it is so. Default: all in which the property is tried.
	Bases []string `json:"bases"`
}

func (h specHint) refusesChange(from, to string) bool {
	for _, key := range []string{from, "*"} {
		if slices.Contains(h.RefusedChanges[key], to) || slices.Contains(h.RefusedChanges[key], "*") {
			return true
		}
	}
	return false
}

// goesRound reports whether the values of a property are reached from their neighbours alone. What is recreated does not depend
// on what was there before.
func (k *specKind) goesRound(path string) bool {
	return k.Immutable != "" || slices.ContainsFunc(k.Round, func(above string) bool {
		below, is := strings.CutPrefix(path, above)
		return is && (below == "" || below[0] == '.' || below[0] == '[')
	})
}

// checkRound finds what Round names and the schema does not have.
func (k *specKind) checkRound(properties []boundary.Property) error {
	for _, path := range k.Round {
		if !slices.ContainsFunc(properties, func(p boundary.Property) bool { return p.Path == path }) {
			return fmt.Errorf("round: %s: there is no such property", path)
		}
	}
	return nil
}

func readSpecKind(file string) (*specKind, error) {
	kind := &specKind{name: filepath.Base(filepath.Dir(file))}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(raw, kind); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	i := slices.IndexFunc(kinds, func(k scenario.Kind) bool { return k.Name == kind.name })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no kind.yaml beside it", file)
	}
	kind.observed, kind.controllers = kinds[i].Observed, kinds[i].Controllers
	return kind, kind.readSchema("../../config/crd")
}

// readSchema finds the CRD whose singular name is the kind's.
func (k *specKind) readSchema(folder string) error {
	files, err := fs.Glob(os.DirFS(folder), "*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if crd.Spec.Names.Singular != k.name {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				k.gvk = schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
				k.schema = version.Schema.OpenAPIV3Schema.Properties["spec"]
			}
		}
		return nil
	}
	return fmt.Errorf("no CRD in %s is called %q", folder, k.name)
}

// trials lists every property in every base in which it is tried.
func (k *specKind) trials() ([]*specTrial, error) {
	hints := map[string]boundary.Hint{}
	for path, hint := range k.Properties {
		hints[path] = hint.Hint
	}
	properties, err := boundary.Properties("spec", &k.schema, hints)
	if err != nil {
		return nil, err
	}
	if err := k.checkRound(properties); err != nil {
		return nil, err
	}
	var trials []*specTrial
	var problems []error
	names := map[string]string{}
	for _, property := range properties {
		bases, err := k.basesOf(property.Path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for i, base := range bases {
			trial := &specTrial{kind: k, property: property, hint: k.Properties[property.Path], base: base, name: objectName(property.Path)}
			if i > 0 {
				trial.name += base.Name
			}
			if other, ok := names[trial.name]; ok {
				problems = append(problems, fmt.Errorf("%s and %s are both called %q", other, property.Path, trial.name))
			}
			names[trial.name] = property.Path
			trials = append(trials, trial)
		}
	}
	return trials, errors.Join(problems...)
}

// basesOf returns the bases in which a property is tried.
func (k *specKind) basesOf(path string) ([]specBase, error) {
	var bases []specBase
	for _, name := range k.Properties[path].Bases {
		i := slices.IndexFunc(k.Bases, func(b specBase) bool { return b.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: there is no base %q", path, name)
		}
		bases = append(bases, k.Bases[i])
	}
	if len(bases) > 0 {
		return bases, nil
	}
	for _, fits := range []func(map[string]any, string) bool{boundary.Has, boundary.HasRoom} {
		for _, base := range k.Bases {
			if fits(map[string]any{"spec": base.Spec}, path) {
				return []specBase{base}, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: no base has room for it", path)
}

// objectName is the name of the objects on which a property is tried. It has no '-',
// which is what a child's name goes on with.
func objectName(path string) string {
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimPrefix(path, "spec.")))
	if strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "*") {
		letters += "0"
	}
	return letters
}
