//go:build pagetest

package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// hostile are texts that do something where they are read as HTML, as a script, or as part of an address.
var hostile = []string{
	`<script>alert(1)</script>`,
	`<img src=x onerror=alert(2)>`,
	`"><svg onload=alert(3)>`,
	`javascript:alert(4)`,
	`{{constructor.constructor('alert(5)')()}}`,
	"</pre><iframe srcdoc=\"<script>parent.alert(6)</script>\">",
	`' onmouseover='alert(7)`,
	"\u202egnp.exe\u2066 <style>*{display:none}</style>",
}

func kind(group, resource, name string) change.Kind {
	return change.Kind{Group: group, Version: "v1", Kind: name, Resource: resource, Namespaced: true, Definition: types.UID("definition-" + resource)}
}

var (
	webapps      = kind("slipway.dev", "webapps", "WebApp")
	backups      = kind("slipway.dev", "backups", "Backup")
	databases    = kind("data.example.com", "databases", "Database")
	replicas     = kind("data.example.com", "databasereplicas", "DatabaseReplica")
	certificates = kind("certs.example.com", "certificates", "Certificate")
)

func kinds() []change.Kind { return []change.Kind{webapps, backups, databases, replicas, certificates} }

// thing is an object to put into the history.
type thing struct {
	kind            change.Kind
	namespace, name string
	spec            map[string]any
	ready, reason   string
	message         string
	owner           *thing
}

func (o *thing) uid() types.UID {
	return types.UID(fmt.Sprintf("%x", o.kind.Resource+o.namespace+o.name))
}

func (o *thing) body() []byte {
	metadata := map[string]any{"name": o.name, "namespace": o.namespace, "uid": o.uid(), "generation": 3, "labels": map[string]any{"team": "shop"}}
	if o.owner != nil {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": o.owner.kind.Group + "/v1", "kind": o.owner.kind.Kind, "name": o.owner.name, "uid": o.owner.uid(), "controller": true,
		}}
	}
	object := map[string]any{"apiVersion": o.kind.Group + "/v1", "kind": o.kind.Kind, "metadata": metadata, "spec": o.spec}
	if o.ready != "" {
		object["status"] = map[string]any{"observedGeneration": 3, "conditions": []any{map[string]any{
			"type": "Ready", "status": o.ready, "reason": o.reason, "message": o.message, "lastTransitionTime": time.Now().Add(-12 * time.Minute).UTC().Format(time.RFC3339),
		}}}
	}
	return plainJSON(object)
}

// plainJSON writes JSON without the escapes that make it harmless in HTML.
func plainJSON(value any) []byte {
	into := &bytes.Buffer{}
	encoder := json.NewEncoder(into)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(into.Bytes())
}

func raw(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// put records a change of a thing.
func (m *monitor) put(o *thing, what change.Type, ago time.Duration, actor string, fields ...change.Field) {
	m.Helper()
	m.revision++
	version := fmt.Sprint(m.revision)
	by := change.Actor{Name: actor, Confidence: change.Likely, Source: "managedFields"}
	if actor == "" {
		by = change.Actor{Confidence: change.Unknown}
	}
	record := change.Record{
		Kind: o.kind, Namespace: o.namespace, Name: o.name, UID: o.uid(), ResourceVersion: version, Generation: 3, Type: what,
		Time: time.Now().Add(-ago), Fields: fields, Actor: by,
	}
	batch := store.Batch{Kind: o.kind, Checkpoint: version, Records: []change.Record{record}}
	if what == change.Deleted {
		batch.Drop = []types.UID{o.uid()}
	} else {
		batch.Put = []change.State{{Namespace: o.namespace, Name: o.name, UID: o.uid(), ResourceVersion: version, Generation: 3, Body: o.body()}}
	}
	m.commit(batch)
}

func changed(path string, before, after any) change.Field {
	return change.Field{Path: path, Op: change.Changed, Old: raw(before), New: raw(after)}
}

func shop(name, image string, replicas int) *thing {
	return &thing{kind: webapps, namespace: "shop", name: name, ready: "True", reason: "Available", message: "all replicas are available", spec: map[string]any{
		"image": "registry.example.com/" + name + ":" + image, "replicas": replicas, "port": 8080,
		"env": map[string]any{"LOG_LEVEL": "info", "REGION": "eu-central"}, "resources": map[string]any{"cpu": "500m", "memory": "512Mi"},
	}}
}

// fill writes a day in the life of a small shop.
func (m *monitor) fill() {
	storefront, checkout := shop("storefront", "1.4.1", 3), shop("checkout", "2.0.0", 2)
	main := &thing{kind: databases, namespace: "shop", name: "orders", ready: "True", reason: "Running", spec: map[string]any{"engine": "postgres", "size": "40Gi"}}
	standby := &thing{kind: replicas, namespace: "shop", name: "orders-standby", owner: main, ready: "False", reason: "CatchingUp", message: "4 MiB behind", spec: map[string]any{"of": "orders"}}
	reader := &thing{kind: replicas, namespace: "shop", name: "orders-reader", owner: main, ready: "True", reason: "Running", spec: map[string]any{"of": "orders"}}
	nightly := &thing{kind: backups, namespace: "shop", name: "orders-nightly", owner: reader, ready: "True", reason: "Completed", spec: map[string]any{"schedule": "0 2 * * *"}}
	for i, o := range []*thing{storefront, checkout, main, standby, reader, nightly} {
		m.put(o, change.Baseline, 23*time.Hour+time.Duration(i)*time.Second, "")
	}
	m.put(&thing{kind: certificates, namespace: "shop", name: "wildcard", spec: map[string]any{"hosts": []any{"*.example.com"}}}, change.Created, 20*time.Hour, "kubectl-create")
	for i := range 40 {
		size := 2 + i%3
		storefront.spec["replicas"] = size
		m.put(storefront, change.Updated, 20*time.Hour-time.Duration(i*i)*40*time.Second, "horizontal-pod-autoscaler", changed(".spec.replicas", 2+(i+2)%3, size))
	}
	storefront.spec["image"], storefront.spec["replicas"] = "registry.example.com/storefront:1.4.2", 3
	m.put(storefront, change.Updated, 30*time.Minute, "argocd-controller",
		changed(".spec.image", "registry.example.com/storefront:1.4.1", "registry.example.com/storefront:1.4.2"), changed(".spec.replicas", 2, 3))
	checkout.spec["image"] = "registry.example.com/checkout:2.1.0-rc1"
	checkout.spec["env"] = map[string]any{"LOG_LEVEL": "debug", "REGION": "eu-central", "PAYMENT_URL": "https://pay.example.com"}
	m.put(checkout, change.Updated, 14*time.Minute, "kubectl-edit",
		change.Field{Path: ".spec.env.PAYMENT_URL", Op: change.Added, New: raw("https://pay.example.com")}, changed(".spec.env.LOG_LEVEL", "info", "debug"),
		changed(".spec.image", "registry.example.com/checkout:2.0.0", "registry.example.com/checkout:2.1.0-rc1"))
	checkout.ready, checkout.reason, checkout.message = "False", "ImagePullBackOff", "container app: the image registry.example.com/checkout:2.1.0-rc1 does not exist"
	m.put(checkout, change.Updated, 12*time.Minute, "slipway-webapp", changed(`.status.conditions[type="Ready"].status`, "True", "False"),
		changed(`.status.conditions[type="Ready"].reason`, "Available", "ImagePullBackOff"),
		changed(`.status.conditions[type="Ready"].message`, "all replicas are available", checkout.message))
	gone := &thing{kind: databases, namespace: "test", name: "scratch", ready: "True", reason: "Running", spec: map[string]any{"engine": "postgres"}}
	m.put(gone, change.Created, 3*time.Hour, "terraform")
	m.put(gone, change.Deleted, 2*time.Hour, "")
	m.commit(store.Batch{Kind: certificates, Checkpoint: "9000", Records: []change.Record{{
		Kind: certificates, Type: change.Gap, Time: time.Now().Add(-9 * time.Minute), Since: time.Now().Add(-11 * time.Minute), Reason: "the watch ended and the list is forbidden",
	}}})
	m.fillDefinitions()
}

// hostileName is a name that no API server accepts today. The page must not rely on that.
const hostileName = `<script>alert(1)</script>`

func (m *monitor) fillHostile() {
	spec := map[string]any{}
	o := &thing{kind: backups, namespace: "hostile", name: hostileName, ready: "False", reason: hostile[1], message: strings.Join(hostile, " "), spec: spec}
	m.put(o, change.Created, 50*time.Hour, hostile[2])
	var fields []change.Field
	for _, text := range hostile {
		spec[text] = text
		fields = append(fields, change.Field{Path: ".spec[" + string(plainJSON(text)) + "]", Op: change.Added, New: raw(text)})
	}
	m.put(o, change.Updated, 49*time.Hour, hostile[1], fields...)
}

const definitionBefore = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"databases.data.example.com","uid":"definition-databases","generation":1},
"spec":{"group":"data.example.com","scope":"Namespaced","names":{"plural":"databases","singular":"database","kind":"Database","listKind":"DatabaseList"},"versions":[
{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"engine":{"type":"string"},"size":{"type":"string"}}}}}}},
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"engine":{"type":"string"},"size":{"type":"string"},"notes":{"type":"string"}}}}}}}]}}`

const definitionAfter = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"databases.data.example.com","uid":"definition-databases","generation":2},
"spec":{"group":"data.example.com","scope":"Namespaced","names":{"plural":"databases","singular":"database","kind":"Database","listKind":"DatabaseList"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["engine"],"properties":{"engine":{"type":"string","enum":["postgres","mysql"]},"size":{"type":"string"},"tier":{"type":"string"}}}}}}}]}}`

// reports says how the objects fare with the last version of the definition.
func reports(_ context.Context, name string) ([]recorder.Report, error) {
	if name != "databases.data.example.com" {
		return nil, nil
	}
	return []recorder.Report{{
		UID: "definition-databases", Generation: 2,
		Objects: &recorder.ObjectsReport{
			Version: "v1", Time: time.Now().Add(-2 * time.Hour), Checked: 4, Fine: 2, BreaksOnEdit: 1, Breaks: 1,
			Examples: []recorder.ObjectVerdict{
				{Namespace: "shop", Name: "orders", Verdict: crdcheck.Verdict{State: crdcheck.Breaks, MoreProblems: 1, Problems: []crdcheck.Problem{
					{When: crdcheck.EveryWrite, Field: ".spec.engine", Message: "Required value"},
				}}},
				{Namespace: "hostile", Name: hostileName, Verdict: crdcheck.Verdict{State: crdcheck.BreaksOnEdit, Problems: []crdcheck.Problem{
					{When: crdcheck.OnEdit, Edit: hostile[1], Field: hostile[1], Message: strings.Join(hostile, " ")},
				}}},
			},
		},
	}}, nil
}

func (m *monitor) fillDefinitions() {
	for i, content := range []string{definitionBefore, definitionAfter} {
		m.commit(store.Batch{Definitions: []store.Definition{{
			Name: "databases.data.example.com", UID: "definition-databases", Generation: int64(i + 1), Time: time.Now().Add(time.Duration(i-3) * time.Hour), Content: []byte(content),
		}}})
	}
}
