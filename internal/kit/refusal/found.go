package refusal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/health"
)

// found is what was read of a cause.
type found struct {
	// objects are what refuses.
	objects []*metav1.PartialObjectMetadata
	// version is that of what they say about pods. It is another one only if they may refuse others.
	version string
	// ranges is that of the LimitRanges beside a quota: they may set what pods ask for.
	ranges string
	// mended reports whether they refuse no more, if decided. If not, only a change of them tells.
	mended, decided bool
	// full is a quota without room.
	full *corev1.ResourceQuota
}

func (r *Reader) find(ctx context.Context, namespace string, refusal *health.Refusal) (f found, err error) {
	kind, name := refusal.Cause()
	switch kind {
	case health.CauseQuota:
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		missing, err := r.get(ctx, quota)
		if err != nil {
			return f, err
		}
		if missing {
			return found{mended: true, decided: true, version: gone}, nil
		}
		// What is used changes with every pod of the namespace.
		if err := f.add(string(kind), quota, []any{quota.Spec, quota.Status.Hard}); err != nil {
			return f, err
		}
		if f.mended, f.decided = refusal.Fits(quota); f.decided && !f.mended {
			f.full = quota
		}
		beside, err := r.limits(ctx, namespace, refusal)
		f.version += " " + beside.version
		f.ranges, f.objects = beside.version, append(f.objects, beside.objects...)
		return f, err
	case health.CauseAccount:
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		missing, err := r.get(ctx, account)
		if err != nil {
			return f, err
		}
		f.mended, f.decided = !missing, true
		return f, f.add(string(kind), account, account.UID)
	case health.CauseLimits:
		return r.limits(ctx, namespace, refusal)
	case health.CauseNamespace:
		return r.level(ctx, namespace)
	}
	return f, nil
}

// limits reads the LimitRanges of a namespace.
func (r *Reader) limits(ctx context.Context, namespace string, refusal *health.Refusal) (found, error) {
	f := found{version: gone}
	list := &corev1.LimitRangeList{}
	if err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(maxRanges)); err != nil {
		return f, fmt.Errorf("list the LimitRanges: %w", err)
	}
	for i := range list.Items {
		if err := f.add(string(health.CauseLimits), &list.Items[i], list.Items[i].Spec); err != nil {
			return f, err
		}
	}
	f.mended = list.Continue == "" && refusal.Lifted(list.Items)
	f.decided = f.mended
	return f, nil
}

// level reads the Pod Security level of a namespace. An operator that is limited to namespaces has no right to that.
func (r *Reader) level(ctx context.Context, name string) (f found, err error) {
	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(health.CauseNamespace)))
	missing, err := r.get(ctx, namespace)
	switch {
	case apierrors.IsForbidden(err):
		return f, nil
	case err != nil:
		return f, err
	case missing:
		return f, nil
	}
	labels := maps.Clone(namespace.Labels)
	maps.DeleteFunc(labels, func(label, _ string) bool { return !strings.HasPrefix(label, podSecurityLabels) })
	return f, f.add(string(health.CauseNamespace), namespace, labels)
}

// get reads an object, and reports whether it is not there.
func (r *Reader) get(ctx context.Context, object client.Object) (gone bool, err error) {
	err = r.live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// add adds an object and what it says about pods.
func (f *found) add(kind string, object client.Object, says any) error {
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
	seen.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	f.objects = append(f.objects, seen)
	text, err := json.Marshal(says)
	if err != nil {
		return fmt.Errorf("read the %s %q: %w", kind, object.GetName(), err)
	}
	parts := append(strings.Fields(f.version), fmt.Sprintf("%s=%x", object.GetName(), sha256.Sum256(text)))
	slices.Sort(parts)
	f.version = strings.Join(parts, " ")
	return nil
}
