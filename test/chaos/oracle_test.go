//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// violation is an error that must never occur. Any other error that the oracle returns may
// still go away by itself.
type violation struct{ error }

func violated(format string, args ...any) error { return violation{fmt.Errorf(format, args...)} }

// revisionAnnotation counts the rollouts of a Deployment.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// state is everything of the namespace that the oracle looks at.
type state struct {
	apps        slipwayv1alpha1.WebAppList
	deployments appsv1.DeploymentList
	replicaSets appsv1.ReplicaSetList
	revisions   appsv1.ControllerRevisionList
	services    corev1.ServiceList
	autoscalers autoscalingv2.HorizontalPodAutoscalerList
	budgets     policyv1.PodDisruptionBudgetList
	pods        corev1.PodList
}

func (s *state) lists() []client.ObjectList {
	return []client.ObjectList{
		&s.apps, &s.deployments, &s.replicaSets, &s.revisions, &s.services, &s.autoscalers, &s.budgets, &s.pods,
	}
}

func read(ctx context.Context, namespace string) (*state, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s := &state{}
	for _, list := range s.lists() {
		if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return s, nil
}

// objects returns all of them.
func (s *state) objects() []client.Object {
	var all []client.Object
	for _, list := range s.lists() {
		// A list of a kind that is compiled in always has items.
		items, _ := meta.ExtractList(list)
		for _, item := range items {
			all = append(all, item.(client.Object))
		}
	}
	return all
}

// compare returns how the cluster differs from the model.
func (s *state) compare(apps map[string]*app) error {
	var problems []error
	for _, a := range apps {
		if err := s.compareApp(a); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", a.name, err))
		}
	}
	return errors.Join(append(problems, s.leftovers(apps))...)
}

func (s *state) compareApp(a *app) error {
	live, err := s.webApp(a)
	if err != nil {
		return err
	}
	// Pods are looked at whatever the application says of itself.
	if err := s.compareRestarts(a); err != nil {
		return err
	}
	if err := ready(live); err != nil {
		return err
	}
	deployment, err := s.deployment(a, live)
	if err != nil {
		return err
	}
	return errors.Join(s.compareService(a, live), s.compareScaling(a, live), s.comparePods(a), s.compareHistory(a, live, deployment))
}

// webApp returns the application, which must exist with the spec that was acknowledged.
func (s *state) webApp(a *app) (*slipwayv1alpha1.WebApp, error) {
	live := find(s.apps.Items, a.name)
	if live == nil {
		return nil, violated("the WebApp is lost")
	}
	want := a.spec()
	got := live.Spec
	least := int32(0)
	if got.Autoscaling != nil {
		least = *got.Autoscaling.MinReplicas
	}
	if got.Image != want.Image || got.Port != want.Port || *got.Replicas != a.replicas || got.Env["MESSAGE"] != want.Env["MESSAGE"] || least != a.least {
		return nil, violated("a change is lost: the spec is %+v, want %+v", got, want)
	}
	if live.Status.Rollback != nil {
		return nil, violated("rolled back, though every revision is good: %s", live.Status.Rollback.Message)
	}
	return live, nil
}

func ready(live *slipwayv1alpha1.WebApp) error {
	if live.Status.ObservedGeneration != live.Generation {
		return fmt.Errorf("status speaks of generation %d of %d", live.Status.ObservedGeneration, live.Generation)
	}
	if c := meta.FindStatusCondition(live.Status.Conditions, slipwayv1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue && !servesUnscaled(live, c) {
		return fmt.Errorf("not ready: %+v", c)
	}
	if err := truth.Check(live); err != nil {
		return violation{err}
	}
	return nil
}

// servesUnscaled reports whether nothing is wrong with an application but that its autoscaler has
// no metrics to go by, as none in this cluster has. Status says so once that has looked.
func servesUnscaled(live *slipwayv1alpha1.WebApp, ready *metav1.Condition) bool {
	conditions := live.Status.Conditions
	return live.Spec.Autoscaling != nil && ready.Reason == slipwayv1alpha1.ReasonAutoscalerFailing &&
		meta.IsStatusConditionTrue(conditions, slipwayv1alpha1.ConditionAvailable) &&
		meta.IsStatusConditionFalse(conditions, slipwayv1alpha1.ConditionProgressing)
}

// deployment returns the application's Deployment, which must be what the spec says.
func (s *state) deployment(a *app, live *slipwayv1alpha1.WebApp) (*appsv1.Deployment, error) {
	deployment := find(s.deployments.Items, a.name)
	if deployment == nil || !metav1.IsControlledBy(deployment, live) {
		return nil, errors.New("there is no Deployment of this WebApp")
	}
	rollouts, err := strconv.Atoi(deployment.Annotations[revisionAnnotation])
	if err != nil {
		return nil, fmt.Errorf("revision of the Deployment: %w", err)
	}
	if rollouts > 1+a.templates {
		return nil, violated("%d rollouts after %d changes of what pods are made of", rollouts, a.templates)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	environment := map[string]string{}
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
	}
	switch {
	case container.Image != a.imageName():
		return nil, fmt.Errorf("the Deployment runs image %q, want %q", container.Image, a.imageName())
	case container.Ports[0].ContainerPort != a.port:
		return nil, fmt.Errorf("the Deployment has port %d, want %d", container.Ports[0].ContainerPort, a.port)
	case environment["MESSAGE"] != a.messageText():
		return nil, fmt.Errorf("the Deployment says %q, want %q", environment["MESSAGE"], a.messageText())
	case *deployment.Spec.Replicas != a.pods:
		return nil, fmt.Errorf("the Deployment asks for %d pods, want %d", *deployment.Spec.Replicas, a.pods)
	}
	return deployment, nil
}

// compareConfigs looks whether each Deployment was made with the content of its Secret
// that was acknowledged last. versions are those that it has been there since.
func (s *state) compareConfigs(versions map[string]int64, apps map[string]*app) error {
	for _, a := range apps {
		deployment := find(s.deployments.Items, a.name)
		if deployment == nil {
			return fmt.Errorf("%s: there is no Deployment", a.name)
		}
		var used map[string]string
		if err := json.Unmarshal([]byte(deployment.Annotations[desired.AnnotationConfigVersions]), &used); err != nil {
			return fmt.Errorf("%s: the versions of its configuration: %w", a.name, err)
		}
		text, _, _ := strings.Cut(used["Secret/"+a.name+"#GREETING"], "/")
		text, _, _ = strings.Cut(text, ":") // behind it, a key that is missing
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: the version of its Secret: %w", a.name, err)
		}
		if version < versions[a.name] {
			return fmt.Errorf("%s: pods are made for version %d of the Secret, want at least %d", a.name, version, versions[a.name])
		}
	}
	return nil
}

func (s *state) compareService(a *app, live *slipwayv1alpha1.WebApp) error {
	service := find(s.services.Items, a.name)
	if service == nil || !metav1.IsControlledBy(service, live) {
		return errors.New("there is no Service of this WebApp")
	}
	if got := service.Spec.Ports[0].Port; got != a.port || len(service.Spec.Ports) != 1 {
		return fmt.Errorf("the Service has %d ports, the first is %d, want %d", len(service.Spec.Ports), got, a.port)
	}
	return nil
}

func (s *state) compareScaling(a *app, live *slipwayv1alpha1.WebApp) error {
	autoscaler, budget := find(s.autoscalers.Items, a.name), find(s.budgets.Items, a.name)
	switch {
	case (autoscaler != nil) != (a.least > 0):
		return fmt.Errorf("there is an autoscaler: %t, want the contrary", autoscaler != nil)
	case autoscaler != nil && (!metav1.IsControlledBy(autoscaler, live) || *autoscaler.Spec.MinReplicas != a.least):
		return fmt.Errorf("the autoscaler's lower bound is %d, want %d", *autoscaler.Spec.MinReplicas, a.least)
	case (budget != nil) != (a.maxReplicas() >= 2):
		return fmt.Errorf("there is a disruption budget: %t, want the contrary", budget != nil)
	case budget != nil && !metav1.IsControlledBy(budget, live):
		return errors.New("the disruption budget is another WebApp's")
	}
	return nil
}

// compareRestarts looks for containers that were restarted: nobody has killed any.
func (s *state) compareRestarts(a *app) error {
	if n := livecluster.Restarts(itemsOf(s.pods.Items, a.name)); n > 0 {
		return violated("containers were started anew %d times", n)
	}
	return nil
}

func (s *state) comparePods(a *app) error {
	pods := livecluster.Staying(itemsOf(s.pods.Items, a.name))
	if len(pods) != int(a.pods) {
		return fmt.Errorf("%d pods, want %d", len(pods), a.pods)
	}
	for i := range pods {
		if !isReady(&pods[i]) {
			return fmt.Errorf("pod %s is not ready", pods[i].Name)
		}
	}
	return nil
}

// compareHistory looks for one ReplicaSet too many, and for the revision to return to.
func (s *state) compareHistory(a *app, live *slipwayv1alpha1.WebApp, deployment *appsv1.Deployment) error {
	active := 0
	sets := itemsOf(s.replicaSets.Items, a.name)
	for i := range sets {
		if !metav1.IsControlledBy(&sets[i], deployment) {
			return fmt.Errorf("ReplicaSet %s is of another Deployment", sets[i].Name)
		}
		if *sets[i].Spec.Replicas > 0 {
			active++
		}
	}
	if len(sets) > 1+a.templates {
		return violated("%d ReplicaSets after %d changes of what pods are made of", len(sets), a.templates)
	}
	if want := min(1, int(a.pods)); active != want {
		return fmt.Errorf("%d ReplicaSets have pods, want %d", active, want)
	}
	revisions := itemsOf(s.revisions.Items, a.name)
	for i := range revisions {
		if !metav1.IsControlledBy(&revisions[i], live) {
			return fmt.Errorf("revision %s is of another WebApp", revisions[i].Name)
		}
	}
	if len(revisions) > 5 || len(revisions) > 1+a.templates {
		return violated("%d revisions are kept after %d changes of what pods are made of", len(revisions), a.templates)
	}
	if a.pods == 0 {
		// Nothing has shown that the revision is good.
		return nil
	}
	for i := range revisions {
		if revisions[i].Name == live.Status.Revision && live.Status.LastGoodRevision == live.Status.Revision {
			return nil
		}
	}
	return fmt.Errorf("revision %q is not kept as the last good one", live.Status.Revision)
}

// leftovers looks for anything beyond what belongs to the applications, each of which has
// one object of a kind, by its own name.
func (s *state) leftovers(apps map[string]*app) error {
	var left []string
	for _, object := range s.objects() {
		a := apps[appOf(object)]
		extra := a == nil
		switch object.(type) {
		case *corev1.Pod:
			extra = extra && object.GetDeletionTimestamp() == nil
		case *appsv1.ReplicaSet, *appsv1.ControllerRevision:
			// There may be several, by names of their own.
		default:
			extra = extra || object.GetName() != a.name
		}
		if extra {
			left = append(left, describe(object))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("nobody asked for %s", strings.Join(left, ", "))
	}
	return nil
}

// appOf is the name of the application that an object belongs to.
func appOf(object client.Object) string {
	if app, ok := object.(*slipwayv1alpha1.WebApp); ok {
		return app.Name
	}
	return object.GetLabels()[slipwayv1alpha1.LabelWebApp]
}

func describe(object client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T ", object), "*") + object.GetName()
}

// object is a pointer to a T that is an API object.
type object[T any] interface {
	*T
	client.Object
}

// find returns the item of that name, or nil.
func find[T any, P object[T]](items []T, name string) P {
	for i := range items {
		if P(&items[i]).GetName() == name {
			return &items[i]
		}
	}
	return nil
}

// itemsOf returns the items that belong to an application.
func itemsOf[T any, P object[T]](items []T, app string) []T {
	var list []T
	for i := range items {
		if appOf(P(&items[i])) == app {
			list = append(list, items[i])
		}
	}
	return list
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
