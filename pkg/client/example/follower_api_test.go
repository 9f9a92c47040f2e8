//go:build apitest

package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/pkg/client/clientset/versioned"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// TestFollower drives a WebApp through its life on a real API server and reads what
// the program prints.
func TestFollower(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	clientset, err := versioned.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := env.Namespace(t)
	apps := clientset.SlipwayV1alpha1().WebApps(namespace)
	app, err := apps.Create(ctx, &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	reader, writer := io.Pipe()
	stopped := make(chan error, 1)
	runCtx, stop := context.WithCancel(ctx)
	go func() {
		err := newFollower(clientset, namespace, writer).run(runCtx)
		writer.Close()
		stopped <- err
	}()
	lines := bufio.NewScanner(reader)
	expect := func(want string) {
		t.Helper()
		want = namespace + "/shop: " + want
		if !lines.Scan() {
			t.Fatalf("the program ended, want %q", want)
		}
		if got := lines.Text(); got != want {
			t.Fatalf("printed %q, want %q", got, want)
		}
	}
	expect("waits for the operator, wants shop:1")

	app.Status = slipwayv1alpha1.WebAppStatus{
		ObservedGeneration: app.Generation, Replicas: 1, ReadyReplicas: 1, Image: "shop:1",
		Conditions: []metav1.Condition{{
			Type: slipwayv1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: slipwayv1alpha1.ReasonReady, LastTransitionTime: metav1.Now(),
		}},
	}
	if app, err = apps.UpdateStatus(ctx, app, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("Ready, 1/1 replicas of shop:1")

	app.Spec.Image = "shop:2"
	if _, err = apps.Update(ctx, app, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("waits for the operator, wants shop:2")

	if err := apps.Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("gone")

	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}
