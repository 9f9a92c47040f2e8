package watch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOnlyAChangeOfAServiceThatARouteNamesWakes(t *testing.T) {
	f := newFixture(t)
	f.spec("u", 1, `routes: [{name: app, backendService: {name: app, port: 80}}]`)
	f.synced(serviceObject("app", web), serviceObject("other", web), sliceObject("app", "app-1", "10.0.0.1"), sliceObject("other", "other-1", "10.0.0.2"))
	f.look(t.Context())
	f.says(1)
	f.woke()

	relabelled := serviceObject("app", web)
	relabelled.Labels, relabelled.ResourceVersion = map[string]string{"a": "b"}, "7"
	moved := sliceObject("app", "other-1", "10.0.0.2")
	for _, step := range []struct {
		name  string
		do    func() error
		wakes bool
	}{
		{"a port of another", func() error { return f.services.Update(serviceObject("other")) }, false},
		{"an endpoint of another", func() error { return f.slices.Update(sliceObject("other", "other-1")) }, false},
		{"the labels", func() error { return f.services.Update(relabelled) }, false},
		{"a slice as it was", func() error { return f.slices.Update(sliceObject("app", "app-1", "10.0.0.1")) }, false},
		{"an endpoint", func() error { return f.slices.Update(sliceObject("app", "app-1", "10.0.0.1", "10.0.0.3")) }, true},
		{"a new slice", func() error { return f.slices.Add(sliceObject("app", "app-2", "10.0.0.4")) }, true},
		{"a slice that becomes another's", func() error { return f.slices.Update(moved) }, true},
		{"a slice that goes", func() error { return f.slices.Delete(sliceObject("app", "app-2", "10.0.0.4")) }, true},
		{"a slice that is gone", func() error { return f.slices.Delete(sliceObject("app", "app-2")) }, false},
		{"a port", func() error { return f.services.Update(serviceObject("app")) }, true},
		{"the Service goes", func() error { return f.services.Delete(serviceObject("app")) }, true},
		{"everything anew", func() error { return f.services.Replace(nil, "") }, true},
		{"the status", func() error { return f.gateways.Update(gatewayObject(t, "u", 1, "")) }, false},
		{"the spec", func() error { return f.gateways.Update(gatewayObject(t, "u", 2, "")) }, true},
	} {
		f.must(step.do())
		if woke := f.woke(); woke != step.wakes {
			t.Errorf("%s: woken %t, want %t", step.name, woke, step.wakes)
		}
	}
}

func TestWhatTheReflectorCollectsIsAlreadyReduced(t *testing.T) {
	f := newFixture(t)
	reduced, err := f.services.Transformer()(serviceObject("app", web))
	if err != nil {
		t.Fatal(err)
	}
	if _, is := reduced.(*corev1.Service); is {
		t.Error("a whole Service is collected")
	}
	f.must(f.services.Replace([]any{reduced}, ""))
	if got, found := f.services.get(f.named("app")); !found || len(got.ports) != 1 {
		t.Errorf("got %+v", got)
	}
	if err := f.services.Add(&corev1.Secret{}); err == nil {
		t.Error("a Secret was put among the Services")
	}
}
