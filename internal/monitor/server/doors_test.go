package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	clocktesting "k8s.io/utils/clock/testing"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// judgedAt is the time at which the objects of internal/health/testdata are judged.
var judgedAt = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// One object does the same for whoever asks: the command line, which reads it itself, the answers about the object and about all
// objects, and the rules, which see what was stored of it.
func TestEveryDoorSaysTheSameOfAnObject(t *testing.T) {
	kind := kindOf("things", true)
	clock := clocktesting.NewFakeClock(judgedAt)
	m := newMonitor(t, func(o *Options) { o.Clock = clock }, kind)
	m.cluster.allow("user", "things.example.com", "", true)
	policy, err := change.NewPolicy(change.Options{Key: bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]api.Health{}
	batch := store.Batch{Kind: kind, Checkpoint: "1"}
	for i, object := range judgedObjects(t) {
		name := fmt.Sprintf("thing-%d", i)
		metadata := object["metadata"].(map[string]any)
		metadata["name"], metadata["namespace"] = name, "north"
		metadata["uid"], metadata["resourceVersion"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", i), fmt.Sprint(i+1)
		metadata["creationTimestamp"] = "2026-11-01T00:00:00Z"
		live[name] = healthOf(health.Evaluate(object, health.Options{Now: judgedAt}))
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		apiVersion, _ := object["apiVersion"].(string)
		of := kind
		of.Group, of.Version, _ = strings.Cut(apiVersion, "/")
		if of.Version == "" {
			of.Group, of.Version = "", apiVersion
		}
		of.Kind, _ = object["kind"].(string)
		state, err := change.Reduce(raw, of, nil, policy)
		if err != nil {
			t.Fatal(err)
		}
		batch.Put = append(batch.Put, state)
	}
	m.commit(batch)
	listed, object, ruled := map[string]api.Health{}, map[string]api.Health{}, map[string]api.Health{}
	for _, one := range get[api.HealthSummary](m, "user", api.Prefix+"health?all=true&limit=2000").Objects {
		listed[one.Name] = one.Health
	}
	troubled := get[api.HealthSummary](m, "user", api.Prefix+"health?limit=2000")
	for _, one := range troubled.Objects {
		if diff := cmp.Diff(live[one.Name], one.Health); diff != "" {
			t.Errorf("%s among those that are not healthy: -want +got\n%s", one.Name, diff)
		}
	}
	for state, err := range m.store.StatesOf(t.Context(), kind.GroupResource()) {
		if err != nil {
			t.Fatal(err)
		}
		object[state.Name] = *get[api.Object](m, "user", api.Prefix+"object?kind=things.example.com&namespace=north&name="+state.Name).Health
		_, verdict := recorder.Judge(&state, health.Options{Now: judgedAt})
		ruled[state.Name] = healthOf(verdict)
	}
	for door, said := range map[string]map[string]api.Health{"the list": listed, "the object": object, "the rules": ruled} {
		if diff := cmp.Diff(live, said); diff != "" {
			t.Errorf("%s: -command line +%s\n%s", door, door, diff)
		}
	}
}

// judgedObjects are the objects of internal/health/testdata that have metadata.
func judgedObjects(t *testing.T) (all []map[string]any) {
	t.Helper()
	files, err := filepath.Glob("../../health/testdata/objects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var sample struct {
				Object map[string]any `json:"object"`
			}
			if err = errors.Join(err, sigsyaml.Unmarshal(document, &sample)); err != nil {
				t.Fatal(err)
			}
			if metadata, _ := sample.Object["metadata"].(map[string]any); metadata != nil {
				all = append(all, sample.Object)
			}
		}
	}
	return all
}

// Conditions say since when they are so, and what is stored of that is no change.
func TestAConditionSaysSinceWhen(t *testing.T) {
	kind := kindOf("things", true)
	clock := clocktesting.NewFakeClock(judgedAt)
	m := newMonitor(t, func(o *Options) { o.Clock = clock }, kind)
	m.cluster.allow("user", "things.example.com", "", true)
	policy, err := change.NewPolicy(change.Options{Key: bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	const thing = `{"apiVersion":"example.com/v1","kind":"Things","metadata":{"name":"a","namespace":"north","uid":"00000000-0000-4000-8000-000000000001",
		"resourceVersion":"1","creationTimestamp":"2026-11-01T00:00:00Z","generation":2},"status":{"parts":[{"type":"first"}],"conditions":[
		{"type":"Ready","status":"False","reason":"Foo","lastTransitionTime":"2026-11-25T11:55:00Z"},
		{"type":"Other","status":"True","lastTransitionTime":"2026-11-25T10:00:00Z"}]}}`
	state, err := change.Reduce([]byte(thing), kind, nil, policy)
	if err != nil {
		t.Fatal(err)
	}
	m.commit(store.Batch{Kind: kind, Checkpoint: "1", Put: []change.State{state}})
	ask := func() (object api.Object, listed api.HealthSummary) {
		return get[api.Object](m, "user", api.Prefix+"object?kind=things.example.com&namespace=north&name=a"), get[api.HealthSummary](m, "user", api.Prefix+"health")
	}
	object, listed := ask()
	want := []api.Condition{
		{Type: "Other", Status: "True", Since: "2026-11-25T10:00:00Z"},
		{Type: "Ready", Status: "False", Reason: "Foo", Since: "2026-11-25T11:55:00Z"},
	}
	if diff := cmp.Diff(want, object.Conditions); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if strings.Contains(string(object.Object), "lastTransitionTime") {
		t.Errorf("what is no change is part of what is compared: %s", object.Object)
	}
	if object.Health.State != "Progressing" || listed.Objects[0].State != "Progressing" {
		t.Errorf("after 5 minutes: %+v, %+v", object.Health, listed.Objects)
	}
	clock.Step(5 * time.Minute)
	if object, listed = ask(); object.Health.State != "Failed" || listed.Objects[0].State != "Failed" {
		t.Errorf("after 10 minutes: %+v, %+v", object.Health, listed.Objects)
	}
}

// What is known of a kind is kept for a while. An answer says by how much it may be too old.
func TestAnAnswerAboutHealthSaysHowOldItIs(t *testing.T) {
	kind := kindOf("things", true)
	clock := clocktesting.NewFakeClock(judgedAt)
	m := newMonitor(t, func(o *Options) { o.Clock = clock }, kind)
	m.cluster.allow("user", "things.example.com", "", true)
	put := func(version, ready string) {
		m.commit(store.Batch{Kind: kind, Checkpoint: version, Reached: clock.Now(), Put: []change.State{{
			Namespace: "north", Name: "a", UID: "00000000-0000-4000-8000-000000000001", ResourceVersion: version,
			Body: []byte(`{"apiVersion":"example.com/v1","kind":"Things","metadata":{"name":"a","namespace":"north","uid":"00000000-0000-4000-8000-000000000001",
				"creationTimestamp":"2026-11-01T00:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"` + ready + `","reason":"Error"}]}}`),
		}}})
	}
	check := func(when string, state string, lag float64) {
		t.Helper()
		answer := get[api.HealthSummary](m, "user", api.Prefix+"health?all=true")
		if answer.Counts[state] != 1 || answer.View.Lag != lag {
			t.Errorf("%s: %v, %v s behind, want %s, %v", when, answer.Counts, answer.View.Lag, state, lag)
		}
	}
	put("1", "False")
	check("at first", "Failed", 0)
	clock.Step(9 * time.Second)
	check("nothing has happened", "Failed", 0)
	put("2", "True")
	check("it was repaired", "Failed", 9)
	clock.Step(time.Second)
	check("it is read again", "Healthy", 0)
}

// A kind without a status is told as such by the answers, too.
func TestNobodyWaitsForAStatusThatTheDefinitionDoesNotHave(t *testing.T) {
	kind := kindOf("things", true)
	for _, without := range []bool{false, true} {
		m := newMonitor(t, func(o *Options) { o.HasNoStatus = func(schema.GroupResource) bool { return without } }, kind)
		m.cluster.allow("user", "things.example.com", "", true)
		state := change.State{
			Namespace: "north", Name: "one", UID: "00000000-0000-4000-8000-000000000001", ResourceVersion: "1",
			Body: []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"one","namespace":"north"},"spec":{"size":1}}`),
		}
		m.commit(store.Batch{Kind: kind, Checkpoint: "1", Put: []change.State{state}})
		want := health.ReasonNoStatus
		if without {
			want = health.ReasonHasNoStatus
		}
		one := get[api.Object](m, "user", api.Prefix+"object?kind=things.example.com&namespace=north&name=one").Health
		all := get[api.HealthSummary](m, "user", api.Prefix+"health?limit=10").Objects
		if one == nil || one.Reason != want || len(all) != 1 || all[0].Reason != want {
			t.Errorf("without a status %t: the object is %+v, and of all %+v", without, one, all)
		}
	}
}
