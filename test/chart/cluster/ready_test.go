//go:build chartcluster

package cluster

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// release is which programs run.
type release struct{ operator, gateway string }

// The last release, and this checkout.
func last() release { return release{"slipway-operator:v0.1.0", "slipway-gateway:v0.1.0"} }
func this() release { return release{os.Getenv("IMAGE"), os.Getenv("GATEWAY_IMAGE")} }

// settled waits until the programs of a release run, and the application and the gateway
// are Ready with a status of their current spec.
func (w *world) settled(r release) {
	w.Helper()
	w.Eventually(func() error {
		if err := w.operatorIs(r.operator); err != nil {
			return err
		}
		return cluster.OperatorHasLookedAtEverything(w.Context())
	})
	w.Eventually(w.appReady)
	w.Eventually(func() error { return w.gatewayReady(r.gateway) })
}

// operatorIs checks that all pods of the operator have an image.
func (w *world) operatorIs(image string) error {
	if err := cluster.OperatorComplete(w.Context()); err != nil {
		return err
	}
	pods, err := cluster.OperatorPods(w.Context())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if got := pod.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("the operator's pod %q is %s, want %s", pod.Name, got, image)
		}
	}
	return nil
}

func (w *world) appReady() error {
	app := &slipwayv1alpha1.WebApp{}
	if err := w.Get(appName, app); err != nil {
		return err
	}
	if app.Status.ReadyReplicas != *app.Spec.Replicas {
		return fmt.Errorf("%d pods of the application are ready, want %d", app.Status.ReadyReplicas, *app.Spec.Replicas)
	}
	return ready(app, app.Status.ObservedGeneration, app.Status.Conditions)
}

// gatewayReady checks that every route is live, and that only pods of an image run, none on
// its way out.
func (w *world) gatewayReady(image string) error {
	gateway := &slipwayv1alpha1.APIGateway{}
	if err := w.Get(gatewayName, gateway); err != nil {
		return err
	}
	if live := int(gateway.Status.Routes.Live); live != len(gateway.Spec.Routes) {
		return fmt.Errorf("%d routes are live, want %d", live, len(gateway.Spec.Routes))
	}
	pods := w.podsOf(slipwayv1alpha1.LabelAPIGateway, gatewayName)
	if len(pods) != int(*gateway.Spec.Replicas) {
		return fmt.Errorf("the gateway has %d pods, want %d", len(pods), *gateway.Spec.Replicas)
	}
	for _, pod := range pods {
		if got := pod.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("the gateway's pod %q is %s, want %s", pod.Name, got, image)
		}
	}
	return ready(gateway, gateway.Status.ObservedGeneration, gateway.Status.Conditions)
}

// ready checks that status says Ready, of the current spec.
func ready(object client.Object, observed int64, conditions []metav1.Condition) error {
	if observed != object.GetGeneration() {
		return fmt.Errorf("status of %T speaks of generation %d, want %d", object, observed, object.GetGeneration())
	}
	if !meta.IsStatusConditionTrue(conditions, slipwayv1alpha1.ConditionReady) {
		return fmt.Errorf("%T is not Ready: %+v", object, conditions)
	}
	return nil
}

// podsOf returns the pods of the test with a label, those on their way out included.
func (w *world) podsOf(label, value string) []corev1.Pod {
	w.Helper()
	pods := &corev1.PodList{}
	if err := cluster.List(w.Context(), pods, client.InNamespace(w.Namespace), client.MatchingLabels{label: value}); err != nil {
		w.Fatalf("list pods: %v", err)
	}
	return pods.Items
}

// answers waits until an URL answers with a text in it.
func (w *world) answers(url, part string) {
	w.Helper()
	w.Eventually(func() error {
		body, err := livecluster.Ask(w.Context(), livecluster.NewHTTPClient(), url)
		if err != nil {
			return fmt.Errorf("%s does not answer: %w", url, err)
		}
		if !strings.Contains(body, part) {
			return fmt.Errorf("%s answers %q, want %q in it", url, body, part)
		}
		return nil
	})
}
