package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gatewayapi/borrowed"
	"github.com/slipway-dev/slipway/internal/gatewayapi/graph"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// bundleKey is where a ConfigMap has the certificates of authorities, as the Gateway API says.
const bundleKey = "ca.crt"

// readBundles looks at the ConfigMaps with authorities that the Gateway and the policies name, and may use. The content is read only
// of those that exist in the cache. A policy names those of its own namespace.
func (r *Reconciler) readBundles(ctx context.Context, s *scope) error {
	names := slices.DeleteFunc(graph.Bundles(s.gateway), func(name types.NamespacedName) bool {
		return !graph.Permitted(s.input.Grants, desired.Kind, s.gateway.Namespace, "ConfigMap", name)
	})
	for _, policy := range s.input.Policies {
		names = append(names, graph.BundlesOfPolicy(policy)...)
	}
	s.bundleVersions, s.input.Bundles = map[types.NamespacedName]string{}, map[types.NamespacedName]graph.Bundle{}
	for _, name := range names {
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
		if err := r.checkBundle(ctx, s, name, found.ResourceVersion); err != nil {
			return err
		}
	}
	return nil
}

// checkBundle finds out what a ConfigMap is worth. It is remembered for its version.
func (r *Reconciler) checkBundle(ctx context.Context, s *scope, name types.NamespacedName, version string) error {
	known, ok := r.bundles.Get(name)
	if !ok || known.(checked).version != version {
		bundle := &corev1.ConfigMap{}
		err := r.kit.Live.Get(ctx, name, bundle)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return outcome.Classify(fmt.Sprintf("ConfigMap %q", name), err)
		}
		known = checked{version: bundle.ResourceVersion, problem: problemOfBundle(bundle)}
		r.bundles.Add(name, known)
	}
	s.bundleVersions[name] = known.(checked).version
	s.input.Bundles[name] = graph.Bundle{Problem: known.(checked).problem}
	return nil
}

// problemOfBundle says why a ConfigMap cannot be used.
func problemOfBundle(bundle *corev1.ConfigMap) string {
	if bundle.Data[bundleKey] == "" {
		return fmt.Sprintf("it has no %s", bundleKey)
	}
	if _, err := table.ParseRoots([]byte(bundle.Data[bundleKey])); err != nil {
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
func (r *Reconciler) bundleOf(ctx context.Context, s *scope, name types.NamespacedName) (borrowed.Bundle, error) {
	bundle := &corev1.ConfigMap{}
	if err := r.kit.Live.Get(ctx, name, bundle); err != nil {
		return borrowed.Bundle{}, outcome.Classify(fmt.Sprintf("ConfigMap %q", name), err)
	}
	if bundle.ResourceVersion != s.bundleVersions[name] {
		return borrowed.Bundle{}, outcome.StaleCache(fmt.Sprintf("ConfigMap %q", name))
	}
	return borrowed.Bundle{Authorities: []byte(bundle.Data[bundleKey]), Version: bundle.ResourceVersion}, nil
}
