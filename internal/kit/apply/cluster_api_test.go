//go:build apitest

package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/watch"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// ofOwner is on every child of a wide owner, with its name.
const ofOwner = "example.com/owner"

// wide is an owner that is in no namespace. It has a namespace, and a quota in it.
type wide struct {
	*testing.T
	applier *apply.Applier
	owner   *slipwayv1alpha1.MonitorRule
	// pods is how many pods the quota allows. Empty: no quota is wanted.
	pods string
}

func newWide(t *testing.T) *wide {
	// A rule stands for a kind that is in no namespace. None of its own fields matters.
	owner := &slipwayv1alpha1.MonitorRule{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "wide-"},
		Spec:       slipwayv1alpha1.MonitorRuleSpec{When: "false"},
	}
	if err := env.Client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	w := &wide{T: t, owner: owner, pods: "1"}
	w.restart()
	return w
}

// restart forgets everything.
func (w *wide) restart() {
	w.applier = &apply.Applier{
		Client: env.Client, Live: env.Client, FieldManager: "slipway-test", Fresh: apply.NewFreshness(env.Client, env.Client),
	}
}

func (w *wide) reference() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion("slipway.dev/v1alpha1").WithKind("MonitorRule").WithName(w.owner.Name).WithUID(w.owner.UID).WithController(true)
}

// key is where the quota is: the namespace is called after the owner.
func (w *wide) key() types.NamespacedName {
	return types.NamespacedName{Namespace: w.owner.Name, Name: "limits"}
}

// children are the namespace and the quota, as they are read by name and by key.
func (w *wide) children() (*corev1.Namespace, *corev1.ResourceQuota, []apply.Child) {
	w.Helper()
	namespace, quota := &corev1.Namespace{}, &corev1.ResourceQuota{}
	err := errors.Join(
		apply.Load(w.Context(), w.applier, w.owner, w.owner.Name, namespace),
		apply.LoadFrom(w.Context(), w.applier, w.owner, w.key(), quota))
	if err != nil {
		w.Fatal(err)
	}
	labels := map[string]string{ofOwner: w.owner.Name}
	var limits *corev1ac.ResourceQuotaApplyConfiguration
	if w.pods != "" {
		limits = corev1ac.ResourceQuota(w.key().Name, w.key().Namespace).WithLabels(labels).WithOwnerReferences(w.reference()).
			WithSpec(corev1ac.ResourceQuotaSpec().WithHard(corev1.ResourceList{corev1.ResourcePods: resource.MustParse(w.pods)}))
	}
	return namespace, quota, []apply.Child{
		apply.Wanted(corev1ac.Namespace(w.owner.Name).WithLabels(labels).WithOwnerReferences(w.reference()), namespace),
		apply.Wanted(limits, quota),
	}
}

// apply makes the children as desired, and says which version each of them has then.
func (w *wide) apply() (versions []string, err error) {
	w.Helper()
	namespace, quota, children := w.children()
	err = w.applier.All(w.Context(), w.owner, children, nil)
	return []string{namespace.ResourceVersion, quota.ResourceVersion}, err
}

func (w *wide) mustApply() []string {
	w.Helper()
	versions, err := w.apply()
	if err != nil {
		w.Fatal(err)
	}
	return versions
}

func TestAnOwnerInNoNamespaceHasANamespaceAndWhatIsInIt(t *testing.T) {
	w := newWide(t)
	made := w.mustApply()
	if made[0] == "" || made[1] == "" {
		t.Fatalf("made at the versions %q", made)
	}
	for _, what := range []string{"at rest", "after a restart"} {
		if diff := cmp.Diff(made, w.mustApply()); diff != "" {
			t.Errorf("%s something was written:\n%s", what, diff)
		}
		w.restart()
	}

	namespace, quota, _ := w.children()
	if !metav1.IsControlledBy(namespace, w.owner) || !metav1.IsControlledBy(quota, w.owner) {
		t.Errorf("the owner controls neither %+v nor %+v", namespace.OwnerReferences, quota.OwnerReferences)
	}
	namespace.Labels[ofOwner], quota.Spec.Hard[corev1.ResourcePods] = "theirs", resource.MustParse("7")
	for _, object := range []client.Object{namespace, quota} {
		if err := env.Client.Update(t.Context(), object, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	w.mustApply()
	namespace, quota, _ = w.children()
	if got := quota.Spec.Hard.Pods().String(); got != "1" || namespace.Labels[ofOwner] != w.owner.Name {
		t.Errorf("not restored: %q pods, labels %v", got, namespace.Labels)
	}

	w.pods = ""
	w.mustApply()
	if _, quota, _ = w.children(); quota.UID != "" {
		t.Error("a quota that is not wanted is still there")
	}
}

// The cache may not show a child, because somebody has taken its label away. It is looked for, and left as it is.
func TestAChildOfAnOwnerInNoNamespaceIsFoundThoughTheCacheDoesNotShowIt(t *testing.T) {
	w := newWide(t)
	made := w.mustApply()
	_, _, children := w.children()
	children[0].Current, children[1].Current = &corev1.Namespace{}, &corev1.ResourceQuota{}
	if err := w.applier.All(t.Context(), w.owner, children, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, []string{children[0].Current.GetResourceVersion(), children[1].Current.GetResourceVersion()}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsInTheWayOfAChildInANamespaceIsToldWithItsNamespace(t *testing.T) {
	w := newWide(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.owner.Name}}
	if err := env.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: w.key().Name, Namespace: w.key().Namespace}}
	environment.Eventually(t, func() error { return env.Client.Create(t.Context(), quota) })
	if found, of, _ := w.children(); found.UID != "" || of.UID != "" {
		t.Errorf("what is not the owner's is read: %q, %q", found.UID, of.UID)
	}
	_, err := w.apply()
	for _, want := range []string{
		fmt.Sprintf("Namespace %q exists and was not made by Slipway", namespace.Name),
		fmt.Sprintf("ResourceQuota %q in namespace %q exists and was not made by Slipway", quota.Name, quota.Namespace),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	places := map[string]types.UID{}
	for _, blocker := range outcome.Blockers(err) {
		places[client.ObjectKeyFromObject(blocker).String()] = blocker.UID
	}
	if diff := cmp.Diff(map[string]types.UID{"/" + namespace.Name: namespace.UID, w.key().String(): quota.UID}, places); diff != "" {
		t.Error(diff)
	}
}

// An index of the label finds the children in every namespace, and no other owner's.
func TestWhatAnOwnerInNoNamespaceHasIsFoundInEveryNamespace(t *testing.T) {
	cached, err := cache.New(env.Config, cache.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := cached.IndexField(t.Context(), &corev1.ResourceQuota{}, ofOwner, watch.LabelIndex(ofOwner)); err != nil {
		t.Fatal(err)
	}
	w, other := newWide(t), newWide(t)
	for range 2 {
		for _, of := range []*wide{w, other} {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{
				Name: "of-" + of.owner.Name, Namespace: env.Namespace(t), Labels: map[string]string{ofOwner: of.owner.Name},
			}}
			if err := env.Client.Create(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
		}
	}
	go func() { _ = cached.Start(t.Context()) }()
	if !cached.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache has not started")
	}
	found := &corev1.ResourceQuotaList{}
	if err := cached.List(t.Context(), found, watch.OwnedBy(w.owner, ofOwner)); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 2 || found.Items[0].Namespace == found.Items[1].Namespace {
		t.Errorf("found %d quotas: %+v", len(found.Items), found.Items)
	}
	for _, quota := range found.Items {
		if quota.Labels[ofOwner] != w.owner.Name {
			t.Errorf("found one of %q", quota.Labels[ofOwner])
		}
	}
}
