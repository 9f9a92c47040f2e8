package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// maxBundles is how many bytes of authorities that policies name are copied from other namespaces at the most, and maxOfNamespace
// how many of one namespace. Who may only add a policy must not fill the Secret with the copies: then nothing could be taken out of
// it any more.
const maxBundles = 192 << 10

// bundleKey is where a ConfigMap has the certificates of authorities, as the Gateway API says.
const bundleKey = "ca.crt"

// readBundles looks at the ConfigMaps with authorities that the Gateway and the policies name, and may use. The content is read only
// of those that exist in the cache. A policy names those of its own namespace.
func (r *Reconciler) readBundles(ctx context.Context, s *scope) error {
	names := slices.DeleteFunc(gatewayapi.Bundles(s.gateway), func(name types.NamespacedName) bool {
		return !gatewayapi.Permitted(s.input.Grants, desired.Kind, s.gateway.Namespace, "ConfigMap", name)
	})
	own := len(names)
	for _, policy := range byAge(s.input.Policies) {
		names = append(names, gatewayapi.BundlesOfPolicy(policy)...)
	}
	used := map[string]int{} // bytes by namespace, all of them under ""
	s.bundleVersions, s.input.Bundles = map[types.NamespacedName]string{}, map[types.NamespacedName]gatewayapi.Bundle{}
	for i, name := range names {
		if _, known := s.input.Bundles[name]; known || !r.kinds.objects.Watches(name.Namespace) {
			continue
		}
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := r.kit.Client.Get(ctx, name, found)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read ConfigMap %q: %w", name, err)
		}
		size, err := r.checkBundle(ctx, s, name, found.ResourceVersion)
		if err != nil {
			return err
		}
		if i >= own && name.Namespace != s.gateway.Namespace {
			s.boundBundle(name, size, used)
		}
	}
	return nil
}

// byAge returns the policies, the oldest first: a new one must not take the room of those that are there.
func byAge(policies []*gatewayv1.BackendTLSPolicy) []*gatewayv1.BackendTLSPolicy {
	return slices.SortedFunc(slices.Values(policies), func(a, b *gatewayv1.BackendTLSPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// boundBundle refuses a ConfigMap whose copy would take too much room.
func (s *scope) boundBundle(name types.NamespacedName, size int, used map[string]int) {
	if bundle := s.input.Bundles[name]; bundle.Problem != "" || size == 0 {
		return
	}
	if used[name.Namespace]+size > maxOfNamespace || used[""]+size > maxBundles {
		s.input.Bundles[name] = gatewayapi.Bundle{Problem: fmt.Sprintf(
			"it is not copied to the Gateway, because the authorities of policies would be more than %d KiB of one namespace, or %d KiB of all",
			maxOfNamespace>>10, maxBundles>>10)}
		return
	}
	used[name.Namespace] += size
	used[""] += size
}

// checkBundle validates a ConfigMap, and finds out how large it is. It is remembered for its version.
func (r *Reconciler) checkBundle(ctx context.Context, s *scope, name types.NamespacedName, version string) (size int, err error) {
	known, ok := r.bundles.Get(name)
	if !ok || known.(checked).version != version {
		bundle := &corev1.ConfigMap{}
		err := r.kit.Live.Get(ctx, name, bundle)
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, outcome.Classify(fmt.Sprintf("ConfigMap %q", name), err)
		}
		known = checked{version: bundle.ResourceVersion, problem: problemOfBundle(bundle), size: len(bundle.Data[bundleKey])}
		r.bundles.Add(name, known)
	}
	s.bundleVersions[name] = known.(checked).version
	s.input.Bundles[name] = gatewayapi.Bundle{Problem: known.(checked).problem}
	return known.(checked).size, nil
}

// problemOfBundle says why a ConfigMap cannot be used.
func problemOfBundle(bundle *corev1.ConfigMap) string {
	if bundle.Data[bundleKey] == "" {
		return fmt.Sprintf("it has no %s", bundleKey)
	}
	if _, err := model.ParseRoots([]byte(bundle.Data[bundleKey])); err != nil {
		return fmt.Sprintf("%s: %v", bundleKey, err)
	}
	return ""
}

// trusted are the ConfigMaps whose authorities are trusted, in order: those of listeners and of policies.
func (s *scope) trusted() []types.NamespacedName {
	var names []types.NamespacedName
	for _, l := range s.graph.Listeners {
		if l.Clients != nil {
			names = append(names, l.Clients.Bundles...)
		}
	}
	for _, with := range s.graph.TLS {
		names = append(names, with.Bundles...)
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(names)
}

// bundleOf reads a ConfigMap at the version that was checked: another one is seen by the next reconcile.
func (r *Reconciler) bundleOf(ctx context.Context, s *scope, name types.NamespacedName) (copied.Bundle, error) {
	bundle := &corev1.ConfigMap{}
	if err := r.kit.Live.Get(ctx, name, bundle); err != nil {
		return copied.Bundle{}, outcome.Classify(fmt.Sprintf("ConfigMap %q", name), err)
	}
	if bundle.ResourceVersion != s.bundleVersions[name] {
		return copied.Bundle{}, outcome.StaleCache(fmt.Sprintf("ConfigMap %q", name))
	}
	return copied.Bundle{Authorities: []byte(bundle.Data[bundleKey]), Version: bundle.ResourceVersion}, nil
}
