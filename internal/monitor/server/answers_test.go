package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

func TestPagesFollowEachOtherWithoutAHole(t *testing.T) {
	apples, pears := kindOf("apples", true), kindOf("pears", true)
	m := newMonitor(t, nil, apples, pears)
	m.cluster.allow("user", "apples.example.com", "", true)
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("apple-%02d", i)
		m.record(apples, "north", name, "x")
		m.record(pears, "north", "pear", "x")
		want = append([]string{name}, want...)
	}
	for _, filter := range []string{"", "&path=.spec", "&kind=apples.example.com", "&namespace=north", "&actor=editor", "&type=Updated,Deleted", "&since=1h"} {
		var got []string
		cursor := ""
		for range 100 {
			page := get[api.Changes](m, "user", api.Prefix+"changes?limit=4&cursor="+cursor+filter)
			got = append(got, names(page.Changes)...)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", filter, diff)
		}
	}
	for _, filter := range []string{"path=.status", "path=.spe", "actor=nobody", "type=Deleted", "until=1h", "namespace=south", "name=pear"} {
		if page := get[api.Changes](m, "user", api.Prefix+"changes?"+filter); len(page.Changes) > 0 {
			t.Errorf("%s: %v", filter, names(page.Changes))
		}
	}
	if page := get[api.Changes](m, "user", api.Prefix+"changes?limit=1&fields=false"); len(page.Changes) != 1 || page.Changes[0].Fields != nil {
		t.Errorf("fields that were not asked for: %v", page.Changes)
	}
}

func TestAnAnswerHasABound(t *testing.T) {
	apples := kindOf("apples", true)
	m := newMonitor(t, nil, apples)
	m.cluster.allow("user", "apples.example.com", "", true)
	for i := range 12 {
		m.record(apples, "north", fmt.Sprint(i), strings.Repeat("x", 900_000))
	}
	seen, cursor := 0, ""
	for range 20 {
		w := m.ask("user", api.Prefix+"changes?cursor="+cursor)
		page := api.Changes{}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		if w.Body.Len() > 2*maxAnswer+maxAnswer/2 {
			t.Errorf("an answer has %d bytes", w.Body.Len())
		}
		seen += len(page.Changes)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if seen != 12 {
		t.Errorf("%d changes, want 12", seen)
	}
}

func TestAnObjectNowAndAtATime(t *testing.T) {
	apples, owners := kindOf("apples", true), kindOf("owners", true)
	m := newMonitor(t, nil, apples, owners)
	for _, kind := range []string{"apples", "owners"} {
		m.cluster.allow("user", kind+".example.com", "north", true)
	}
	first := m.record(apples, "north", "gala", "first")
	second := first
	second.ResourceVersion, second.Time = "2000", first.Time.Add(time.Second)
	second.Fields = []change.Field{{Path: ".spec.text", Op: change.Changed, Old: json.RawMessage(`"first"`), New: json.RawMessage(`"second"`)}}
	m.commit(store.Batch{Kind: apples, Checkpoint: "2000", Records: []change.Record{second}, Put: []change.State{{
		Namespace: "north", Name: "gala", UID: first.UID, ResourceVersion: "2000",
		Body: []byte(fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Apples","metadata":{"name":"gala","namespace":"north","uid":%q,"creationTimestamp":"2025-01-01T01:00:00Z","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Owners","name":"owner","uid":"owner-uid"}]},"spec":{"text":"second"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Broken","message":"m"}]}}`, first.UID)),
	}}})
	m.commit(store.Batch{Kind: owners, Checkpoint: "1", Put: []change.State{{
		Namespace: "north", Name: "owner", UID: "owner-uid", ResourceVersion: "1",
		Body: []byte(`{"apiVersion":"example.com/v1","kind":"Owners","metadata":{"name":"owner","namespace":"north","uid":"owner-uid","creationTimestamp":"2025-01-01T01:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`),
	}}})
	about := "?kind=apples.example.com&namespace=north&name=gala"
	now := get[api.Object](m, "user", api.Prefix+"object"+about)
	if !now.Exists || now.Health.State != "Failed" && now.Health.State != "Progressing" || len(now.Conditions) != 1 || now.LastChange.ResourceVersion != "2000" {
		t.Errorf("now: %+v %+v", now, now.Health)
	}
	if len(now.Owners) != 1 || now.Owners[0].Kind != "owners.example.com" || now.Owners[0].Health == nil || now.Owners[0].Health.State != "Healthy" {
		t.Errorf("owners: %+v", now.Owners)
	}
	then := get[api.Object](m, "user", api.Prefix+"object"+about+"&at="+url.QueryEscape(first.Time.Format(time.RFC3339Nano)))
	if !then.Exists || !strings.Contains(string(then.Object), `"text":"first"`) {
		t.Errorf("then: %s", then.Object)
	}
	before := get[api.Object](m, "user", api.Prefix+"object"+about+"&at=24h")
	if !before.Exists || !strings.Contains(string(before.Object), `"text":"before"`) {
		t.Errorf("before the first change that is known: %s", before.Object)
	}
	owner := get[api.Object](m, "user", api.Prefix+"object?kind=owners.example.com&namespace=north&name=owner&uid=owner-uid")
	if len(owner.Children) != 1 || owner.Children[0].Name != "gala" || owner.Children[0].Health.State == "" {
		t.Errorf("children: %+v", owner.Children)
	}
	history := get[api.Changes](m, "user", api.Prefix+"history"+about)
	if len(history.Changes) != 2 || string(history.Changes[0].Fields[0].New) != `"second"` {
		t.Errorf("history: %+v", history.Changes)
	}
	if other := m.ask("user", api.Prefix+"object"+about+"&uid=another"); other.Code != http.StatusNotFound {
		t.Errorf("another UID: %d", other.Code)
	}
	summary := get[api.HealthSummary](m, "user", api.Prefix+"health?namespace=north")
	if summary.Counts["Healthy"] != 1 || len(summary.Objects) != 1 || summary.Objects[0].Name != "gala" {
		t.Errorf("health: %+v", summary)
	}
	if all := get[api.HealthSummary](m, "user", api.Prefix+"health?namespace=north&all=true"); len(all.Objects) != 2 {
		t.Errorf("health of all: %+v", all)
	}
}

func TestAnAnswerSaysHowOldItIs(t *testing.T) {
	kinds := []change.Kind{kindOf("apples", true), kindOf("pears", true), kindOf("plums", true), kindOf("trees", false)}
	m := newMonitor(t, nil, kinds...)
	m.cluster.allow("user", "plums.example.com", "", true)
	w := m.ask("user", api.Prefix+"changes")
	if w.Header().Get(api.LagHeader) != "0.020" || w.Header().Get(api.UncoveredHeader) != "0" {
		t.Errorf("%v", w.Header())
	}
	m.cluster.allow("user", "trees.example.com", "", true)
	other := "user-of-trees"
	m.cluster.allow(other, "trees.example.com", "", true)
	page := get[api.Changes](m, other, api.Prefix+"changes")
	if page.View.Complete || page.View.Lag < 59 || len(page.View.Uncovered) != 1 || page.View.Uncovered[0].Kind != "trees.example.com" {
		t.Errorf("%+v", page.View)
	}
	coverage := get[api.Coverage](m, other, api.Prefix+"coverage")
	if len(coverage.Kinds) != 1 || coverage.Kinds[0].Reason == "" || coverage.States["Failing"] != 1 {
		t.Errorf("%+v", coverage)
	}
}

func TestVersionsOfADefinitionAreCompared(t *testing.T) {
	big := recorder.ObjectVerdict{Namespace: "a", Name: "big", Verdict: crdcheck.Verdict{State: crdcheck.Breaks, Problems: []crdcheck.Problem{
		{When: crdcheck.EveryWrite, Field: ".spec.size", Message: "too large"}, {When: crdcheck.OnEdit, Field: ".spec.other"},
	}}}
	m := newMonitor(t, func(o *Options) {
		o.Reports = func(context.Context, string) ([]recorder.Report, error) {
			return []recorder.Report{
				{UID: "an-earlier-one", Generation: 2, Objects: &recorder.ObjectsReport{Checked: 9}},
				{UID: "u", Generation: 2, Objects: &recorder.ObjectsReport{Version: "v1", Checked: 3, Fine: 2, Breaks: 1, Examples: []recorder.ObjectVerdict{big}}},
			}, nil
		}
	})
	definition := func(fields string) []byte {
		return []byte(`{"metadata":{"name":"apples.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"apples","kind":"Apple"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{` + fields + `}}}}}}]}}`)
	}
	for i, fields := range []string{`"size":{"type":"integer"},"colour":{"type":"string"}`, `"size":{"type":"integer","maximum":5}`} {
		m.commit(store.Batch{Definitions: []store.Definition{{Name: "apples.example.com", UID: "u", Generation: int64(i + 1), Time: time.Now(), Content: definition(fields)}}})
	}
	path := api.Prefix + "definitions?name=apples.example.com"
	if w := m.ask("user", path); w.Code != http.StatusNotFound {
		t.Errorf("without the right: %d", w.Code)
	}
	m.cluster.allow("user2", "customresourcedefinitions.apiextensions.k8s.io", "", true)
	answer := get[api.Definitions](m, "user2", path)
	if len(answer.Versions) != 2 || answer.Versions[0].Generation != 2 || len(answer.Versions[1].Findings) != 0 {
		t.Fatalf("%+v", answer)
	}
	var codes []string
	for _, f := range answer.Versions[0].Findings {
		codes = append(codes, f.Severity+" "+f.Code+" "+f.Path)
	}
	if diff := cmp.Diff([]string{"Breaking FieldRemoved .spec.colour", "Breaking BoundTightened .spec.size"}, codes); diff != "" {
		t.Error(diff)
	}
	if answer.Versions[0].Objects != nil {
		t.Errorf("who may not list the objects is told of them: %+v", answer.Versions[0].Objects)
	}
	m.cluster.allow("user3", "customresourcedefinitions.apiextensions.k8s.io", "", true)
	m.cluster.allow("user3", "apples.example.com", "", true)
	want := &api.CheckedObjects{Version: "v1", Checked: 3, Fine: 2, Breaks: 1, Examples: []api.CheckedObject{
		{Namespace: "a", Name: "big", State: "Breaks", Field: ".spec.size", Message: "too large", More: 1},
	}}
	if diff := cmp.Diff(want, get[api.Definitions](m, "user3", path).Versions[0].Objects); diff != "" {
		t.Error(diff)
	}
	if w := m.ask("user2", api.Prefix+"definitions?name=pears.example.com"); w.Code != http.StatusNotFound {
		t.Errorf("one that is not there: %d", w.Code)
	}
}

// stored tells streams that something was stored.
type stored struct{ ring chan struct{} }

func (s stored) Next(ctx context.Context) error {
	select {
	case <-s.ring:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (stored) Close() {}

// listener reads a stream.
type listener struct {
	*testing.T
	lines *bufio.Scanner
	end   context.CancelFunc
	code  int
}

func listen(t *testing.T, address, user, path, last string) *listener {
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(end)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+api.Prefix+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+user)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	l := &listener{T: t, lines: bufio.NewScanner(answer.Body), end: end, code: answer.StatusCode}
	l.lines.Buffer(nil, 1<<20)
	return l
}

// next returns the next event of a kind.
func (l *listener) next(event string) (id, data string) {
	l.Helper()
	kind := ""
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "event":
			kind, id = value, ""
		case "id":
			id = value
		case "data":
			if kind == event {
				return id, value
			}
		}
	}
	l.Fatalf("the stream ended before an event %s", event)
	return "", ""
}

func TestAStreamGoesOnWhereItWas(t *testing.T) {
	apples, pears := kindOf("apples", true), kindOf("pears", true)
	ring := stored{make(chan struct{}, 1000)}
	m := newMonitor(t, func(o *Options) { o.Subscribe = func() Subscription { return ring } }, apples, pears)
	m.cluster.allow("user", "apples.example.com", "north", true)
	server := httptest.NewServer(m.handler)
	defer server.Close()
	defer server.CloseClientConnections()
	m.record(apples, "north", "old", "x")
	first := listen(t, server.URL, "user", "stream", "")
	if _, view := first.next("view"); !strings.Contains(view, "lagSeconds") {
		t.Errorf("the view is %s", view)
	}
	add := func(kind change.Kind, namespace, name string) {
		m.record(kind, namespace, name, "one\ndata: {}\n\nevent: change")
		ring.ring <- struct{}{}
	}
	add(pears, "north", "hidden")
	add(apples, "south", "hidden")
	add(apples, "north", "a")
	add(apples, "north", "b")
	id, data := first.next("change")
	if !strings.Contains(data, `"name":"a"`) {
		t.Errorf("%s", data)
	}
	first.end()
	add(apples, "north", "c")
	second := listen(t, server.URL, "user", "stream?kind=apples.example.com&namespace=north", id)
	for _, want := range []string{"b", "c"} {
		if _, data := second.next("change"); !strings.Contains(data, `"name":"`+want+`"`) {
			t.Errorf("want %s: %s", want, data)
		}
	}
	if l := listen(t, server.URL, "user", "stream", "made-up"); l.code != http.StatusBadRequest {
		t.Errorf("an ID that was not given: %d", l.code)
	}
	if l := listen(t, server.URL, "user", "stream?kind=pears.example.com", ""); l.code != http.StatusNotFound {
		t.Errorf("a kind that may not be seen: %d", l.code)
	}
}

func TestAStreamEndsWhenTheRightsDo(t *testing.T) {
	apples := kindOf("apples", true)
	ring := stored{make(chan struct{}, 1000)}
	ahead := &aheadClock{}
	m := newMonitor(t, func(o *Options) { o.Clock, o.Subscribe = ahead, func() Subscription { return ring } }, apples)
	m.cluster.allow("user", "apples.example.com", "north", true)
	server := httptest.NewServer(m.handler)
	defer server.Close()
	defer server.CloseClientConnections()
	l := listen(t, server.URL, "user", "stream?kind=apples.example.com&namespace=north", "")
	l.next("view")
	m.record(apples, "north", "a", "x")
	ring.ring <- struct{}{}
	l.next("change")
	m.cluster.allow("user", "apples.example.com", "north", false)
	ahead.by.Store(int64(time.Minute)) // the server keeps its own answers for some seconds; this test does not wait for their end
	m.record(apples, "north", "b", "x")
	ring.ring <- struct{}{}
	if _, data := l.next("failure"); !strings.Contains(data, string(failure.NotFound)) {
		t.Errorf("%s", data)
	}
	if l.lines.Scan() && strings.TrimSpace(l.lines.Text()) != "" {
		t.Errorf("the stream goes on: %s", l.lines.Text())
	}
}
