//go:build apitest && monitortest

package crdcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

// The oracle is the API server. A definition is installed, objects are made, the definition is changed, and then the same writes
// are asked of the API server (as dry runs) and of the Checker.
//
// Compared are: the object as it is read; of each write whether it is refused, and for which fields; and of each verdict whether
// it reported which writes are refused.

// applied is a field of the root that only the changed definition has. Its default tells that the change is in effect.
const applied = "applied"

// scenario is a change that is played against the API server.
type scenario struct {
	name          string
	before, after *apiextensionsv1.CustomResourceDefinition
	objects       []map[string]any
}

// counts say that something was compared.
type counts struct {
	objects, writes, refused, verdicts, skipped atomic.Int64
}

func (c *counts) String() string {
	return fmt.Sprintf("%d objects, %d writes of which %d were refused, %d of them foretold by verdicts; %d definitions refused",
		c.objects.Load(), c.writes.Load(), c.refused.Load(), c.verdicts.Load(), c.skipped.Load())
}

// played is a scenario on the API server.
type played struct {
	*testing.T
	*scenario
	*counts
	client  dynamic.ResourceInterface
	checker *Checker
	strict  bool
}

// definitionsResource is where definitions are.
var definitionsResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// rename gives a scenario's definitions a name of their own.
func (s *scenario) rename(plural string) {
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{s.before, s.after} {
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget" + strings.ToUpper(plural), Plural: plural}
		crd.Name = plural + "." + crd.Spec.Group
	}
	root := s.after.Spec.Versions[0].Schema.OpenAPIV3Schema
	root.Properties[applied] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"yes"`)}}
}

// playAll plays scenarios at the same time, because a definition takes seconds to be served. prefix begins the names of their
// kinds.
func playAll(t *testing.T, prefix string, scenarios []*scenario, strict bool) *counts {
	t.Helper()
	all := &counts{}
	config := rest.CopyConfig(env.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := env.Namespace(t)
	wait := sync.WaitGroup{}
	atOnce := make(chan struct{}, 16)
	for i, s := range scenarios {
		s.rename(fmt.Sprintf("%s%d", prefix, i))
		p := &played{T: t, scenario: s, counts: all, strict: strict}
		resource := schema.GroupVersionResource{Group: s.before.Spec.Group, Version: "v1", Resource: s.before.Spec.Names.Plural}
		p.client = client.Resource(resource).Namespace(namespace)
		wait.Go(func() {
			if err := p.install(client); err != nil {
				t.Errorf("%s: %v", s.name, err)
				return
			}
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			if err := p.play(client); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		})
	}
	wait.Wait()
	t.Logf("%s: %s", prefix, all)
	return all
}

func toUnstructured(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

var errNotYet = errors.New("not yet")

// eventually waits until check returns nil. It may be called from any goroutine.
func (p *played) eventually(check func() error) error {
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-deadline:
			return fmt.Errorf("after a minute still: %w", err)
		case <-tick.C:
		}
	}
}

// install makes the definition and waits until it is served.
func (p *played) install(client dynamic.Interface) error {
	crd, err := toUnstructured(p.before)
	if err != nil {
		return err
	}
	if _, err := client.Resource(definitionsResource).Create(p.Context(), crd, metav1.CreateOptions{}); err != nil {
		if p.strict {
			return fmt.Errorf("the API server refuses the definition: %w", err)
		}
		p.skipped.Add(1)
		p.Logf("%s: the API server refuses the definition: %v", p.name, err)
		p.scenario.objects = nil
		return nil
	}
	return p.eventually(func() error {
		_, err := p.client.List(p.Context(), metav1.ListOptions{})
		return err
	})
}

// play makes the objects, changes the definition, and compares.
func (p *played) play(client dynamic.Interface) error {
	var made []*unstructured.Unstructured
	for i, content := range p.scenario.objects {
		object, err := p.make(fmt.Sprintf("w%d", i), content)
		if err != nil {
			if p.strict {
				return fmt.Errorf("object %d: %w", i, err)
			}
			continue
		}
		made = append(made, object)
	}
	if len(made) == 0 {
		return nil
	}
	if refused, err := p.change(client); err != nil || refused {
		return err
	}
	checker, err := NewChecker(p.after, "v1")
	if err != nil {
		return fmt.Errorf("the API server accepted the definition: %w", err)
	}
	p.checker = checker
	for _, live := range made {
		if err := p.compare(live); err != nil {
			return err
		}
	}
	return nil
}

// make makes an object, and its status where that is a subresource. It returns the object as a client gets it.
func (p *played) make(name string, content map[string]any) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	object.SetAPIVersion(p.before.Spec.Group + "/v1")
	object.SetKind(p.before.Spec.Names.Kind)
	object.SetName(name)
	object.SetNamespace("")
	made, err := p.client.Create(p.Context(), object, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	status, ok := content["status"]
	if sub := p.before.Spec.Versions[0].Subresources; !ok || sub == nil || sub.Status == nil {
		return made, nil
	}
	made.Object["status"] = status
	return p.client.UpdateStatus(p.Context(), made, metav1.UpdateOptions{})
}

// change applies the changed definition and waits until it is in effect. refused reports whether the API server refuses it.
func (p *played) change(client dynamic.Interface) (refused bool, err error) {
	changed, err := toUnstructured(p.after)
	if err != nil {
		return false, err
	}
	err = p.eventually(func() error {
		current, err := client.Resource(definitionsResource).Get(p.Context(), changed.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		changed.SetResourceVersion(current.GetResourceVersion())
		_, err = client.Resource(definitionsResource).Update(p.Context(), changed, metav1.UpdateOptions{})
		if apierrors.IsInvalid(err) {
			refused = true
			p.Logf("%s: the API server refuses the change: %v", p.name, err)
			return nil
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if refused {
		p.skipped.Add(1)
		if p.strict {
			return true, errors.New("the API server refuses the changed definition")
		}
		return true, nil
	}
	return false, p.eventually(func() error {
		list, err := p.client.List(p.Context(), metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 || list.Items[0].Object[applied] != "yes" {
			return errNotYet
		}
		return nil
	})
}

// compare compares one object.
func (p *played) compare(live *unstructured.Unstructured) error {
	p.counts.objects.Add(1)
	got, err := p.client.Get(p.Context(), live.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	read := p.checker.read(live.Object)
	if diff := cmp.Diff(withoutMetadata(got.Object), withoutMetadata(read)); diff != "" {
		return fmt.Errorf("object %v is read as (-API server +Checker):\n%s", live.Object["spec"], diff)
	}
	verdict := p.checker.Check(p.Context(), live.Object)
	if verdict.State == Unknown || verdict.Incomplete != "" || verdict.MoreProblems > 0 {
		return fmt.Errorf("the verdict about %v is %+v", live.Object["spec"], verdict)
	}
	for _, w := range p.writes(got) {
		if err := p.try(got, w, verdict); err != nil {
			return fmt.Errorf("%s: %w\nspec %s\nstatus %s", w.what, err, jsonOf(got.Object["spec"]), jsonOf(got.Object["status"]))
		}
	}
	return p.tryCreation(got, verdict)
}

func withoutMetadata(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "metadata")
	return object
}

// write is a write that is tried.
type write struct {
	what string
	// at is the field that it changes, nil for a label.
	at     *path
	object *unstructured.Unstructured
	status bool
}

// writes are the writes that are tried on an object: a label, and of each value another one, null, and none.
func (p *played) writes(object *unstructured.Unstructured) []write {
	labelled := object.DeepCopy()
	labelled.SetLabels(map[string]string{"touched": "yes"})
	list := []write{{what: "label", object: labelled}}
	var visit func(at *path, value any)
	visit = func(at *path, value any) {
		replacements := edits(value)
		for _, what := range slices.Sorted(maps.Keys(replacements)) {
			if what == "other type" && (slices.Contains(metaFields, at.name) || at.parent != nil && at.parent.name == "metadata") {
				continue // of an embedded object: it is refused before it is validated
			}
			replaced := replacements[what]
			status := p.checker.hasStatus && at.steps()[0].name == "status"
			list = append(list, write{
				what: what + " " + at.String(), at: at, status: status,
				object: &unstructured.Unstructured{Object: replace(object.DeepCopy().Object, at.steps(), replaced)},
			})
		}
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				visit(at.child(name), value[name])
			}
		case []any:
			for i := range value {
				visit(at.item(i), value[i])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object.Object)) {
		if !slices.Contains(metaFields, name) && name != applied {
			visit((*path)(nil).child(name), object.Object[name])
		}
	}
	return list
}

// removed stands for no value.
type removed struct{}

func edits(value any) map[string]any {
	list := map[string]any{"remove": removed{}}
	switch value := value.(type) {
	case string:
		list["lengthen"], list["shorten"], list["other type"] = value+"x", value[:len(value)/2], int64(3)
	case int64:
		list["increase"], list["decrease"] = value+1, value-1
	case float64:
		list["increase"] = value + 1
	case bool:
		list["flip"] = !value
	case map[string]any:
		clone := maps.Clone(value)
		for name, added := range map[string]any{"b": "new", "zz": "unknown"} {
			if _, has := value[name]; !has {
				clone[name] = added
			}
		}
		list["add to"] = clone
	case []any:
		list["nothing in"] = []any{}
		if len(value) > 0 {
			list["duplicate in"] = append(slices.Clone(value), runtime.DeepCopyJSONValue(value[0]))
			list["reverse"] = reversed(value)
		}
	}
	return list
}

func reversed(list []any) []any {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func replace(object map[string]any, steps []*path, value any) map[string]any {
	last := steps[len(steps)-1]
	var at any = object
	for _, step := range steps[:len(steps)-1] {
		at = inside(at, step)
	}
	switch at := at.(type) {
	case map[string]any:
		at[last.name] = value
		if value == (removed{}) {
			delete(at, last.name)
		}
	case []any:
		at[last.index] = value
		if value == (removed{}) {
			at[last.index] = nil
		}
	}
	return object
}

func inside(value any, step *path) any {
	if list, ok := value.([]any); ok {
		return list[step.index]
	}
	return value.(map[string]any)[step.name]
}

// try asks for a write, and compares what the API server says with what the Checker foretold.
func (p *played) try(read *unstructured.Unstructured, w write, verdict Verdict) error {
	ctx := p.Context()
	dry := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	send := p.client.Update
	if w.status {
		send = func(ctx context.Context, object *unstructured.Unstructured, options metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
			return p.client.UpdateStatus(ctx, object, options)
		}
	}
	_, refusal := send(ctx, w.object, dry)
	s := &session{Checker: p.checker, ctx: ctx}
	decoded := p.checker.decode(w.object.Object, false)
	var foretold field.ErrorList
	if w.status {
		foretold = s.updateStatus(read.Object, decoded)
	} else {
		foretold = s.update(read.Object, decoded)
	}
	if err := p.same(refusal, foretold); err != nil {
		return err
	}
	return p.verdictTold(read, decoded, w, verdict, refusal)
}

// same compares the fields for which the API server refuses a write with those that were foretold.
func (p *played) same(refusal error, foretold field.ErrorList) error {
	p.counts.writes.Add(1)
	if refusal == nil {
		if len(foretold) > 0 {
			return fmt.Errorf("the API server accepts it, and the Checker says %v", foretold)
		}
		return nil
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(refusal, &status) || status.Status().Reason != metav1.StatusReasonInvalid {
		return fmt.Errorf("the API server answers %w", refusal)
	}
	p.refused.Add(1)
	var really, said []string
	for _, cause := range status.Status().Details.Causes {
		really = append(really, cause.Field+": "+withoutOutcome(cause.Message))
	}
	for _, err := range foretold {
		said = append(said, err.Field+": "+withoutOutcome(err.ErrorBody()))
	}
	slices.Sort(really)
	slices.Sort(said)
	if diff := cmp.Diff(really, said); diff != "" {
		return fmt.Errorf("the API server refuses it for other reasons (-API server +Checker):\n%s", diff)
	}
	return nil
}

// withoutOutcome leaves out whether a rule is false or ends in an error. That depends on the order in which maps are read.
func withoutOutcome(message string) string {
	if _, rule, ok := strings.Cut(message, "rule: "); ok {
		return rule
	}
	return message
}

// verdictTold checks that the verdict told whether a write is refused. It tells of writes that leave what is wrong as it is.
func (p *played) verdictTold(read *unstructured.Unstructured, decoded map[string]any, w write, verdict Verdict, refusal error) error {
	s := &session{Checker: p.checker, ctx: p.Context()}
	wrote := withStatusOf(decoded, read.Object)
	if w.status || !p.checker.hasStatus {
		wrote = decoded
	}
	if cmp.Diff(withoutMetadata(wrote), withoutMetadata(read.Object)) == "" && w.at != nil {
		return nil // it changes nothing
	}
	if strings.HasPrefix(w.what, "reverse") && ptr.Deref(p.schemaAt(w.at).XListType, "") == "map" {
		return nil // another order is no change of a list of type map
	}
	before, after := s.wrong(read.Object, read.Object), s.wrong(wrote, read.Object)
	if !slices.Equal(before, after) {
		return nil
	}
	reported := false
	for _, problem := range verdict.Problems {
		switch problem.When {
		case EveryWrite:
			// A status is written without a look at the rest of the schema, so only the verdict's own words count.
			reported = reported || !w.status
		case EveryStatusWrite:
			reported = reported || w.status
		case OnEdit:
			reported = reported || within(w.at, problem.Edit) || p.isKey(w.at) && strings.HasPrefix(problem.Edit, w.at.parent.String())
		case OnCreation:
			reported = reported || p.isKey(w.at) && strings.HasPrefix(problem.Field, w.at.parent.String())
		}
	}
	if w.status && refusal != nil && len(verdict.Problems) > 0 && verdict.State == Breaks {
		reported = true
	}
	if reported != (refusal != nil) {
		return fmt.Errorf("the verdict is %v, and the API server answers %w", verdictLines(verdict), refusal)
	}
	p.verdicts.Add(1)
	return nil
}

// isKey reports whether a field is a key of an item. With another key the item is another one, so all in it counts as changed.
func (p *played) isKey(at *path) bool {
	if at == nil || at.parent == nil || at.parent.step != stepIndex {
		return false
	}
	list := p.schemaAt(at.parent.parent)
	return ptr.Deref(list.XListType, "") == "map" && slices.Contains(list.XListMapKeys, at.name)
}

// schemaAt returns the schema of a field, an empty one where there is none.
func (p *played) schemaAt(at *path) apiextensionsv1.JSONSchemaProps {
	s := *schemaOf(&p.after.Spec.Versions[0])
	for _, step := range at.steps() {
		property, known := s.Properties[step.name]
		values, _ := valuesOf(&s)
		switch items := itemsOf(&s); {
		case step.step == stepIndex && items != nil:
			s = *items
		case known:
			s = property
		case values != nil:
			s = *values
		default:
			return apiextensionsv1.JSONSchemaProps{}
		}
	}
	return s
}

// wrong returns the keys of whatever is wrong with an object, whatever of it is let through.
func (s *session) wrong(object, old map[string]any) []string {
	errs := s.create(object)
	if s.hasStatus {
		plain := *s.Checker
		plain.hasStatus = false
		errs = (&session{Checker: &plain, ctx: s.ctx}).create(object)
	}
	errs = append(errs, s.evaluate(object, old)...)
	var keys []string
	for _, err := range errs {
		keys = append(keys, keyOf(err))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// within reports whether a field is the other one, or in it.
func within(at *path, other string) bool {
	for ; at != nil; at = at.parent {
		if at.String() == other {
			return true
		}
	}
	return false
}

// tryCreation asks for an object like this one.
func (p *played) tryCreation(read *unstructured.Unstructured, verdict Verdict) error {
	object := read.DeepCopy()
	object.SetName("another")
	object.SetResourceVersion("")
	_, refusal := p.client.Create(p.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	s := &session{Checker: p.checker, ctx: p.Context()}
	if err := p.same(refusal, s.create(p.checker.decode(object.Object, false))); err != nil {
		return fmt.Errorf("a new object: %w", err)
	}
	if refusal != nil && len(verdict.Problems) == 0 {
		return fmt.Errorf("a new object is refused, and the verdict has no problem: %w", refusal)
	}
	return nil
}

func TestOracleOfTheCases(t *testing.T) {
	t.Parallel()
	var scenarios []*scenario
	for _, c := range changeCases {
		before, after := c.definitions(t)
		s := &scenario{name: c.name, before: before, after: after}
		for i := range c.objects {
			s.objects = append(s.objects, c.object(t, i))
		}
		scenarios = append(scenarios, s)
	}
	all := playAll(t, "cases", scenarios, true)
	if all.refused.Load() < 100 || all.verdicts.Load() < 200 {
		t.Errorf("too little was compared: %s", all)
	}
}

// Random definitions, random changes of them and random objects: the same comparison.
func TestOracleOfRandomChanges(t *testing.T) {
	t.Parallel()
	count, source := property.Inputs(t, 400, 30)
	for start := 0; start < count; start += 40 {
		var scenarios []*scenario
		for i := start; i < min(count, start+40); i++ {
			r := random{source(uint64(i))}
			before, after := r.pair()
			s := &scenario{name: fmt.Sprintf("random change %d", i), before: before, after: after}
			for range 3 {
				s.objects = append(s.objects, r.instance(before))
			}
			scenarios = append(scenarios, s)
		}
		all := playAll(t, fmt.Sprintf("random%dx", start), scenarios, false)
		if all.refused.Load() < 20 || all.verdicts.Load() < 20 || all.skipped.Load()*2 > int64(len(scenarios)) {
			t.Errorf("too little was compared: %s", all)
		}
	}
}
