package watch

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

type configMapStore = store[*corev1.ConfigMap, map[string][]byte]

// configMaps are the ConfigMaps that a spec names. Each is watched by its name.
type configMaps struct {
	group[*corev1.ConfigMap, map[string][]byte]

	namespace string
}

func newConfigMaps(clock clock.PassiveClock, namespace string, wake func()) configMaps {
	m := configMaps{namespace: namespace}
	m.clock, m.wake = clock, wake
	m.newStore = func() *configMapStore {
		return &configMapStore{
			keep: keepConfigMap, same: func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) },
			changed:  func(_, _ *map[string][]byte) { wake() },
			replaced: wake,
		}
	}
	return m
}

func keepConfigMap(in *corev1.ConfigMap) map[string][]byte {
	data := make(map[string][]byte, len(in.Data)+len(in.BinaryData))
	for key, value := range in.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, in.BinaryData) // the API server lets no key be in both
	return data
}

// contents returns the contents of these ConfigMaps, and the names of those that may not be read.
func (m *configMaps) contents(names map[string]bool) (data map[string]map[string][]byte, unreadable map[string]bool) {
	data, unreadable = map[string]map[string][]byte{}, map[string]bool{}
	for name := range names {
		w := m.watched[name]
		if content, found := w.store.get(types.NamespacedName{Namespace: m.namespace, Name: name}); found {
			data[name] = content
		} else if !w.store.full() {
			unreadable[name] = true
		}
	}
	return data, unreadable
}

// shown tells which of the certificates that backends are shown are expired, or not valid yet. They are shown all the same:
// what an endpoint makes of that is its own business. next is when this changes without an event, or zero.
func (t *target) shown(in *apigateway.Input, now time.Time) (problems []document.Problem, next time.Time) {
	for i := range t.policies {
		policy := &t.policies[i]
		if policy.TLS == nil || policy.TLS.ClientCertificateRef == nil {
			continue
		}
		name := policy.TLS.ClientCertificateRef.Name
		data := in.Secrets[name]
		certificate, err := model.ParsePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
		if err != nil {
			continue // told with the policy
		}
		message, changes := validity(name, certificate, now)
		next = earliest(changes, next)
		if message != "" {
			problems = append(problems, document.Problem{
				Route: -1, Name: name, Field: fmt.Sprintf("spec.backendPolicies[%s:%d].tls.clientCertificateRef", policy.Name, policy.Port),
				Reason: slipwayv1alpha1.ReasonCertificateExpired, Message: message,
			})
		}
	}
	return problems, next
}
