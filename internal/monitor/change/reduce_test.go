package change_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func TestReduceReadsWhoAnObjectIs(t *testing.T) {
	state := reduce(t, widgetAt("42", `"generation":7,"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-01-01T00:00:00Z","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:size":{}}},"odd":1}]`, `"spec":{"size":1.50}`), nil)
	want := change.State{
		Namespace: "shop", Name: "one", UID: "u-1", ResourceVersion: "42", Generation: 7, Hash: state.Hash,
		Body:     []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one","namespace":"shop","uid":"u-1"},"spec":{"size":1.50}}`),
		Managers: []byte(`[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:size":{}}},"manager":"kubectl","operation":"Update","time":"2026-01-01T00:00:00Z"}]`),
	}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Error(diff)
	}
	if state.Mark() != (change.Mark{UID: "u-1", ResourceVersion: "42", Hash: state.Hash}) {
		t.Errorf("mark %+v", state.Mark())
	}
}

// In a list of a built-in kind, items do not say what they are. They are the same objects that a watch shows with it.
func TestItemOfAListIsTheSameObject(t *testing.T) {
	full := reduce(t, widget(`"spec":{"size":1}`), nil)
	bare := reduce(t, `{"metadata":{"name":"one","namespace":"shop","uid":"u-1","resourceVersion":"1"},"spec":{"size":1}}`, nil)
	if full.Hash != bare.Hash {
		t.Errorf("%s\n%s", full.Body, bare.Body)
	}
}

const widgetSchema = `{"type":"object","properties":{
	"spec":{"type":"object","properties":{
		"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
		"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],"items":{"type":"object","properties":{
			"port":{"x-kubernetes-int-or-string":true},"protocol":{"type":"string"},"paths":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}},
		"rules":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{"a":{"type":"string"}}}},
		"login":{"type":"string","format":"password"},
		"credentials":{"type":"object","properties":{"user":{"type":"string"},"realm":{"type":"object","properties":{"id":{"type":"string"}}}}},
		"secretTemplate":{"type":"object","properties":{"flavour":{"type":"string"}}},
		"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true}
	}},
	"status":{"type":"object","properties":{"conditions":{"type":"array","items":{"type":"object"}}}}}}`

func TestOrderMeansNothing(t *testing.T) {
	s := newSchema(t, widgetSchema)
	first := reduce(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"uid":"u-1","name":"one","finalizers":["b","a"],"ownerReferences":[{"uid":"2"},{"uid":"1"}]},
		"spec":{"tags":["x","y"],"ports":[{"port":80,"protocol":"TCP","paths":["/b","/a"]},{"port":80,"protocol":"UDP"}],"resourceRefs":[{"kind":"A","name":"z"},{"kind":"A","name":"b"}]},
		"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"True"}]}}`, s)
	second := reduce(t, `{"metadata":{"finalizers":["a","b"],"name":"one","uid":"u-1","ownerReferences":[{"uid":"1"},{"uid":"2"}]},"apiVersion":"example.com/v1",
		"status":{"conditions":[{"status":"True","type":"Synced"},{"type":"Ready","status":"True"}]},
		"spec":{"resourceRefs":[{"kind":"A","name":"b"},{"name":"z","kind":"A"}],"ports":[{"protocol":"UDP","port":80},{"protocol":"TCP","port":80,"paths":["/a","/b"]}],"tags":["y","x"]},"kind":"Widget"}`, s)
	if first.Hash != second.Hash {
		t.Errorf("%s\n%s", first.Body, second.Body)
	}
	records, folded := change.Records(&first, at(second, "2"), change.Context{Kind: widgets, Schema: s})
	// Finalizers, owners, tags, ports, paths, references and conditions.
	if len(records) != 0 || folded != 7 {
		t.Errorf("%d records, %d folded, want 0 and 7", len(records), folded)
	}
}

func TestOrderThatMeansSomethingStays(t *testing.T) {
	s := newSchema(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{"initContainers":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}}}}`)
	for _, field := range []string{"initContainers", "stages"} {
		first := reduce(t, widget(`"spec":{"`+field+`":[{"name":"b"},{"name":"a"}]}`), s)
		second := reduce(t, widget(`"spec":{"`+field+`":[{"name":"a"},{"name":"b"}]}`), s)
		if first.Hash == second.Hash {
			t.Errorf("the order of %s is lost", field)
		}
	}
}

func TestNoiseIsLeftOutAndCounted(t *testing.T) {
	policy := newPolicy(t, change.Options{Noise: []string{".status.uptime", `.metadata.annotations["example.com/seen"]`, ".status.nodes[*].beat"}})
	for name, c := range map[string]struct {
		before, after string
		folded        int64
	}{
		"times of conditions": {
			widget(`"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"1","lastHeartbeatTime":"1","lastProbeTime":"1","lastUpdateTime":"1"}]}`),
			widget(`"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2","lastHeartbeatTime":"2","lastProbeTime":"2","lastUpdateTime":"2"}]}`), 4,
		},
		"times of conditions of something else": {
			widget(`"status":{"parents":[{"ref":"x","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"1"}]}]}`),
			widget(`"status":{"parents":[{"ref":"x","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2"}]}]}`), 1,
		},
		"a time that comes": {
			widget(`"status":{"conditions":[{"type":"Ready","status":"True"}]}`),
			widget(`"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2"}]}`), 1,
		},
		"who leads": {
			widgetAt("1", `"annotations":{"control-plane.alpha.kubernetes.io/leader":"a","x":"y"}`),
			widgetAt("1", `"annotations":{"control-plane.alpha.kubernetes.io/leader":"b","x":"y"}`), 1,
		},
		"what the options name": {
			widgetAt("1", `"annotations":{"example.com/seen":"1"}`, `"status":{"uptime":1,"nodes":[{"beat":1},{"beat":1}]}`),
			widgetAt("1", `"annotations":{"example.com/seen":"2"}`, `"status":{"uptime":{"s":2},"nodes":[{"beat":2},{"beat":1}]}`), 3,
		},
		"an embedded object's bookkeeping": {
			widget(`"spec":{"manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","resourceVersion":"1","generation":1,"managedFields":[{"manager":"a"}]}}}`),
			widget(`"spec":{"manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","resourceVersion":"2","generation":2,"managedFields":[{"manager":"b"}]}}}`), 2,
		},
		"a lease's renewal": {widget(`"spec":{"renewTime":"1"}`), widget(`"spec":{"renewTime":"2"}`), 1},
		"nothing":           {widget(), widget(), 1},
	} {
		before, after := reduceWith(t, c.before, nil, policy), reduceWith(t, c.after, nil, policy)
		records, folded := change.Records(&before, at(after, "2"), change.Context{Kind: widgets})
		if len(records) != 0 || folded != c.folded {
			t.Errorf("%s: %d records, folded %d, want 0 and %d:\n%s\n%s", name, len(records), folded, c.folded, before.Body, after.Body)
		}
	}
}

// at is a state at another version.
func at(s change.State, version string) *change.State {
	s.ResourceVersion = version
	return &s
}

func TestDoubtLeavesTheMetadata(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	metadata := `"metadata":{"name":"one","namespace":"shop","uid":"u-1","resourceVersion":"5","generation":3,"labels":{"app":"web","password":"hunter2"},"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}]}`
	for name, c := range map[string]struct{ object, reason string }{
		"too deep":                 {`{` + metadata + `,"spec":` + deep + `}`, "it is nested too deeply"},
		"a key twice":              {`{"spec":{"a":1,"a":2},` + metadata + `}`, "it has a key twice"},
		"not UTF-8":                {`{"spec":"` + "\xff" + `",` + metadata + `}`, "a text in it is not valid Unicode"},
		"half a surrogate":         {`{"spec":"\ud800",` + metadata + `}`, "a text in it is not valid Unicode"},
		"too many values":          {`{` + metadata + `,"spec":[` + strings.Repeat("0,", change.MaxValues) + `0]}`, "it has too many values"},
		"too large":                {`{` + metadata + `,"spec":"` + strings.Repeat("a", change.MaxBytes) + `"}`, "it is too large"},
		"not JSON":                 {`{` + metadata + `,"spec":{a}}`, "it is not valid JSON"},
		"only half of it":          {`{` + metadata + `,"spec":{"a":`, "it is not valid JSON"},
		"metadata stands twice":    {`{"metadata":{"name":"other"},` + metadata + `}`, "it has a key twice"},
		"its metadata is doubtful": {`{` + strings.Replace(metadata, `"labels"`, `"odd":{"a":1,"a":2},"labels"`, 1) + `}`, "it has a key twice"},
	} {
		state := reduce(t, c.object, nil)
		if !state.MetadataOnly || state.Reason != c.reason {
			t.Errorf("%s: %v, %q", name, state.MetadataOnly, state.Reason)
		}
		var body struct {
			APIVersion string
			Metadata   struct {
				Name   string
				Labels map[string]string
			}
			Spec any
		}
		if err := json.Unmarshal(state.Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.Spec != nil || body.APIVersion != "example.com/v1" || body.Metadata.Labels["app"] != "web" || !change.IsRedacted(body.Metadata.Labels["password"]) {
			t.Errorf("%s: %s", name, state.Body)
		}
		if state.Name != "one" || state.Namespace != "shop" || state.UID != "u-1" || state.ResourceVersion != "5" || state.Generation != 3 || state.Redacted != 1 {
			t.Errorf("%s: %+v", name, state)
		}
		if !strings.Contains(string(state.Managers), `"manager":"kubectl"`) {
			t.Errorf("%s: managers %s", name, state.Managers)
		}
		other := reduce(t, strings.Replace(c.object, `"spec"`, `"more":1,"spec"`, 1), nil)
		if strings.Contains(c.object, `"spec"`) && other.Hash == state.Hash {
			t.Errorf("%s: a change of the rest goes unseen", name)
		}
	}
}

func TestReduceRefuses(t *testing.T) {
	policy := newPolicy(t, change.Options{})
	for name, object := range map[string]string{
		"nothing": "", "a list": `["hunter2"]`, "a text": `"hunter2"`, "no name": `{"metadata":{"uid":"hunter2"}}`, "no object": `{"metadata":"hunter2"}`,
		"a name that is a number": `{"metadata":{"name":1,"hunter2":2}}`, "not JSON": `{"metadata":{"hunter2"`,
	} {
		state, err := change.Reduce([]byte(object), widgets, nil, policy)
		if err == nil || state.Body != nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %s", name, err, state.Body)
		}
	}
	if _, err := change.Reduce([]byte(widget()), widgets, nil, nil); err == nil {
		t.Error("an object is read without a policy")
	}
}

func TestHashAsText(t *testing.T) {
	state := reduce(t, widget(), nil)
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var again change.State
	if err := json.Unmarshal(text, &again); err != nil || cmp.Diff(state, again) != "" {
		t.Errorf("%v: %s", err, text)
	}
	for _, wrong := range []string{"", "00", strings.Repeat("x", 32), strings.Repeat("0", 33)} {
		if err := again.Hash.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q is a hash", wrong)
		}
	}
}
