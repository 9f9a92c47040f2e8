package scenario

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// do does what a step says, and notes what that did to an object.
func (r *run) do(step Step) error {
	switch {
	case step.Pods != nil:
		r.player.Behave(step.Pods)
		return nil
	case step.Delete != nil:
		object, err := r.placed(step.Delete.object().Object)
		if err != nil {
			return err
		}
		return r.remove(object)
	default:
		object, err := r.placed(step.Apply)
		if err != nil {
			return err
		}
		if r.scenario.Tolerant {
			if err := r.apart(object); err != nil {
				return err
			}
		}
		// The answer comes into the object.
		err = r.Env.Client.Apply(
			r.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(step.manager()), client.ForceOwnership,
		)
		if err != nil {
			return err
		}
		if r.newest == nil {
			r.newest = map[string]time.Time{}
		}
		if made := object.GetCreationTimestamp().Time; made.After(r.newest[object.GetKind()]) {
			r.newest[object.GetKind()] = made
		}
		return r.note(object, 0)
	}
}

// apart waits until an object is made in another second than the last one of its kind. A creation time has whole seconds. Two
// objects of one second are in the order of their names, and others in that of their times: a fault that only takes time
// would lead to another end.
func (r *run) apart(object *unstructured.Unstructured) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Unix() <= r.newest[object.GetKind()].Unix() {
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-tick.C:
		}
	}
	return nil
}

// remove deletes an object.
func (r *run) remove(object *unstructured.Unstructured) error {
	if err := r.Env.Client.Get(r.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	if err := r.Env.Client.Delete(r.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	return r.note(object, 1)
}

// effect is what a step did: the object has this version since, or a later one.
type effect struct {
	uid    types.UID
	number int64
}

// note notes what a step did to an object: it has this version, or one so much later.
func (r *run) note(object *unstructured.Unstructured, later int64) error {
	number, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	if r.done == nil {
		r.done = map[string]effect{}
	}
	if r.Recorder.Sees(r.namespace, object.GroupVersionKind()) {
		r.done[called(object.GetKind(), object)] = effect{object.GetUID(), number + later}
	}
	return nil
}
