package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/testing/canary"
)

// plainText is in what is no secret.
const plainText = "PlainBird5x"

// No form of a secret in an object gets into the files of the store or an answer. What is no secret does.
func TestNoFormIsStoredOrAnswered(t *testing.T) {
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	birds, folder := kindOf("birds", true), t.TempDir()
	made, err := store.Open(t.Context(), store.Options{
		Dir: folder, BatchWait: time.Nanosecond,
		Patch: func(body []byte, fields []change.Field) ([]byte, error) { return change.Patch(body, fields, nil) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	m := newMonitor(t, func(o *Options) { o.Store = made }, birds)
	m.store = made
	m.cluster.allow("user", "birds.example.com", "north", true)
	m.cluster.allow("user", "birds.example.com", "", true)

	said := map[string]string{}
	ask := func(question, control string) {
		said[question] = m.ask("user", api.Prefix+question).Body.String()
		if !strings.Contains(said[question], control) {
			t.Errorf("%s: %q is not in it either: %.300s", question, control, said[question])
		}
	}
	for forms := range slices.Chunk(canary.Forms(), 50) { // more are too many for one answer
		name := fmt.Sprint("bird", len(said))
		m.plant(policy, birds, name, forms)
		of := "?kind=birds.example.com&namespace=north&name=" + name
		ask("object"+of, plainText+"2")
		ask("history"+of, plainText+"2")
	}
	ask("changes?namespace=north", plainText)
	ask("health?all=true", `"reason":"Broken"`)
	ask("kinds", "birds")
	said["files"] = canary.Files(t, folder)
	for place, text := range said {
		for _, form := range canary.Forms() {
			if trace, found := form.In(text); found {
				t.Errorf("%s: %q of %q is in it", place, trace, form.Text)
			}
		}
	}
}

// plant commits two versions of an object with texts in its annotations and its spec. In the second each text is another one.
func (m *monitor) plant(policy *change.Policy, kind change.Kind, name string, forms []canary.Form) {
	m.Helper()
	var states []change.State
	for _, version := range []string{"1", "2"} {
		texts := map[string]string{}
		for i, form := range forms {
			texts[fmt.Sprint("form", i)] = form.Text + strings.Repeat("\n", len(states))
		}
		raw, err := json.Marshal(map[string]any{
			"apiVersion": "example.com/v1", "kind": kind.Kind, "plain": plainText + version, "spec": texts,
			"metadata": map[string]any{
				"name": name, "namespace": "north", "uid": "uid-" + name, "resourceVersion": version, "creationTimestamp": m.made.Format(time.RFC3339),
				"annotations": texts,
			},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "False", "reason": "Broken", "message": "password=" + canary.Secret + version,
			}}},
		})
		if err != nil {
			m.Fatal(err)
		}
		state, err := change.Reduce(raw, kind, nil, policy)
		if err != nil {
			m.Fatal(err)
		}
		states = append(states, state)
	}
	fields, _, err := change.Compare(&states[0], &states[1], nil)
	if err != nil {
		m.Fatal(err)
	}
	m.commit(store.Batch{Kind: kind, Checkpoint: "1", Put: states[:1]})
	m.commit(store.Batch{Kind: kind, Checkpoint: "2", Put: states[1:], Records: []change.Record{{
		Kind: kind, Namespace: "north", Name: name, UID: states[1].UID, ResourceVersion: "2", Type: change.Updated, Time: time.Now(),
		Fields: fields, ObjectCreated: m.made,
	}}})
}
