package health_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/health"
)

// now is the time at which the objects of testdata are evaluated.
var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// sample is an object of testdata, with what is to be said of it. What is empty is not compared.
type sample struct {
	name string
	Want struct {
		State   health.State `json:"state"`
		Field   string       `json:"field"`
		Value   string       `json:"value"`
		Reason  string       `json:"reason"`
		Message string       `json:"message"`
		Layer   health.Layer `json:"layer"`
		Due     *time.Time   `json:"due"`
	} `json:"want"`
	Object map[string]any `json:"object"`
}

func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/objects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var all []sample
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
		for i := 1; ; i++ {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var s sample
			if err := sigsyaml.UnmarshalStrict(document, &s); err != nil {
				t.Fatalf("%s %d: %v", file, i, err)
			}
			s.name = fmt.Sprintf("%s %d %v", filepath.Base(file), i, s.Object["kind"])
			all = append(all, s)
		}
	}
	return all
}

func TestOf(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			got := health.Evaluate(s.Object, health.Options{Now: now})
			want := got
			want.State = s.Want.State
			for _, field := range []struct{ got, want *string }{
				{&want.Field, &s.Want.Field},
				{&want.Value, &s.Want.Value},
				{&want.Reason, &s.Want.Reason},
				{&want.Message, &s.Want.Message},
				{(*string)(&want.Layer), (*string)(&s.Want.Layer)},
			} {
				if *field.want != "" {
					*field.got = *field.want
				}
			}
			if s.Want.Due != nil {
				want.Due = *s.Want.Due
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			checkRules(t, s.Object, got)
		})
	}
}

// checkRules checks what holds for every verdict.
func checkRules(t testing.TB, object map[string]any, v health.Verdict) {
	t.Helper()
	switch {
	case v.State == "" || v.Field == "" || v.Layer == "":
		t.Errorf("incomplete: %+v", v)
	case v.State == health.Healthy && v.Reason != "":
		t.Errorf("healthy, with a reason: %+v", v)
	case v.State != health.Healthy && v.Reason == "":
		t.Errorf("no reason: %+v", v)
	case v.State == health.Unknown && strings.Contains(v.Reason, "hostile"):
		t.Errorf("the object has chosen the reason: %+v", v)
	case len(v.Message) > 2048 || len(v.Value) > 1024:
		t.Errorf("too long: %d and %d bytes", len(v.Message), len(v.Value))
	}
	meta, _ := object["metadata"].(map[string]any)
	if deleted, _ := meta["deletionTimestamp"].(string); deleted != "" && v.State != health.Terminating {
		t.Errorf("is being deleted, and is %s", v.State)
	}
}

// Every kind and group of a profile is in testdata, with a good and another state where it can have one.
func TestEveryProfileHasSamples(t *testing.T) {
	states := map[string]map[health.State]bool{}
	for _, s := range samples(t) {
		key := health.ProfileName(s.Object)
		if states[key] == nil {
			states[key] = map[health.State]bool{}
		}
		states[key][health.Evaluate(s.Object, health.Options{Now: now}).State] = true
	}
	for _, row := range foreignKinds(t) {
		key := health.ProfileName(row.object)
		if states[key] == nil {
			states[key] = map[health.State]bool{}
		}
		states[key][health.Evaluate(row.object, health.Options{Now: now}).State] = true
	}
	for _, p := range health.Shipped().List() {
		if seen := states[p.Name()]; len(seen) == 0 && !p.HasNoStatus && !alikeTested(p) {
			t.Errorf("%s: no sample", p.Name())
		}
	}
}

// alikeTested reports whether a profile is the same as a tested one, for another group.
func alikeTested(p health.Profile) bool {
	switch p.Group {
	case "image.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io", "eventing.knative.dev", "sources.knative.dev", "*.crossplane.io",
		"controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "addons.cluster.x-k8s.io":
		return true
	}
	return false
}
