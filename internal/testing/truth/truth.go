// Package truth checks that an object's conditions have reasons that the API defines,
// and do not contradict each other, its generation, or what kstatus, and with it kubectl
// wait and GitOps tools, make of them.
package truth

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Object is an object with conditions.
type Object interface {
	runtime.Object
	metav1.Object
	GetConditions() []metav1.Condition
}

// alwaysPresent are the conditions that every object of most kinds has once its controller has
// seen it. All others exist only while they are true.
var alwaysPresent = []string{
	slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionAvailable,
	slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ConditionDegraded,
}

// presentOf are the conditions that every object of the kind has once its controller has seen it.
func presentOf(object Object) []string {
	switch o := object.(type) {
	case *slipwayv1alpha1.APIGateway:
		return append(slices.Clone(alwaysPresent), slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ConditionResolvedRefs,
			slipwayv1alpha1.ConditionProgrammed)
	case *slipwayv1alpha1.Backup:
		present := []string{
			slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ConditionRPOMet,
			slipwayv1alpha1.ConditionRetentionApplied,
		}
		if o.Status.Drill != nil {
			present = append(present, slipwayv1alpha1.ConditionDrillPassed)
		}
		return present
	case *slipwayv1alpha1.BackupRun, *slipwayv1alpha1.Restore:
		return []string{slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionProgressing}
	case *slipwayv1alpha1.MonitorRule:
		return []string{slipwayv1alpha1.ConditionReady}
	default:
		return alwaysPresent
	}
}

// Check returns what is wrong with the conditions of an object that its controller
// has seen.
func Check(object Object) error {
	conditions := object.GetConditions()
	var problems []error
	for _, conditionType := range presentOf(object) {
		if meta.FindStatusCondition(conditions, conditionType) == nil {
			problems = append(problems, fmt.Errorf("condition %s is missing", conditionType))
		}
	}
	reasons, err := Reasons()
	problems = append(problems, err)
	for _, c := range conditions {
		problems = append(problems, checkOne(c, object))
		if _, ok := reasons[c.Reason]; err == nil && !ok {
			problems = append(problems, fmt.Errorf("condition %s has reason %q, which the API does not define", c.Type, c.Reason))
		}
	}
	ready := meta.IsStatusConditionTrue(conditions, slipwayv1alpha1.ConditionReady)
	for _, contrary := range []string{
		slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionProgressing,
	} {
		if ready && meta.IsStatusConditionTrue(conditions, contrary) {
			problems = append(problems, fmt.Errorf("ready and %s at the same time", contrary))
		}
	}
	problems = append(problems, checkSilence(object))
	if gateway, ok := object.(*slipwayv1alpha1.APIGateway); ok {
		problems = append(problems, checkRoutes(gateway, ready))
	}
	return errors.Join(append(problems, checkKstatus(object, ready))...)
}

// CheckAtRest is Check for an object that its controller has nothing more to do for:
// status speaks of the spec as it is.
func CheckAtRest(object Object) error {
	observed, err := observedGeneration(object)
	if err != nil {
		return err
	}
	if observed != object.GetGeneration() {
		return fmt.Errorf("status speaks of generation %d of %d", observed, object.GetGeneration())
	}
	return Check(object)
}

// Ready reports whether status says that the object is ready as its spec is.
func Ready(object Object) bool {
	return Observed(object) && meta.IsStatusConditionTrue(object.GetConditions(), slipwayv1alpha1.ConditionReady)
}

// Observed reports whether status speaks of the spec as it is.
func Observed(object Object) bool {
	observed, err := observedGeneration(object)
	return err == nil && observed == object.GetGeneration()
}

func observedGeneration(object Object) (int64, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return 0, err
	}
	observed, _, err := unstructured.NestedInt64(fields, "status", "observedGeneration")
	return observed, err
}

func checkOne(c metav1.Condition, object Object) error {
	generation := object.GetGeneration()
	switch {
	case !slices.Contains(presentOf(object), c.Type) && c.Status != metav1.ConditionTrue:
		return fmt.Errorf("condition %s is %s; it must be absent unless true", c.Type, c.Status)
	case c.ObservedGeneration > generation:
		return fmt.Errorf("condition %s speaks of generation %d of %d", c.Type, c.ObservedGeneration, generation)
	case c.Reason == "" || c.Message == "":
		return fmt.Errorf("condition %s has reason %q and message %q", c.Type, c.Reason, c.Message)
	default:
		return nil
	}
}

// checkSilence returns an error where nothing serves, and conditions say that nothing is on
// its way and that nothing is wrong. Where that is asked for, they say so.
func checkSilence(object Object) error {
	conditions := object.GetConditions()
	for _, conditionType := range []string{
		slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ConditionDegraded,
	} {
		c := meta.FindStatusCondition(conditions, conditionType)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason == slipwayv1alpha1.ReasonScaledToZero ||
			c.Reason == slipwayv1alpha1.ReasonPaused {
			return nil
		}
	}
	return errors.New("nothing serves, and it says that nothing is on its way and that nothing is wrong")
}

// checkRoutes compares what status says of the routes with itself.
func checkRoutes(gateway *slipwayv1alpha1.APIGateway, ready bool) error {
	routes := gateway.Status.Routes
	if int(routes.Live)+len(routes.NotLive) != int(routes.Total) {
		return fmt.Errorf("%d routes are live and %d are not, of %d", routes.Live, len(routes.NotLive), routes.Total)
	}
	stopped := meta.FindStatusCondition(gateway.Status.Conditions, slipwayv1alpha1.ConditionReady)
	if ready && routes.Live != routes.Total && stopped.Reason != slipwayv1alpha1.ReasonScaledToZero {
		return fmt.Errorf("ready, and %d of %d routes are live", routes.Live, routes.Total)
	}
	return nil
}

// checkKstatus compares with the verdict of kstatus on the generation that status
// speaks of.
func checkKstatus(object Object, ready bool) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: fields})
	if err != nil {
		return fmt.Errorf("kstatus: %w", err)
	}
	observed, _, _ := unstructured.NestedInt64(fields, "status", "observedGeneration")
	want := status.InProgressStatus
	switch {
	case object.GetDeletionTimestamp() != nil:
		want = status.TerminatingStatus
	case observed < object.GetGeneration():
	case meta.IsStatusConditionTrue(object.GetConditions(), slipwayv1alpha1.ConditionStalled):
		want = status.FailedStatus
	case ready:
		want = status.CurrentStatus
	}
	if result.Status != want {
		return fmt.Errorf("kstatus says %s (%s), the conditions say %s", result.Status, result.Message, want)
	}
	return nil
}
