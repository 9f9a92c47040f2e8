package scenario

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// Kind is a declared kind, its children, and its scenarios: a folder with kind.yaml
// and scenarios/*.yaml.
type Kind struct {
	// Name is that of the folder.
	Name string `json:"-"`
	// Observed are the kinds whose objects are the state of a namespace: what a user
	// declares, and what the operator makes of it.
	Observed []Reference `json:"observed"`
	// ObservedHere are further ones whose objects are nothing to compare where another kind is declared, because they are
	// random there.
	ObservedHere []Reference `json:"observedHere"`
	// State are the fields of children, by kind, that hold what is known nowhere else. Nobody
	// can tell that such a field was changed, so they are not tried as drift.
	State map[string][]string `json:"state"`
	// Once are the kinds of children that are made once, and never changed: as drift, what was changed stays as it is.
	Once []string `json:"once"`
	// Controllers are the ones that act on the kind, by name. Default: all of the operator's.
	Controllers []string `json:"controllers"`
	// MadeAtUpgrade are the kinds of children that earlier releases did not make: they may
	// appear when the operator starts on what one has left.
	MadeAtUpgrade []string `json:"madeAtUpgrade"`
	// Definitions are files with kinds of others that the cluster has, by Go module.
	Definitions map[string][]string `json:"definitions"`
	// Scenarios by file name.
	Scenarios []Scenario `json:"-"`
}

// SharedSteps returns how many of the first steps of a scenario an earlier one of the
// kind begins with too, with pods that behave the same: what may go wrong in them has
// been tried there.
func (k Kind) SharedSteps(s Scenario) int {
	shared := 0
	for _, earlier := range k.Scenarios {
		if earlier.Name == s.Name {
			break
		}
		same := 0
		for same < min(len(s.Steps), len(earlier.Steps)) && reflect.DeepEqual(s.Steps[same], earlier.Steps[same]) {
			same++
		}
		shared = max(shared, same)
	}
	return shared
}

// Scenario is what happens to an operator.
type Scenario struct {
	// Kind is the name of the Kind.
	Kind string `json:"-"`
	// Name is that of the file.
	Name string `json:"-"`
	// About says in a sentence what it is about.
	About string `json:"about"`
	// Pods is how the pods of an image behave, ready unless said here.
	Pods map[string]workload.Behaviour `json:"pods,omitempty"`
	// Tolerant goes on after a step that is refused or has nothing to act on, as happens
	// in a random mix of steps.
	Tolerant bool `json:"-"`
	// Controllers are those of the Kind, and ObservedHere too.
	Controllers  []string    `json:"-"`
	ObservedHere []Reference `json:"-"`
	// Drift asks for every owned field of every child to be changed at the end.
	Drift bool `json:"drift"`
	// AfterDrift is how pods behave after that. Then every declared object has to get ready. Default: that is not tried.
	AfterDrift map[string]workload.Behaviour `json:"afterDrift,omitempty"`
	// Steps follow each other, each when the cluster has reached a steady state after the one
	// before.
	Steps []Step `json:"steps"`
}

// Step is one thing that somebody does. Exactly one of Apply, Delete and Pods is given.
type Step struct {
	// Apply is an object as somebody wants it.
	Apply map[string]any `json:"apply,omitempty"`
	// Manager is who wants it, as a field manager. Default: a user.
	Manager string `json:"manager,omitempty"`
	// Delete is an object that somebody deletes. Its dependents stay: no garbage collector
	// runs beside a bare API server.
	Delete *Reference `json:"delete,omitempty"`
	// Pods is how pods behave from now on.
	Pods map[string]workload.Behaviour `json:"pods,omitempty"`
	// Within is how long it may take until anything happens because of the step, where
	// nothing tells the operator of it. Default: nothing that counts.
	Within metav1.Duration `json:"within,omitzero"`
	// Together makes the next step follow at once, and Begun as soon as a write of the
	// operator is accepted that follows this one.
	Together bool `json:"together,omitempty"`
	Begun    bool `json:"begun,omitempty"`
	// Shows is what objects show after the step where nothing goes wrong, by what they are called. shows.go says what there is
	// to ask for.
	Shows map[string][]string `json:"shows,omitempty"`
}

// settles reports whether the next step waits until the cluster is at steady state.
func (s Step) settles() bool { return !s.Together && !s.Begun }

// Kind is the kind of the object that somebody applies or deletes, if anybody does.
func (s Step) Kind() string {
	if s.Delete != nil {
		return s.Delete.Kind
	}
	kind, _ := s.Apply["kind"].(string)
	return kind
}

func (s Step) manager() string { return cmp.Or(s.Manager, "user") }

// Reference names a kind, or an object of it.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Namespace is that of the object. Default: that of the run.
	Namespace string `json:"namespace,omitempty"`
}

// GroupVersionKind returns the kind.
func (r Reference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

func (r Reference) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(r.GroupVersionKind())
	if r.Namespace != "" {
		object.SetNamespace(r.Namespace)
	}
	object.SetName(r.Name)
	return object
}

// Read reads every kind in a folder.
func Read(folder string) ([]Kind, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", "kind.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no kinds in %s (%w)", folder, err)
	}
	var kinds []Kind
	for _, file := range files {
		kind := Kind{Name: filepath.Base(filepath.Dir(file))}
		if err := readYAML(file, &kind); err != nil {
			return nil, err
		}
		if kind.Scenarios, err = readScenarios(kind.Name, filepath.Join(filepath.Dir(file), "scenarios")); err != nil {
			return nil, err
		}
		for i := range kind.Scenarios {
			kind.Scenarios[i].Controllers, kind.Scenarios[i].ObservedHere = kind.Controllers, kind.ObservedHere
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func readScenarios(kind, folder string) ([]Scenario, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no scenarios in %s (%w)", folder, err)
	}
	var scenarios []Scenario
	for _, file := range files {
		s := Scenario{Kind: kind, Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		if err := readYAML(file, &s); err != nil {
			return nil, err
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		scenarios = append(scenarios, s)
	}
	return scenarios, nil
}

func readYAML(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func (s Scenario) check() error {
	for i, step := range s.Steps {
		given := 0
		for _, is := range []bool{step.Apply != nil, step.Delete != nil, step.Pods != nil} {
			if is {
				given++
			}
		}
		if given != 1 {
			return fmt.Errorf("step %d has %d of apply, delete and pods, want one", i+1, given)
		}
	}
	if len(s.Steps) == 0 || !s.Steps[len(s.Steps)-1].settles() {
		return fmt.Errorf("nothing follows the last step")
	}
	return nil
}
