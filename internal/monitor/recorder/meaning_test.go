package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

const someUID = "00000000-0000-0000-0000-00000000000a"

// session is a recorder with the journal of one kind, of which nothing was there in the beginning.
type session struct {
	t *testing.T
	r *Recorder
	s *store.Store
	j supervisor.Journal
}

func begin(t *testing.T, kind change.Kind, more func(*Options)) *session {
	t.Helper()
	r, s := open(t.Context(), t, t.TempDir(), more)
	t.Cleanup(func() {
		_ = r.Close(context.WithoutCancel(t.Context()))
		_ = s.Close()
	})
	one := &session{t: t, r: r, s: s}
	one.open(kind)
	one.list("1")
	return one
}

func (s *session) open(kind change.Kind) {
	s.t.Helper()
	s.openAs(kind, "")
}

// openAs opens a kind that has that schema.
func (s *session) openAs(kind change.Kind, schema string) {
	s.t.Helper()
	j, err := s.r.Open(s.t.Context(), kind, supervisor.Schema{JSON: []byte(schema)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.j = j
}

func (s *session) list(version string, objects ...supervisor.Object) {
	s.t.Helper()
	ctx := s.t.Context()
	if err := s.j.BeginList(ctx, supervisor.Gap{}); err != nil {
		s.t.Fatal(err)
	}
	for _, o := range objects {
		if err := s.j.Listed(ctx, o); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.j.EndList(ctx, version, true); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) event(what supervisor.EventType, o supervisor.Object) {
	s.t.Helper()
	if err := s.j.Event(s.t.Context(), supervisor.Event{Type: what, Object: o}); err != nil {
		s.t.Fatal(err)
	}
}

// records returns what is stored, the oldest first.
func (s *session) records(kind change.Kind) []store.Change {
	s.t.Helper()
	if err := s.r.journal(kind.GroupResource()).pipe.drain(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	page, err := s.s.Changes(s.t.Context(), store.Query{OldestFirst: true, Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Changes
}

// typed makes an object of some JSON.
func typed(version, rest string) supervisor.Object {
	raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":%q,"resourceVersion":%q,"generation":1},%s}`,
		someUID, version, rest)
	return supervisor.Object{Namespace: "a", Name: "w", UID: someUID, ResourceVersion: version, Raw: []byte(raw)}
}

// The same version with another content is nobody's write. The same version with the same content is nothing at all.
func TestSameVersion(t *testing.T) {
	t.Parallel()
	s := begin(t, widgets, nil)
	s.event(supervisor.Added, typed("2", `"spec":{"a":1}`))
	s.event(supervisor.Added, typed("2", `"spec":{"a":1}`))
	s.records(widgets)
	s.open(widgets)
	s.list("3", typed("2", `"spec":{"a":1,"b":"default"}`))
	found := s.records(widgets)
	if len(found) != 3 {
		t.Fatalf("%d records: %+v", len(found), found)
	}
	if found[0].Type != change.Created || found[1].Type != change.Gap || !found[2].SchemaDriven {
		t.Errorf("%+v", found)
	}
}

// A secret is in no file of the store.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a91"
	s := begin(t, widgets, nil)
	for i, secret := range []string{canary + "1", canary + "2"} {
		s.event(supervisor.Modified, typed(fmt.Sprint(2+i), fmt.Sprintf(
			`"spec":{"password":%q},"status":{"message":"password=%s","conditions":[{"type":"Ready","status":"False","message":"token: %s"}]}`, secret, secret, secret)))
	}
	s.records(widgets)
	dir := s.dir()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err == nil && bytes.Contains(content, []byte(canary)) {
			t.Errorf("%s has a secret", entry.Name())
		}
	}
	healths, err := Healths(t.Context(), s.s, widgets.GroupResource())
	if err != nil || len(healths) != 1 || strings.Contains(fmt.Sprint(healths), canary) {
		t.Errorf("health: %+v, %v", healths, err)
	}
}

// dir returns the folder of the store: that of its lock.
func (s *session) dir() string {
	dirs, _ := filepath.Glob(filepath.Join(filepath.Dir(s.t.TempDir()), "*"))
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "state.db")); err == nil {
			return dir
		}
	}
	s.t.Fatal("the folder of the store is not found")
	return ""
}

// watcher notes what it is told of.
type watcher struct{ seen []Change }

func (w *watcher) Observe(_ context.Context, c Change) Effects {
	w.seen = append(w.seen, c)
	return Effects{
		Outbox: []store.Message{{Key: "m/" + c.Records[0].ResourceVersion, Body: []byte("x")}},
		Values: []store.Value{{Key: "rule/last", Data: []byte(c.Records[0].ResourceVersion)}},
	}
}

// What the observer adds is stored with the change, and health is told before and after it.
func TestObserver(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	s := begin(t, widgets, func(o *Options) { o.Observer = w })
	status := `"status":{"conditions":[{"type":"Ready","status":%q,"reason":"R","message":"m"}]}`
	s.event(supervisor.Added, typed("2", fmt.Sprintf(status, "True")))
	s.event(supervisor.Modified, typed("3", fmt.Sprintf(status, "False")))
	s.records(widgets)
	waiting, err := s.s.Waiting(t.Context())
	if err != nil || waiting != 2 || len(w.seen) != 2 {
		t.Fatalf("%d messages wait, %d changes were seen (%v)", waiting, len(w.seen), err)
	}
	if w.seen[1].HealthBefore != health.Healthy || w.seen[1].Health.State == health.Healthy {
		t.Errorf("health was %q, and is %q", w.seen[1].HealthBefore, w.seen[1].Health.State)
	}
	kept, err := Healths(t.Context(), s.s, widgets.GroupResource())
	if err != nil || len(kept) != 1 || kept[0].State != w.seen[1].Health.State {
		t.Errorf("what is kept is %v (%v)", kept, err)
	}
}

var definitionKind = change.Kind{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Resource: "customresourcedefinitions",
}

func definition(generation int64, required ...string) supervisor.Object {
	version := fmt.Sprint(100 + generation)
	raw, _ := json.Marshal(&apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "widgets.example.com", UID: widgets.Definition, Generation: generation, ResourceVersion: version,
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget", ListKind: "WidgetList", Singular: "widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", Required: required,
						Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "integer"}, "b": {Type: "string"}},
					}},
				}},
			}},
		},
	})
	return supervisor.Object{Name: "widgets.example.com", UID: widgets.Definition, ResourceVersion: version, Raw: raw}
}

// A change of a definition is compared with the version before it, and all objects are checked.
func TestDefinition(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := begin(t, widgets, nil)
	done := make(chan struct{})
	go func() { defer close(done); s.r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	s.event(supervisor.Added, typed("2", `"spec":{"a":1}`))
	s.records(widgets)
	s.open(definitionKind)
	s.list("100")
	s.event(supervisor.Added, definition(1))
	s.event(supervisor.Modified, definition(2, "b"))
	found := s.records(definitionKind)
	if last := found[len(found)-1]; !strings.Contains(last.Reason, "breaking") {
		t.Errorf("the record says %q", last.Reason)
	}
	until := time.After(20 * time.Second)
	for {
		reports, err := Reports(ctx, s.s, "widgets.example.com")
		if err != nil {
			t.Fatal(err)
		}
		if len(reports) == 1 && reports[0].Objects != nil {
			o := reports[0].Objects
			if len(reports[0].Findings) == 0 || o.Checked != 1 || o.Fine != 0 || len(o.Examples) != 1 {
				t.Errorf("%+v, %+v", reports[0].Findings, o)
			}
			return
		}
		select {
		case <-until:
			t.Fatalf("the objects are not checked: %+v", reports)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
