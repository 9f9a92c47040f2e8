package desired_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// What v0.1.0 left has no template, and is named after it: a template that has another
// name is not the one that the pods were made from.
func TestTheTemplatesOfV010AreBuiltAsItBuiltThem(t *testing.T) {
	files, err := filepath.Glob("../../../../test/fault/testdata/webapp/releases/v0.1.0/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures (%v)", err)
	}
	checked := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		release := struct {
			Stated []struct{ Apply json.RawMessage }
		}{}
		if err := yaml.Unmarshal(raw, &release); err != nil {
			t.Fatal(err)
		}
		for _, step := range release.Stated {
			stored := appsv1.ControllerRevision{}
			if err := json.Unmarshal(step.Apply, &stored); err != nil || stored.Kind != "ControllerRevision" {
				continue
			}
			revision := desired.Revision{}
			if err := json.Unmarshal(stored.Data.Raw, &revision); err != nil {
				t.Fatal(err)
			}
			app := &slipwayv1alpha1.WebApp{}
			app.Name = stored.Labels[slipwayv1alpha1.LabelWebApp]
			first, name, err := desired.FirstTemplate(app, revision)
			if err != nil || name != stored.Name {
				t.Errorf("%s: revision %q is called %q (%v)", filepath.Base(file), stored.Name, name, err)
			}
			got, err := desired.StoredTemplate(app, revision)
			if diff := cmp.Diff(first, got); err != nil || diff != "" {
				t.Errorf("%s: stored (%v), -want +got:\n%s", filepath.Base(file), err, diff)
			}
			checked++
		}
	}
	if checked < 10 {
		t.Errorf("%d revisions, want at least 10", checked)
	}
}

func TestWhatHoldsNoTemplateIsRefused(t *testing.T) {
	for _, text := range []string{`7`, `{}`, `null`, `{"spec":{}}`, `{"spec":{"containers":[]}}`, `{"spec":7}`} {
		revision := desired.Revision{Spec: shop().Spec, Template: json.RawMessage(text)}
		if template, err := desired.StoredTemplate(shop(), revision); err == nil {
			t.Errorf("%s is read as %+v", text, template)
		}
	}
}

// What is stored and read again leads to the same Deployment, whatever the spec.
func FuzzStoredTemplate(f *testing.F) {
	generate.Seed(f, 20)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		app := generate.WebApp(source)
		asked := desired.RevisionOf(app.Spec, generate.Pick(source, "", "c0ffee"))
		applied, err := asked.Applied(desired.NewTemplate(app, asked))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(applied)
		if err != nil {
			t.Fatal(err)
		}
		stored := desired.Revision{}
		if err := json.Unmarshal(raw, &stored); err != nil {
			t.Fatal(err)
		}
		template, err := desired.StoredTemplate(app, stored)
		if err != nil {
			t.Fatal(err)
		}
		if field := desired.Unsafe(app, stored, template); field != "" {
			t.Errorf("%s is refused", field)
		}
		first, _, err := desired.FirstTemplate(app, asked)
		if err != nil {
			t.Fatal(err)
		}
		if field := desired.Unsafe(app, stored, first); field != "" {
			t.Errorf("%s of v0.1.0 is refused", field)
		}
		built, err := json.Marshal(desired.Deployment(desired.Inputs{App: app, Revision: asked}))
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(desired.Deployment(desired.Inputs{App: app, Revision: stored, Template: template}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(built), string(again)); diff != "" {
			t.Errorf("(-built +stored):\n%s", diff)
		}
		before, err := asked.Name(app)
		if err != nil {
			t.Fatal(err)
		}
		if after, err := stored.Name(app); err != nil || after != before {
			t.Errorf("called %q, and %q when it is stored (%v)", before, after, err)
		}
	})
}
