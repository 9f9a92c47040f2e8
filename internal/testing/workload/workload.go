package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const revisionAnnotation = "deployment.kubernetes.io/revision"

// Cluster acts on the workloads of an API server.
type Cluster struct {
	Client client.Client
	// WithoutReadyPods makes no ready pods: statuses count them, but they do not exist. It
	// saves most of the requests. Those that Gateways answers for exist.
	WithoutReadyPods bool
	// Gateways answers for the pods of APIGateways and Gateways. Default: they have no address.
	Gateways *Gateways
}

// RollOut finishes the rollout of a Deployment: a ReplicaSet of its template with all
// pods ready, and none of an earlier one.
func (c *Cluster) RollOut(ctx context.Context, namespace, name string) error {
	deployment, err := c.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	return c.rollOut(ctx, deployment)
}

func (c *Cluster) get(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, deployment)
	return deployment, err
}

func (c *Cluster) rollOut(ctx context.Context, deployment *appsv1.Deployment) error {
	replicaSet, err := c.replicaSet(ctx, deployment)
	if err != nil {
		return err
	}
	if err := c.setPods(ctx, deployment, replicaSet, readyPod()); err != nil {
		return err
	}
	return c.setRolledOut(ctx, deployment)
}

func (c *Cluster) setRolledOut(ctx context.Context, deployment *appsv1.Deployment, conditions ...appsv1.DeploymentCondition) error {
	want := *deployment.Spec.Replicas
	return c.setDeployment(ctx, deployment, appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           want, UpdatedReplicas: want, ReadyReplicas: want, AvailableReplicas: want, Conditions: conditions,
	})
}

// RollOutNow is RollOut with pods that become ready now. Those of RollOut have been ready for long. The Deployment says since when
// all of them are.
func (c *Cluster) RollOutNow(ctx context.Context, namespace, name string) error {
	deployment, err := c.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	return c.rollOutNow(ctx, deployment)
}

func (c *Cluster) rollOutNow(ctx context.Context, deployment *appsv1.Deployment) error {
	replicaSet, err := c.replicaSet(ctx, deployment)
	if err != nil {
		return err
	}
	status := readyPod()
	status.Conditions[0].LastTransitionTime = metav1.Now()
	if err := c.setPods(ctx, deployment, replicaSet, status); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := c.Client.List(ctx, pods, client.InNamespace(deployment.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.LastTransitionTime.After(available.LastTransitionTime.Time) {
				available.LastTransitionTime, available.LastUpdateTime = c.LastTransitionTime, c.LastTransitionTime
			}
		}
	}
	return c.setRolledOut(ctx, deployment, available)
}

// podsAtOnce are made or deleted at the same time.
const podsAtOnce = 10

// forPods does something for each of so many pods, for some of them at the same time.
func forPods(count int, do func(i int) error) error {
	errs, places := make([]error, count), make(chan struct{}, podsAtOnce)
	var all sync.WaitGroup
	for i := range count {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// setPods sees to it that a Deployment has as many ready pods as it asks for, of that
// ReplicaSet, and no others.
func (c *Cluster) setPods(ctx context.Context, deployment *appsv1.Deployment, replicaSet *appsv1.ReplicaSet, status corev1.PodStatus) error {
	if c.WithoutReadyPods && !c.answersFor(replicaSet) {
		hash := replicaSet.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		_, err := c.keepPods(ctx, deployment, func(pod *corev1.Pod) bool { return pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash })
		return err
	}
	want, wanted := int(*deployment.Spec.Replicas), map[string]bool{}
	for i := range want {
		wanted[podName(replicaSet, i)] = true
	}
	kept, err := c.keepPods(ctx, deployment, func(pod *corev1.Pod) bool { return wanted[pod.Name] })
	if err != nil {
		return err
	}
	return forPods(want, func(i int) error {
		if kept[podName(replicaSet, i)] {
			return nil
		}
		return c.setPod(ctx, replicaSet, i, *status.DeepCopy())
	})
}

// keepPods deletes the pods of a Deployment that are not to stay, and returns the names of
// the others that are ready.
func (c *Cluster) keepPods(ctx context.Context, deployment *appsv1.Deployment, stays func(*corev1.Pod) bool) (ready map[string]bool, err error) {
	pods := &corev1.PodList{}
	if err := c.Client.List(ctx, pods, client.InNamespace(deployment.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return nil, err
	}
	ready = map[string]bool{}
	var others []*corev1.Pod
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case !stays(pod):
			others = append(others, pod)
		case slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}):
			ready[pod.Name] = true
		}
	}
	return ready, forPods(len(others), func(i int) error {
		if err := c.Client.Delete(ctx, others[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
		if c.Gateways != nil {
			c.Gateways.forget(client.ObjectKeyFromObject(others[i]))
		}
		return nil
	})
}

// answersFor reports whether the pods of a ReplicaSet are an APIGateway's or a Gateway's, and answer.
func (c *Cluster) answersFor(replicaSet *appsv1.ReplicaSet) bool {
	return c.Gateways != nil &&
		(replicaSet.Labels[slipwayv1alpha1.LabelAPIGateway] != "" || replicaSet.Labels[gatewayv1.GatewayNameLabelKey] != "")
}

// Stick makes the newest pod of a Deployment hang with the given status, beside the
// ready pods of an earlier template, which keep serving.
func (c *Cluster) Stick(ctx context.Context, namespace, name string, status corev1.PodStatus) error {
	deployment, err := c.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	return c.stick(ctx, deployment, status)
}

func (c *Cluster) stick(ctx context.Context, deployment *appsv1.Deployment, status corev1.PodStatus) error {
	replicaSet, err := c.replicaSet(ctx, deployment)
	if err != nil {
		return err
	}
	if err := c.setPod(ctx, replicaSet, 0, status); err != nil {
		return err
	}
	serving := max(0, deployment.Status.ReadyReplicas)
	return c.setDeployment(ctx, deployment, appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           serving + 1, UpdatedReplicas: 1, ReadyReplicas: serving, AvailableReplicas: serving, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
			LastUpdateTime: replicaSet.CreationTimestamp, LastTransitionTime: replicaSet.CreationTimestamp,
		}},
	})
}

// RefusePods makes a Deployment report that its pods cannot be created.
func (c *Cluster) RefusePods(ctx context.Context, namespace, name, message string) error {
	deployment, err := c.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	if _, err := c.replicaSet(ctx, deployment); err != nil {
		return err
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return c.setDeployment(ctx, deployment, appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message,
			LastUpdateTime: now, LastTransitionTime: now,
		}},
	})
}

// replicaSet returns the ReplicaSet of a Deployment's template, which it makes when it
// does not exist and otherwise gives the newest revision, as the Deployment controller
// does.
func (c *Cluster) replicaSet(ctx context.Context, deployment *appsv1.Deployment) (*appsv1.ReplicaSet, error) {
	hash, err := templateHash(deployment.Namespace, deployment.Spec.Template)
	if err != nil {
		return nil, err
	}
	if deployment.Annotations[revisionAnnotation] == "" {
		if err := c.collect(ctx, deployment); err != nil {
			return nil, err
		}
	}
	replicaSet := &appsv1.ReplicaSet{}
	err = c.Client.Get(ctx, types.NamespacedName{Namespace: deployment.Namespace, Name: deployment.Name + "-" + hash}, replicaSet)
	last, _ := strconv.Atoi(deployment.Annotations[revisionAnnotation])
	switch {
	case apierrors.IsNotFound(err):
		newest, err := c.newestRevision(ctx, deployment)
		if err != nil {
			return nil, err
		}
		replicaSet = newReplicaSet(deployment, hash, max(last, newest)+1)
		if err := c.Client.Create(ctx, replicaSet); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case replicaSet.Annotations[revisionAnnotation] != strconv.Itoa(last):
		replicaSet.Annotations[revisionAnnotation] = strconv.Itoa(last + 1)
		if err := c.Client.Update(ctx, replicaSet); err != nil {
			return nil, err
		}
	}
	if revision := replicaSet.Annotations[revisionAnnotation]; deployment.Annotations[revisionAnnotation] != revision {
		// Locked: the ReplicaSet is of the template that was seen.
		patch := client.MergeFromWithOptions(deployment.DeepCopy(), client.MergeFromWithOptimisticLock{})
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, revisionAnnotation, revision)
		if err := c.Client.Patch(ctx, deployment, patch); err != nil {
			return nil, err
		}
	}
	return replicaSet, nil
}

// newestRevision is the highest number of a ReplicaSet of a Deployment. The Deployment does not have it yet where an update of it
// failed.
func (c *Cluster) newestRevision(ctx context.Context, deployment *appsv1.Deployment) (newest int, err error) {
	all := &appsv1.ReplicaSetList{}
	if err := c.Client.List(ctx, all, client.InNamespace(deployment.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return 0, err
	}
	for i := range all.Items {
		number, _ := strconv.Atoi(all.Items[i].Annotations[revisionAnnotation])
		newest = max(newest, number)
	}
	return newest, nil
}

// collect is the garbage collector for what an earlier Deployment of the name had.
func (c *Cluster) collect(ctx context.Context, deployment *appsv1.Deployment) error {
	left := &appsv1.ReplicaSetList{}
	if err := c.Client.List(ctx, left, client.InNamespace(deployment.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	for i := range left.Items {
		owner := metav1.GetControllerOf(&left.Items[i])
		if owner == nil || owner.UID == deployment.UID {
			continue
		}
		if err := c.Client.Delete(ctx, &left.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
		pods := []client.DeleteAllOfOption{client.InNamespace(deployment.Namespace), client.MatchingLabels(left.Items[i].Labels), client.GracePeriodSeconds(0)}
		if err := c.Client.DeleteAllOf(ctx, &corev1.Pod{}, pods...); err != nil {
			return err
		}
	}
	return nil
}

func newReplicaSet(deployment *appsv1.Deployment, hash string, revision int) *appsv1.ReplicaSet {
	template := *deployment.Spec.Template.DeepCopy()
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name + "-" + hash, Namespace: deployment.Namespace,
			Labels:      template.Labels,
			Annotations: map[string]string{revisionAnnotation: strconv.Itoa(revision)},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
			},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: deployment.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
		},
	}
}

// setPod makes the pod with that number of a ReplicaSet and sets its status.
func (c *Cluster) setPod(ctx context.Context, replicaSet *appsv1.ReplicaSet, number int, status corev1.PodStatus) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(replicaSet, number), Namespace: replicaSet.Namespace, Labels: replicaSet.Labels,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
			},
		},
		Spec: replicaSet.Spec.Template.Spec,
	}
	// No ServiceAccount controller runs beside a bare API server.
	pod.Spec.ServiceAccountName = ""
	err := c.Client.Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) {
		err = c.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	}
	if err != nil {
		return err
	}
	pod.Status = status
	if c.answersFor(replicaSet) {
		if pod.Status.PodIP, err = c.Gateways.address(pod); err != nil {
			return err
		}
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	return c.Client.Status().Update(ctx, pod)
}

func podName(replicaSet *appsv1.ReplicaSet, number int) string {
	return fmt.Sprintf("%s-%d", replicaSet.Name, number)
}

func (c *Cluster) setDeployment(ctx context.Context, deployment *appsv1.Deployment, status appsv1.DeploymentStatus) error {
	deployment.Status = status
	return c.Client.Status().Update(ctx, deployment)
}

// readyPod is the status of a pod that has been ready for long.
func readyPod() corev1.PodStatus {
	return corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
}

// templateHash tells templates apart, as pod-template-hash does. It is the same in every namespace, also where a template
// names its own: statuses name pods, and are compared.
func templateHash(namespace string, template corev1.PodTemplateSpec) (string, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return "", err
	}
	sum := fnv.New32a()
	sum.Write(bytes.ReplaceAll(raw, []byte(namespace), nil))
	return strconv.FormatUint(uint64(sum.Sum32()), 36), nil
}
