package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/fault"
)

// Release is what a version of the operator left in a cluster at the end of a scenario.
type Release struct {
	// Declared are the objects that users and others applied, as they were at the end.
	Declared []Step `json:"declared"`
	// Statuses are the statuses of declared objects, by kind and name.
	Statuses map[string]any `json:"statuses"`
	// Stated are the children, as each field manager of the operator stated them last.
	Stated []Step `json:"stated"`
}

// uidOf stands before what an object is called for its UID.
const uidOf = "UID-OF-"

// Record plays a scenario and returns what the operator left.
func (b *Bench) Record(t testing.TB, s Scenario) (*Release, error) {
	t.Helper()
	r := b.begin(t, s, Trial{OwnWatches: true}, false)
	defer r.end()
	outcome, err := r.play(nil)
	if err != nil {
		return nil, err
	}
	release := &Release{Statuses: map[string]any{}}
	state := r.Recorder.State(r.namespace)
	uids := []string{r.namespace, namespaceHere}
	for _, version := range r.Recorder.History(r.namespace) {
		if uid, _, _ := unstructured.NestedString(version.Fields, "metadata", "uid"); uid != "" {
			uids = append(uids, uid, uidOf+version.Object)
		}
	}
	for _, step := range declaredAtEnd(s) {
		current, err := r.current(step)
		if err != nil {
			return nil, err
		}
		if !owns(current, step.manager()) {
			// The operator has taken back what somebody else stated.
			continue
		}
		release.Declared = append(release.Declared, step)
		if name := called(current.GetKind(), current); state[name] != nil && current.Object["status"] != nil {
			release.Statuses[name] = current.Object["status"]
		}
	}
	stated, err := statedAtEnd(outcome.Writes, state, strings.NewReplacer(uids...))
	if err != nil {
		return nil, err
	}
	for _, step := range stated {
		current, err := r.current(step)
		if err != nil {
			return nil, err
		}
		if owns(current, step.manager()) {
			// Otherwise another manager of the operator has taken it over since.
			release.Stated = append(release.Stated, step)
		}
	}
	return release, nil
}

// calledNeutral is what an object is called in whose texts NAMESPACE stands for the namespace of the run.
func calledNeutral(object *unstructured.Unstructured) string {
	if object.GetNamespace() == namespaceHere+elsewhere {
		return object.GetKind() + "/" + namespaceHere + elsewhere + "/" + object.GetName()
	}
	return object.GetKind() + "/" + object.GetName()
}

// current is the object of a step as it is.
func (r *run) current(step Step) (*unstructured.Unstructured, error) {
	object, err := r.placed(step.Apply)
	if err != nil {
		return nil, err
	}
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(object.GroupVersionKind())
	err = r.Env.Client.Get(r.Context(), client.ObjectKeyFromObject(object), current)
	return current, err
}

// owns reports whether a manager owns anything of an object.
func owns(object *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager
	})
}

// declaredAtEnd are the last versions of what is applied and not deleted.
func declaredAtEnd(s Scenario) []Step {
	var steps []Step
	for _, step := range s.Steps {
		var object *unstructured.Unstructured
		switch {
		case step.Apply != nil:
			object = &unstructured.Unstructured{Object: step.Apply}
		case step.Delete != nil:
			object = step.Delete.object()
		default:
			continue
		}
		steps = slices.DeleteFunc(steps, func(earlier Step) bool {
			other := &unstructured.Unstructured{Object: earlier.Apply}
			return other.GroupVersionKind() == object.GroupVersionKind() &&
				client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(object)
		})
		if step.Apply != nil {
			steps = append(steps, Step{Apply: step.Apply, Manager: step.Manager})
		}
	}
	return steps
}

// statedAtEnd are the last applied versions of the objects that exist, by manager.
func statedAtEnd(writes []fault.Write, state map[string]any, neutral *strings.Replacer) ([]Step, error) {
	last := map[string]int{}
	var stated []Step
	for _, w := range writes {
		if w.Verb != "apply" || strings.Contains(w.Resource, "/") {
			continue
		}
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(neutral.Replace(string(w.Body))), &object); err != nil {
			return nil, err
		}
		o := unstructured.Unstructured{Object: object}
		// A create is stated with a version that no existing object has.
		o.SetResourceVersion("")
		// An update is stated of the very object that existed, which no later one is.
		o.SetUID("")
		if state[calledNeutral(&o)] == nil {
			continue
		}
		step := Step{Apply: object, Manager: w.Manager}
		if at, known := last[w.Path+w.Manager]; known {
			stated[at] = step
			continue
		}
		last[w.Path+w.Manager] = len(stated)
		stated = append(stated, step)
	}
	return stated, nil
}

// Write writes a release to a new file: what a release left does not change any more.
func (l *Release) Write(file string) error {
	raw, err := yaml.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	made, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = made.Write(raw)
	return errors.Join(err, made.Close())
}

// ReadRelease reads what Write wrote.
func ReadRelease(file string) (*Release, error) {
	release := &Release{}
	return release, readYAML(file, release)
}

// PlayUpgrade makes what a release left, starts the operator, and tells what it changes
// of that: nothing that would restart a pod may. Nor may it make anything, but objects of
// the kinds that earlier releases did not make.
func (b *Bench) PlayUpgrade(t testing.TB, kind Kind, release *Release) error {
	t.Helper()
	r := &run{Bench: b, TB: t, gate: fault.NewGate(nil), place: b.Places.Take()}
	r.scenario = Scenario{Kind: kind.Name, Controllers: kind.Controllers, ObservedHere: kind.ObservedHere, Steps: release.Declared}
	t.Cleanup(r.place.Leave)
	r.namespace = b.Env.Namespace(t)
	r.makeElsewhere()
	r.observe()
	r.actAsCluster(nil)
	defer r.end()
	if err := r.load(release); err != nil {
		return err
	}
	if err := r.settleAlone(append(slices.Clone(release.Declared), release.Stated...)); err != nil {
		return err
	}
	before := r.Recorder.State(r.namespace)
	r.start()
	if err := r.settle(nil, 0); err != nil {
		return err
	}
	after := r.Recorder.State(r.namespace)
	var problems []error
	for name, state := range before {
		if now, there := after[name].(map[string]any); !there || asks(now) != asks(state.(map[string]any)) {
			problems = append(problems,
				fmt.Errorf("%s is changed by the new version:\n%s\nbecomes\n%s", name, asks(state.(map[string]any)), asks(now)))
		}
	}
	for name := range after {
		of, _, _ := strings.Cut(name, "/")
		if _, there := before[name]; !there && !slices.Contains(kind.MadeAtUpgrade, of) {
			problems = append(problems, fmt.Errorf("%s is made by the new version", name))
		}
	}
	return errors.Join(problems...)
}

// load makes what a release left: what users declared, its status, the children, and
// what others did to them.
func (r *run) load(release *Release) error {
	uids := []string{namespaceHere, r.namespace}
	var others []Step
	for _, step := range release.Declared {
		if step.Manager != "" {
			others = append(others, step)
			continue
		}
		name, uid, err := r.declare(step, release)
		if err != nil {
			return err
		}
		uids = append(uids, uidOf+name, uid)
	}
	stated, err := replaced(release.Stated, strings.NewReplacer(uids...))
	if err != nil {
		return err
	}
	for _, step := range append(stated, others...) {
		if err := r.do(step); err != nil {
			return err
		}
	}
	return nil
}

// declare makes what a user declared, with its status, and returns its name and UID.
func (r *run) declare(step Step, release *Release) (name, uid string, err error) {
	if err := r.do(step); err != nil {
		return "", "", err
	}
	object, err := r.current(step)
	if err != nil {
		return "", "", err
	}
	name = called(object.GetKind(), object)
	if status, ok := release.Statuses[name]; ok {
		object.Object["status"] = status
		err = r.Env.Client.Status().Update(r.Context(), object)
	}
	return name, string(object.GetUID()), err
}

// replaced returns steps with their texts replaced.
func replaced(steps []Step, texts *strings.Replacer) ([]Step, error) {
	raw, err := yaml.Marshal(steps)
	if err != nil {
		return nil, err
	}
	var all []Step
	err = yaml.Unmarshal([]byte(texts.Replace(string(raw))), &all)
	return all, err
}

// settleAlone waits until the recorder has seen everything, and at least what was made: on a busy machine one kind may be seen
// much later than the others.
func (r *run) settleAlone(made []Step) error {
	last, since := -1, time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if now := r.activity(); now != last {
			last, since = now, time.Now()
		}
		if last > 0 && time.Since(since) > idle && r.sees(made) {
			return nil
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-tick.C:
		}
	}
}

// sees reports whether the recorder has seen what was made, of the kinds that it sees.
func (r *run) sees(made []Step) bool {
	seen := r.Recorder.State(r.namespace)
	for _, step := range made {
		object, err := r.placed(step.Apply)
		if err != nil {
			return false
		}
		if r.Recorder.Sees(r.namespace, object.GroupVersionKind()) && seen[called(object.GetKind(), object)] == nil {
			return false
		}
	}
	return true
}
