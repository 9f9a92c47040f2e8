package change_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// canary is a secret that no other part of a test object contains.
const canary = "CaNaRy7Zq"

// places are objects with a canary where the policy must find it. %s is its place.
var places = map[string]string{
	"a password":                         widget(`"spec":{"password":"%s"}`),
	"a number":                           widget(`"spec":{"x":{"dbPasswd":"%s"}}`),
	"a list of tokens":                   widget(`"spec":{"apiTokens":["a","%s"]}`),
	"a map of tokens":                    widget(`"spec":{"tokens":{"alice":"%s"}}`),
	"a name in a map of tokens":          widget(`"spec":{"tokens":{"%s":true}}`),
	"a name in a map deep in tokens":     widget(`"spec":{"tokens":{"a":[{"b":{"%s":1}}]}}`),
	"credentials without a schema":       widget(`"spec":{"credentials":{"user":"%s"}}`),
	"a map about passwords":              widget(`"spec":{"passwordsByUser":{"alice":"%s"}}`),
	"a list of objects in credentials":   widget(`"spec":{"credentials":[{"user":"a","pw":"%s"}]}`),
	"a key in what could be a reference": widget(`"spec":{"apiKey":{"name":"prod","key":"%s"}}`),
	"a last word":                        widget(`"spec":{"smtpPass":"%s"}`),
	"a file that is its content":         widget(`"spec":{"passwordFile":"%s"}`),
	"a field of that format":             widget(`"spec":{"login":"%s"}`),
	"a declared field of credentials":    widget(`"spec":{"credentials":{"user":"%s"}}`),
	"a configured path":                  widget(`"spec":{"users":[{"id":"%s"}]}`),
	"a configured path, all below":       widget(`"spec":{"users":[{"id":{"%s":["x"]}}]}`),
	"a configured path, without a list":  widget(`"spec":{"plain":[[{"x":"%s"}]]}`),
	"a configured word":                  widget(`"spec":{"licence_code":"%s"}`),
	"a status":                           widget(`"status":{"adminPassword":"%s"}`),
	"a message":                          widget(`"status":{"conditions":[{"type":"Ready","status":"False","message":"cannot log in: password=%s"}]}`),
	"an address in a message":            widget(`"status":{"message":"dial postgres://app:%s@db:5432/app: refused"}`),
	"a bearer token in a message":        widget(`"status":{"message":"sent Authorization: Bearer %s0123456789abcdef"}`),
	"an annotation":                      widgetAt("1", `"annotations":{"example.com/api-token":"%s"}`),
	"a label":                            widgetAt("1", `"labels":{"secret":"%s"}`),
	"last applied":                       widgetAt("1", `"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"size\":\"%s\"}}"}`),
	"last applied of something else":     widget(`"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"%s"}}}}`),
	"a variable":                         widget(`"spec":{"containers":[{"name":"web","env":[{"name":"DB_PASSWORD","value":"%s"}]}]}`),
	"a parameter":                        widget(`"spec":{"parameters":[{"key":"db.password","value":"%s"}]}`),
	"a parameter with values":            widget(`"spec":{"parameters":[{"key":"db.password","values":["a","%s"]}]}`),
	"a header":                           widget(`"spec":{"headers":[{"name":"Authorization","value":"%s"}]}`),
	"a flag":                             widget(`"spec":{"args":["--db-password=%s"]}`),
	"what follows a flag":                widget(`"spec":{"args":["--db-password","%s"]}`),
	"what stands before a flag in a set": widget(`"spec":{"tags":["%s","--db-password"]}`),
	"JSON in a text":                     widget(`"spec":{"config":"{\"db\":{\"password\":\"%s\"}}"}`),
	"JSON in JSON in a text":             widget(`"spec":{"config":"{\"db\":\"{\\\"password\\\":\\\"%s\\\"}\"}"}`),
	"a variable of JSON in a text":       widget(`"spec":{"config":"[{\"name\":\"TOKEN\",\"value\":\"%s\"}]"}`),
	"a Secret in a text":                 widgetAt("1", `"annotations":{"x":"{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":{\"a\":\"%s\"}}"}`),
	"JSON with a key twice in a text":    widget(`"spec":{"config":"{\"a\":\"%s\",\"a\":2}"}`),
	"YAML in a text":                     widget(`"spec":{"values":"db:\n  password: %s\n"}`),
	"an embedded Secret":                 widget(`"spec":{"manifest":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"a":"%s"}}}`),
	"an embedded Secret's text":          widget(`"spec":{"manifests":[{"apiVersion":"v1","kind":"Secret","stringData":{"%s":"x"}}]}`),
	"a private key":                      widget(`"spec":{"pem":"-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----"}`),
	"a web token":                        widget(`"spec":{"x":"eyJhbGciOiJIUzI1NiJ9.%s.c2lnbmF0dXJlc2lnbmF0dXJl"}`),
	"a token of GitHub":                  widget(`"spec":{"x":"ghp_%s0123456789abcdefghijABCDEFGHIJ"}`),
	"the name of a member":               widget(`"spec":{"ghp_%s0123456789abcdefghijABCDEFGHIJ":1}`),
	"the name of a member in a message":  widget(`"spec":{"url https://a:%s@b":1}`),
	"a key of an item":                   widget(`"spec":{"ports":[{"port":"https://a:%s@b","protocol":"TCP"}]}`),
	"an item of a set":                   widgetAt("1", `"finalizers":["https://a:%s@b"]`),
	"a half surrogate elsewhere":         widget(`"spec":{"size":"%s","x":"\ud800"}`),
	"too deep elsewhere":                 widget(`"spec":{"size":"%s","x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`),
	"an annotation, and too deep":        widgetAt("1", `"annotations":{"password":"%s"}`, `"x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)),
	"managers: an item of a set":         managed(`{"f:spec":{"f:tags":{"v:\"https://a:%s@b\"":{}}}}`),
	"managers: an item of tokens":        managed(`{"f:spec":{"f:tokens":{"v:\"%s\"":{}}}}`),
	"managers: a key of an item":         managed(`{"f:spec":{"f:users":{"k:{\"id\":\"%s\"}":{"f:id":{}}}}}`),
	"managers: a key with a name":        managed(`{"f:spec":{"f:x":{"k:{\"token\":\"%s\"}":{".":{}}}}}`),
	"managers: a variable":               managed(`{"f:spec":{"f:env":{"k:{\"name\":\"TOKEN\",\"value\":\"%s\"}":{}}}}`),
	"managers: values of a variable":     managed(`{"f:spec":{"f:env":{"k:{\"name\":\"TOKEN\"}":{"f:values":{"v:\"%s\"":{}}}}}}`),
	"managers: a name in tokens":         managed(`{"f:spec":{"f:tokens":{"f:%s":{}}}}`),
	"managers: a name in a path":         managed(`{"f:spec":{"f:plain":{"f:%s":{}}}}`),
	"managers: a name":                   managed(`{"f:spec":{"f:ghp_%s0123456789abcdefghijABCDEFGHIJ":{}}}`),
	"managers: after a flag":             managed(`{"f:spec":{"f:tags":{"v:\"--token\"":{},"v:\"%s\"":{}}}}`),
	"managers: a value that is none":     managed(`{"f:spec":"%s","x:%s":{},"k:%s":{},"v:%s":{},"f:a":{"v:{\"password\":\"%s\"}":{}}}`),
	"managers: the manager":              widgetAt("1", `"managedFields":[{"manager":"token=%s","operation":"Update","fieldsV1":{"f:spec":{}}}]`),
	"managers: more than there may be":   widgetAt("1", `"managedFields":[{"manager":"a","%s":"%s","fieldsV1":{".":{"f:%s":{}}}}, "%s"]`),
	"noise":                              widget(`"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"%s"}]}`),
}

// managed is an object with fields owned.
func managed(fields string) string {
	return widgetAt("1", `"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":`+fields+`}]`)
}

func canaryPolicy(t testing.TB) *change.Policy {
	return newPolicy(t, change.Options{Paths: []string{".spec.users[*].id", ".spec.plain"}, Names: []string{"licence-code"}})
}

// plant puts a canary into a place.
func plant(place, canary string) string { return strings.ReplaceAll(place, "%s", canary) }

func TestCanaryIsNowhere(t *testing.T) {
	policy := canaryPolicy(t)
	s := newSchema(t, widgetSchema)
	for name, place := range places {
		for _, s := range []*change.Schema{nil, s} {
			if s == nil && (name == "a field of that format" || name == "what stands before a flag in a set") {
				continue
			}
			before := reduceWith(t, plant(place, canary), s, policy)
			after := reduceWith(t, strings.Replace(plant(place, canary+"2"), `"resourceVersion":"1"`, `"resourceVersion":"2"`, 1), s, policy)
			other := reduceWith(t, widget(`"spec":{"size":1}`), s, policy)
			found(t, name, before)
			for _, pair := range [][2]*change.State{{nil, &before}, {&before, &after}, {&before, nil}, {&other, at(before, "3")}, {&before, at(other, "3")}} {
				records, _ := change.Records(pair[0], pair[1], change.Context{Kind: widgets, Schema: s})
				found(t, name, records)
			}
		}
	}
}

func found(t *testing.T, name string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if state, ok := value.(change.State); ok {
		text = fmt.Appendf(text, "%s%s", state.Body, state.Managers)
	}
	if strings.Contains(string(text), canary) || strings.Contains(string(text), base64.StdEncoding.EncodeToString([]byte(canary))[:10]) {
		t.Errorf("%s: %s", name, text)
	}
}

// A secret that changed is seen to have changed, and not from what to what.
func TestChangeOfASecretIsVisible(t *testing.T) {
	policy := canaryPolicy(t)
	s := newSchema(t, widgetSchema)
	for name, place := range places {
		if strings.HasPrefix(name, "managers") || strings.HasPrefix(name, "last applied") || name == "noise" {
			continue
		}
		before := reduceWith(t, plant(place, canary), s, policy)
		same := reduceWith(t, plant(place, canary), s, policy)
		after := reduceWith(t, plant(place, canary+"2"), s, policy)
		if before.Hash != same.Hash || before.Hash == after.Hash {
			t.Errorf("%s: the same: %v, changed: %v\n%s", name, before.Hash == same.Hash, before.Hash != after.Hash, before.Body)
		}
		if before.Redacted == 0 && !before.MetadataOnly {
			t.Errorf("%s: nothing is counted", name)
		}
	}
}

// Equal secrets cannot be told to be equal from another object or another install.
func TestHashOfASecretIsOfNoUseElsewhere(t *testing.T) {
	object := widget(`"spec":{"password":"` + canary + `","token":"` + canary + `"}`)
	first := reduce(t, object, nil)
	elsewhere := reduce(t, strings.Replace(object, "u-1", "u-2", 1), nil)
	otherKey := reduceWith(t, object, nil, newPolicy(t, change.Options{Key: []byte("another key for tests")}))
	marks := map[string]int{}
	for _, state := range []change.State{first, elsewhere, otherKey} {
		var body struct{ Spec map[string]string }
		if err := json.Unmarshal(state.Body, &body); err != nil || !change.IsRedacted(body.Spec["password"]) {
			t.Fatalf("%v: %s", err, state.Body)
		}
		if body.Spec["password"] != body.Spec["token"] {
			t.Errorf("within an object equal secrets look different: %s", state.Body)
		}
		marks[body.Spec["password"]]++
	}
	if len(marks) != 3 {
		t.Errorf("the same hash stands in several: %v", marks)
	}
}

func TestCoreSecretIsHiddenWholly(t *testing.T) {
	kind := change.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	for _, head := range []string{`"apiVersion":"v1","kind":"Secret",`, ""} {
		object := `{` + head + `"metadata":{"name":"db","uid":"u","resourceVersion":"1","managedFields":[{"manager":"kubectl","fieldsV1":{"f:data":{".":{},"f:` + canary + `":{}},"f:type":{}}}]},"type":"Opaque","data":{"` + canary + `":"` + canary + `"},"stringData":{"a":"` + canary + `"}}`
		state, err := change.Reduce([]byte(object), kind, nil, newPolicy(t, change.Options{}))
		if err != nil || state.Redacted != 2 || !strings.Contains(string(state.Body), `"type":"Opaque"`) {
			t.Errorf("%v, %d hidden: %s", err, state.Redacted, state.Body)
		}
		found(t, "a Secret", state)
	}
}

// What is no secret stays readable, or a history is of no use.
func TestReferencesStayReadable(t *testing.T) {
	s := newSchema(t, widgetSchema)
	for _, object := range []string{
		widget(`"spec":{"secretName":"seen"}`), widget(`"spec":{"secretRef":{"name":"seen","key":"seen"}}`), widget(`"spec":{"tokenSecretRef":{"name":"seen"}}`),
		widget(`"spec":{"env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"seen","key":"password"}}}]}`),
		widget(`"spec":{"credentials":{"source":"Secret","secretRef":{"name":"seen","key":"seen"}}}`), widget(`"spec":{"volumes":[{"name":"x","secret":{"secretName":"seen","defaultMode":420}}]}`),
		widget(`"spec":{"imagePullSecrets":[{"name":"seen"}]}`), widget(`"spec":{"passwordFile":"/etc/seen"}`), widget(`"spec":{"password":{"name":"seen"}}`),
		widget(`"spec":{"automountServiceAccountToken":true,"x":"seen"}`), widget(`"spec":{"image":"ghcr.io/seen/secret-init:v1.2"}`),
		widget(`"status":{"message":"Secret \"seen\" not found"}`), widget(`"spec":{"env":[{"name":"LOG","value":"seen"}]}`),
		widget(`"spec":{"secretTemplate":{"flavour":"seen"}}`), widget(`"spec":{"config":"{\"a\":\"seen\"}"}`), widget(`"spec":{"args":["--token-ttl","seen","--password=$(PASSWORD)"]}`),
		widgetAt("1", `"annotations":{"secrets.example.com/mode":"seen"}`), widget(`"spec":{"tokenURL":null,"token":"","x":"seen"}`),
	} {
		state := reduce(t, object, s)
		if state.Redacted != 0 || !strings.Contains(string(state.Body), "seen") && !strings.Contains(string(state.Body), `\"seen\"`) {
			t.Errorf("%d hidden: %s", state.Redacted, state.Body)
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	key := []byte("0123456789abcdef")
	for name, options := range map[string]change.Options{
		"no key": {}, "a short key": {Key: key[:15]}, "a word of one letter": {Key: key, Names: []string{"-x-"}}, "no path": {Key: key, Paths: []string{""}},
		"half a path": {Key: key, Paths: []string{".spec."}}, "a path with a number": {Key: key, Paths: []string{".spec[1]"}}, "noise that is no path": {Key: key, Noise: []string{"spec"}},
		"a bracket that stays open": {Key: key, Paths: []string{`.spec["a`}}, "a number in brackets": {Key: key, Paths: []string{".spec[12e]"}}, "a path to an order": {Key: key, Paths: []string{".spec[]"}},
	} {
		if _, err := change.NewPolicy(options); err == nil || strings.Contains(err.Error(), string(key[:15])) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A canary in an object full of other things is found, whatever these are.
func FuzzCanary(f *testing.F) {
	generate.Seed(f, 60)
	policy, s := canaryPolicy(f), newSchema(f, widgetSchema)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(places)) {
		// A doubt about one part of an object does not outlive its being read and written here.
		if !strings.HasSuffix(name, "elsewhere") {
			names = append(names, name)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		surrounding := anyWidget(source)
		object := anyWidget(source)
		for range 1 + source.Below(3) {
			name := names[source.Below(len(names))]
			var planted map[string]any
			if json.Unmarshal([]byte(plant(places[name], canary)), &planted) != nil {
				continue
			}
			mix(object, planted)
		}
		before := reduceWith(t, string(write(surrounding, nil)), s, policy)
		after := reduceWith(t, string(write(object, nil)), s, policy)
		found(t, "a state", after)
		for _, pair := range [][2]*change.State{{&before, at(after, "8")}, {&after, at(before, "8")}} {
			records, _ := change.Records(pair[0], pair[1], change.Context{Kind: widgets, Schema: s})
			found(t, "a record", records)
		}
		broken := string(write(object, nil))
		broken = broken[:len(broken)-source.Below(len(broken))]
		state, err := change.Reduce([]byte(broken), widgets, s, policy)
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("an error: %v", err)
		}
		found(t, "half an object", state)
	})
}

// mix puts members of one object into another.
func mix(into, from map[string]any) {
	for key, value := range from {
		inner, isObject := value.(map[string]any)
		other, wasObject := into[key].(map[string]any)
		if isObject && wasObject && key != "manifest" {
			mix(other, inner)
			continue
		}
		into[key] = value
	}
}
