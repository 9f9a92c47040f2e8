package apigateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// keepQuotaSecret sees to the Secret by which the replicas know each other, if a rate limit has count: Gateway, or choose the
// endpoints of sessions alike, if a route has sessionAffinity. It is made once and never changed: whoever wants another key
// deletes it. One that is no longer needed stays until the APIGateway goes, so that the operator needs no right to delete
// Secrets. The cache tells that a Secret exists, and not whose it is, so that is read once for each.
func (r *Reconciler) keepQuotaSecret(ctx context.Context, s *scope) error {
	if !desired.NeedsSecret(s.gateway) {
		return nil
	}
	name := types.NamespacedName{Namespace: s.gateway.Namespace, Name: quota.SecretName(s.gateway.Name)}
	cached := &metav1.PartialObjectMetadata{}
	cached.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.kit.Client.Get(ctx, name, cached); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret %q: %w", name.Name, err)
	}
	if known, _ := r.quotaSecrets.Get(s.gateway.UID); cached.UID != "" && known == cached.UID {
		return nil
	}
	current := &corev1.Secret{}
	if err := r.kit.Live.Get(ctx, name, current); client.IgnoreNotFound(err) != nil {
		return outcome.Classify(fmt.Sprintf("Secret %q", name.Name), err)
	}
	key := make([]byte, quota.SecretBytes)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	if _, err := r.kit.Applier.CreateOnly(ctx, s.gateway,
		apply.Child{Desired: desired.QuotaSecret(s.gateway, key), Current: current}); err != nil {
		return err
	}
	r.quotaSecrets.Add(s.gateway.UID, current.UID)
	return nil
}

// ofQuotaSecret finds the APIGateway whose replicas may know each other by a Secret.
func ofQuotaSecret(_ context.Context, secret client.Object) []reconcile.Request {
	gateway, ok := strings.CutSuffix(secret.GetName(), quota.SecretName(""))
	if !ok || gateway == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: gateway}}}
}
