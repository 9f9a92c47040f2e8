//go:build monitorbench

package monitorbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// replay is no API server: it serves lists and watches of kinds out of memory, over TLS and HTTP/2 as an API server does, as fast as
// they are read. It has the definitions of its kinds and the rules that come with the monitor, and takes whatever is written to it.
type replay struct {
	*httptest.Server

	rules []byte // the items of a list

	mutex   sync.Mutex
	changed *sync.Cond
	version int
	kinds   map[string]*replayed // by path
	over    bool
}

// replayed is a kind. Its objects are made when they are sent, so that thousands of them need no memory here.
type replayed struct {
	kind
	objects []replayedObject
	events  []replayedEvent
	// raw are the objects of the kind of the definitions, by name, instead.
	raw map[string][]byte
	// watches are open now, and sent tells how many events the one that is furthest behind has got.
	watches, sent int
	over          bool
}

type replayedObject struct {
	version, round int
}

type replayedEvent struct {
	version, object, round int
	what                   string
	raw                    []byte
}

var definitionKind = kind{"apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"}

func newReplay(t *testing.T) *replay {
	t.Helper()
	s := &replay{kinds: map[string]*replayed{}, version: 1000, rules: shippedRules(t)}
	s.changed = sync.NewCond(&s.mutex)
	s.kinds[path(definitionKind)] = &replayed{kind: definitionKind, raw: map[string][]byte{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100} // as the API server
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		s.do(func() { s.over = true })
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// shippedRules are the rules in config/monitor/rules, as items of a list.
func shippedRules(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile("../../config/monitor/rules/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var items [][]byte
	for i, document := range strings.Split(string(content), "\n---\n") {
		rule := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &rule); err != nil {
			t.Fatal(err)
		}
		metadata := rule["metadata"].(map[string]any)
		metadata["uid"], metadata["resourceVersion"], metadata["generation"] = uidOf(900_000+i), "1", 1
		raw, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, raw)
	}
	return bytes.Join(items, []byte(","))
}

func path(k kind) string {
	return "/apis/" + k.version() + "/" + k.plural
}

func (s *replay) access() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// do changes what the server keeps.
func (s *replay) do(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
	s.changed.Broadcast()
}

// define makes a definition, with that many objects.
func (s *replay) define(k kind, objects int) {
	s.do(func() {
		s.version++
		one := &replayed{kind: k}
		for range objects {
			s.version++
			one.objects = append(one.objects, replayedObject{version: s.version})
		}
		s.kinds[path(k)] = one
		s.version++
		raw := fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q,"uid":%q,"resourceVersion":"%d","generation":1,`+
			`"creationTimestamp":%q},%s,"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}],"storedVersions":["v1"]}}`,
			k.crd(), uidOf(s.version), s.version, time.Now().UTC().Format(time.RFC3339), k.definition())
		all := s.kinds[path(definitionKind)]
		all.raw[k.crd()] = raw
		all.events = append(all.events, replayedEvent{version: s.version, what: "ADDED", raw: raw})
	})
}

// undefine deletes a definition with its objects, as an API server does: they go first.
func (s *replay) undefine(k kind) {
	s.do(func() {
		one := s.kinds[path(k)]
		for n, object := range one.objects {
			if object.version > 0 {
				s.version++
				one.events = append(one.events, replayedEvent{s.version, n, object.round, "DELETED", nil})
			}
		}
		one.over = true
		delete(s.kinds, path(k))
		all := s.kinds[path(definitionKind)]
		raw := all.raw[k.crd()]
		delete(all.raw, k.crd())
		s.version++
		at := bytes.Index(raw, []byte(`"resourceVersion":"`)) + len(`"resourceVersion":"`)
		end := at + bytes.IndexByte(raw[at:], '"')
		raw = fmt.Appendf(nil, "%s%d%s", raw[:at], s.version, raw[end:])
		all.events = append(all.events, replayedEvent{version: s.version, what: "DELETED", raw: raw})
	})
}

// change changes objects of a kind from a number on, or makes those that there are not yet.
func (s *replay) change(k kind, from, n int) {
	s.do(func() {
		one := s.kinds[path(k)]
		for i := from; i < from+n; i++ {
			s.version++
			what := "MODIFIED"
			if i >= len(one.objects) {
				one.objects, what = append(one.objects, replayedObject{version: s.version}), "ADDED"
			} else {
				one.objects[i] = replayedObject{s.version, one.objects[i].round + 1}
			}
			one.events = append(one.events, replayedEvent{s.version, i, one.objects[i].round, what, nil})
		}
	})
}

// waitSent waits until no more than some events of a kind have not been taken by the network, or until it is over.
func (s *replay) waitSent(k kind, left int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for one := s.kinds[path(k)]; len(one.events)-one.sent > left && !s.over; {
		s.changed.Wait()
	}
}

// watched waits until a kind is watched.
func (s *replay) watched(k kind) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for one := s.kinds[path(k)]; one.watches == 0 && !s.over; {
		s.changed.Wait()
	}
}

func (s *replay) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	s.mutex.Lock()
	one := s.kinds[r.URL.Path]
	s.mutex.Unlock()
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	case query.Get("sendInitialEvents") == "true":
		refuse(w, http.StatusUnprocessableEntity, "Invalid") // clients then list
	case one != nil && query.Get("watch") != "":
		s.watch(w, r, one)
	case one != nil:
		s.list(w, one, query.Get("limit"), query.Get("continue"))
	default:
		s.serveRest(w, r)
	}
}

// serveRest serves the rules, and how they are found.
func (s *replay) serveRest(w http.ResponseWriter, r *http.Request) {
	const group = `{"name":"slipway.dev","versions":[{"groupVersion":"slipway.dev/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"slipway.dev/v1alpha1","version":"v1alpha1"}`
	switch r.URL.Path {
	case "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
	case "/apis":
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+group+`}]}`)
	case "/apis/slipway.dev":
		_, _ = io.WriteString(w, group+`,"kind":"APIGroup","apiVersion":"v1"}`)
	case "/apis/slipway.dev/v1alpha1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"slipway.dev/v1alpha1","resources":[{"name":"monitorrules","singularName":"monitorrule","namespaced":false,`+
			`"kind":"MonitorRule","verbs":["get","list","watch","patch","update"]},{"name":"monitorrules/status","singularName":"","namespaced":false,"kind":"MonitorRule","verbs":["get","patch","update"]}]}`)
	case "/apis/slipway.dev/v1alpha1/monitorrules":
		if r.URL.Query().Get("watch") != "" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind":"MonitorRuleList","apiVersion":"slipway.dev/v1alpha1","metadata":{"resourceVersion":"1"},"items":[%s]}`, s.rules)
	default:
		refuse(w, http.StatusNotFound, "NotFound")
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a replay","reason":%q,"code":%d}`, reason, code)
}

// list serves a page. Nothing changes while a measurement lists, so pages are of one moment.
func (s *replay) list(w http.ResponseWriter, one *replayed, limitText, token string) {
	limit, _ := strconv.Atoi(limitText)
	versionText, startText, more := strings.Cut(token, "-")
	start, _ := strconv.Atoi(startText)
	s.mutex.Lock()
	version := s.version
	if more {
		version, _ = strconv.Atoi(versionText)
	}
	objects := append([]replayedObject(nil), one.objects...)
	var raw [][]byte
	for _, item := range one.raw {
		raw = append(raw, item)
	}
	s.mutex.Unlock()
	sort.Slice(raw, func(i, j int) bool { return bytes.Compare(raw[i], raw[j]) < 0 })
	all := max(len(objects), len(raw))
	end := all
	if limit > 0 {
		end = min(all, start+limit)
	}
	next := ""
	if end < all {
		next = fmt.Sprintf("%d-%d", version, end)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(out, `{"apiVersion":"%s","kind":"%sList","metadata":{"resourceVersion":"%d","continue":%q},"items":[`, one.version(), one.name, version, next)
	var buffer []byte
	for i := start; i < end; i++ {
		if i > start {
			_ = out.WriteByte(',')
		}
		if raw != nil {
			_, _ = out.Write(raw[i])
			continue
		}
		buffer = appendObject(buffer[:0], one.kind, i, strconv.Itoa(objects[i].version), true, objects[i].round, false)
		_, _ = out.Write(buffer)
	}
	_, _ = out.WriteString("]}")
	_ = out.Flush()
}

// bookmarkEvery is how often an API server says how far a quiet watch is, about.
const bookmarkEvery = time.Minute

// watch serves what happened after a version, and then what happens.
func (s *replay) watch(w http.ResponseWriter, r *http.Request, one *replayed) {
	at, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	s.do(func() { one.watches++ })
	defer s.do(func() { one.watches-- })
	ctx := r.Context()
	wake := func() { s.do(func() {}) }
	quiet := time.AfterFunc(bookmarkEvery, wake)
	defer quiet.Stop()
	defer context.AfterFunc(ctx, wake)()
	out := bufio.NewWriterSize(w, 64<<10)
	last := time.Now()
	var buffer []byte
	s.mutex.Lock()
	next := sort.Search(len(one.events), func(i int) bool { return one.events[i].version > at })
	s.mutex.Unlock()
	for ctx.Err() == nil {
		s.mutex.Lock()
		for next == len(one.events) && !one.over && !s.over && ctx.Err() == nil && time.Since(last) < bookmarkEvery {
			s.changed.Wait()
		}
		events, version, over := one.events[next:min(len(one.events), next+200)], s.version, (one.over && next == len(one.events)) || s.over
		s.mutex.Unlock()
		if over {
			return
		}
		for i := range events {
			e := &events[i]
			_, _ = fmt.Fprintf(out, `{"type":%q,"object":`, e.what)
			buffer = append(buffer[:0], e.raw...)
			if e.raw == nil {
				buffer = appendObject(buffer, one.kind, e.object, strconv.Itoa(e.version), true, e.round, false)
			}
			_, _ = out.Write(append(buffer, "}\n"...))
		}
		if len(events) == 0 {
			_, _ = fmt.Fprintf(out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"}}}`+"\n", one.name, one.version(), version)
		}
		if out.Flush() != nil || flush.Flush() != nil {
			return
		}
		next += len(events)
		last = time.Now()
		quiet.Reset(bookmarkEvery)
		s.do(func() { one.sent = next })
	}
}
