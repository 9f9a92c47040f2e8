//go:build apitest

package apigateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// sharing has a route whose requests all replicas count together.
func sharing(g *slipwayv1alpha1.APIGateway) {
	g.Spec.Routes[0].RateLimit = &slipwayv1alpha1.RateLimit{Requests: 10, Count: slipwayv1alpha1.RateLimitCountedByGateway}
}

// quotaKey is the key of the Secret, if the gateway owns it.
func (f *fixture) quotaKey() ([]byte, error) {
	secret := &corev1.Secret{}
	if err := f.get("edge-quota", secret); err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.Name != "edge" {
		return nil, fmt.Errorf("the Secret has the owner %v", owner)
	}
	if key := secret.Data["key"]; len(key) == 32 && len(secret.Data) == 1 {
		return key, nil
	}
	return nil, fmt.Errorf("the Secret has %d keys, and a key of %d bytes", len(secret.Data), len(secret.Data["key"]))
}

// mayReadQuotaSecret reports whether the pods may read the Secret.
func (f *fixture) mayReadQuotaSecret() (may bool) {
	role := &rbacv1.Role{}
	if err := f.get("edge", role); err != nil {
		f.Fatal(err)
	}
	for _, rule := range role.Rules {
		may = may || slices.Contains(rule.Resources, "secrets") && slices.Contains(rule.ResourceNames, "edge-quota")
	}
	return may
}

func TestReplicasThatCountTogetherHaveASecret(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	f.settle()
	if _, err := f.quotaKey(); err == nil || f.mayReadQuotaSecret() {
		t.Fatal("there is a Secret without a shared limit")
	}

	update(f, gateway, sharing)
	var first []byte
	environment.Eventually(t, func() (err error) { first, err = f.quotaKey(); return err })
	f.settle()
	if !f.mayReadQuotaSecret() {
		t.Error("the pods may not read the Secret")
	}
	if again, err := f.quotaKey(); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the key is another one later: %v", err)
	}

	f.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "edge-quota"}})
	environment.Eventually(t, func() error {
		other, err := f.quotaKey()
		if err == nil && bytes.Equal(first, other) {
			err = errors.New("the key is the one that was deleted")
		}
		return err
	})

	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[0].RateLimit = nil })
	environment.Eventually(t, func() error {
		if f.mayReadQuotaSecret() {
			return errors.New("the pods may still read the Secret")
		}
		return nil
	})
}

func TestReplicasThatKeepSessionsHaveASecret(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Routes[0].SessionAffinity = &slipwayv1alpha1.SessionAffinity{Cookie: &slipwayv1alpha1.AffinityCookie{}}
	})
	environment.Eventually(t, func() error {
		if _, err := f.quotaKey(); err != nil {
			return err
		}
		if !f.mayReadQuotaSecret() {
			return errors.New("the pods may not read the Secret")
		}
		return nil
	})
}

// A Secret of that name that somebody else made is not used, and not deleted.
func TestASecretOfSomebodyElseIsNotTheReplicas(t *testing.T) {
	f := newFixture(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "edge-quota"}, StringData: map[string]string{"key": "known to others"}}
	f.create(foreign)
	f.startOperator(nil)
	gateway := f.gateway(sharing)
	f.create(gateway)
	f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonNameConflict)
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[0].RateLimit = nil })
	f.wait(func(g *slipwayv1alpha1.APIGateway) error {
		if meta.FindStatusCondition(g.Status.Conditions, slipwayv1alpha1.ConditionStalled) != nil {
			return errors.New("it is still stalled")
		}
		return nil
	})
	f.settle()
	if err := f.get("edge-quota", foreign); err != nil {
		t.Errorf("the Secret of somebody else: %v", err)
	}
}
