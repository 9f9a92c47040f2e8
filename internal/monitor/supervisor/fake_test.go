//go:build monitortest

package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// fakeServer speaks as much of the protocol of an API server as a follower hears, and fails as it is told. What it keeps is
// true: a test compares it with what the sink was told.
type fakeServer struct {
	*httptest.Server

	mutex    sync.Mutex
	version  int
	kinds    map[string]*fakeKind // by resource.group
	lists    map[string]fakeList  // by continue token
	changed  chan struct{}        // closed and made anew at each change
	requests []string
	reviews  int
	open     int // watches
	// fault is asked before each answer and each frame. It may be nil.
	fault func(fakeCall) fault
}

// fakeKind is a kind with everything that happened to its objects.
type fakeKind struct {
	objects map[string]fakeObject // by namespace/name
	events  []fakeEvent
	floor   int // what happened up to here is forgotten
	closes  int // its watches end when this changes
}

type fakeObject struct {
	uid string
	raw []byte
}

type fakeEvent struct {
	version int
	what    EventType
	uid     string
	raw     []byte
}

type fakeList struct {
	version int
	items   [][]byte
}

// fakeCall is something that the server is about to do.
type fakeCall struct {
	verb     string // list, watch or frame
	resource string
	from     string
	what     string // of a frame
}

// fault is what it does instead. The zero value is nothing.
type fault int

const (
	none fault = iota
	refuse
	missing
	busy
	broken
	gone
	hang
	cut
	noise
	twice
	swap
	stopWatch
	silentBookmark
)

func newFakeServer(t testing.TB) *fakeServer {
	s := &fakeServer{kinds: map[string]*fakeKind{}, lists: map[string]fakeList{}, changed: make(chan struct{}), version: 10}
	s.kinds[definitionKind.GroupResource().String()] = newFakeKind()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func newFakeKind() *fakeKind { return &fakeKind{objects: map[string]fakeObject{}} }

func (s *fakeServer) access() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// do changes what the server keeps.
func (s *fakeServer) do(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeServer) setFault(f func(fakeCall) fault) { s.do(func() { s.fault = f }) }

// put makes or changes an object. Other is its content beside its metadata.
func (s *fakeServer) put(kind change.Kind, key, uid, other string) {
	s.do(func() { s.putLocked(kind, key, uid, other) })
}

func (s *fakeServer) putLocked(kind change.Kind, key, uid, other string) {
	k := s.kinds[kind.GroupResource().String()]
	if k == nil {
		return
	}
	s.version++
	what := Added
	if before, found := k.objects[key]; found {
		what, uid = Modified, before.uid
	}
	raw := fakeRaw(kind, key, uid, s.version, other)
	k.objects[key] = fakeObject{uid, raw}
	k.events = append(k.events, fakeEvent{s.version, what, uid, raw})
}

func fakeRaw(kind change.Kind, key, uid string, version int, other string) []byte {
	namespace, name, _ := strings.Cut(key, "/")
	metadata := map[string]any{"name": name, "uid": uid, "resourceVersion": strconv.Itoa(version), "generation": version}
	if kind == definitionKind {
		metadata["creationTimestamp"] = fakeMade(uid).Format(time.RFC3339)
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	meta, _ := json.Marshal(metadata)
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":%s%s}`, kind.GroupVersionResource().GroupVersion(), kind.Kind, meta, other)
}

func (s *fakeServer) remove(kind change.Kind, key string) { s.do(func() { s.removeLocked(kind, key) }) }

func (s *fakeServer) removeLocked(kind change.Kind, key string) {
	k := s.kinds[kind.GroupResource().String()]
	if k == nil {
		return
	}
	before, found := k.objects[key]
	if !found {
		return
	}
	s.version++
	delete(k.objects, key)
	object := map[string]any{}
	_ = json.Unmarshal(before.raw, &object)
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	raw, _ := json.Marshal(object)
	k.events = append(k.events, fakeEvent{s.version, Deleted, before.uid, raw})
}

// forget compacts the history of a kind.
func (s *fakeServer) forget(kind change.Kind) {
	s.do(func() {
		if k := s.kinds[kind.GroupResource().String()]; k != nil {
			s.version++ // something else happened
			k.floor = s.version
			k.closes++
		}
	})
}

// define makes or changes a definition, and serves its kind.
func (s *fakeServer) define(kind change.Kind, description string, more ...string) {
	s.do(func() {
		name := kind.GroupResource().String()
		if s.kinds[name] == nil {
			s.kinds[name] = newFakeKind()
		}
		s.kinds[name].closes++ // as the API server does
		s.putLocked(definitionKind, "/"+name, string(kind.Definition), fakeDefinition(kind, description, more...))
	})
}

// fakeMade is when the definition with a UID was made.
func fakeMade(uid string) time.Time {
	return time.Unix(1_700_000_000+int64(crc32.ChecksumIEEE([]byte(uid))%1_000_000), 0).UTC()
}

// fakeDefinition is the content of a definition. The stored version is that of the kind, more ones are served, too.
func fakeDefinition(kind change.Kind, description string, more ...string) string {
	scope := "Cluster"
	if kind.Namespaced {
		scope = "Namespaced"
	}
	versions := []string{fmt.Sprintf(`{"name":%q,"served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","description":%q}}}`, kind.Version, description)}
	for _, one := range more {
		versions = append(versions, fmt.Sprintf(`{"name":%q,"served":true}`, one))
	}
	return fmt.Sprintf(`,"spec":{"group":%q,"scope":%q,"names":{"plural":%q,"kind":%q},"versions":[%s]},"status":{"conditions":[{"type":"Established","status":"True"}]}`,
		kind.Group, scope, kind.Resource, kind.Kind, strings.Join(versions, ","))
}

// undefine deletes a definition, after its objects, and serves it no more.
func (s *fakeServer) undefine(kind change.Kind) {
	name := kind.GroupResource().String()
	s.do(func() {
		if k := s.kinds[name]; k != nil {
			for _, key := range slices.Sorted(maps.Keys(k.objects)) {
				s.removeLocked(kind, key)
			}
			k.closes++
		}
		s.removeLocked(definitionKind, "/"+name)
		delete(s.kinds, name)
	})
}

// count returns how many requests of a verb were sent for a resource.
func (s *fakeServer) count(request string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := 0
	for _, r := range s.requests {
		if r == request {
			n++
		}
	}
	return n
}

// idle fails while there is a watch.
func (s *fakeServer) idle() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.open > 0 {
		return fmt.Errorf("%d watches are open", s.open)
	}
	return nil
}

func (s *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method == http.MethodPost {
		s.mutex.Lock()
		s.reviews++
		s.mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false,"reason":"no role"}}`))
		return
	}
	if len(parts) == 3 { // a core kind
		parts = slices.Insert(parts, 1, "")
	}
	resource := strings.TrimSuffix(parts[3]+"."+parts[1], ".")
	query := r.URL.Query()
	if len(parts) > 4 {
		s.get(w, resource, "/"+parts[4])
		return
	}
	call := fakeCall{verb: "list", resource: resource, from: query.Get("continue")}
	if query.Get("watch") != "" {
		call.verb, call.from = "watch", query.Get("resourceVersion")
	}
	s.mutex.Lock()
	s.requests = append(s.requests, call.verb+" "+resource)
	kind := s.kinds[resource]
	s.mutex.Unlock()
	what := s.ask(call)
	if kind == nil {
		what = missing
	}
	switch what {
	case hang:
		<-r.Context().Done()
	case refuse, missing, busy, broken, gone:
		fail(w, what)
	default:
		if call.verb == "list" {
			s.list(w, kind, what, query.Get("limit"), call.from)
		} else {
			s.watch(w, r, call, kind, parts[1]+"/"+parts[2])
		}
	}
}

// get answers with an object.
func (s *fakeServer) get(w http.ResponseWriter, resource, key string) {
	s.mutex.Lock()
	object, found := s.kinds[resource].objects[key]
	s.mutex.Unlock()
	if !found {
		fail(w, missing)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(object.raw)
}

func (s *fakeServer) ask(call fakeCall) fault {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.fault == nil {
		return none
	}
	return s.fault(call)
}

// fail answers as the API server does.
func fail(w http.ResponseWriter, what fault) {
	w.Header().Set("Content-Type", "application/json")
	code, status := failure(what)
	if what == busy {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(status))
}

func failure(what fault) (int, string) {
	code, reason, message := 500, "InternalError", "conversion webhook for example.com/v1 failed: no endpoints"
	switch what {
	case refuse:
		code, reason, message = 403, "Forbidden", "monitor cannot list it"
	case missing:
		code, reason, message = 404, "NotFound", "the server could not find the requested resource"
	case busy:
		code, reason, message = 429, "TooManyRequests", "storage is (re)initializing"
	case gone:
		code, reason, message = 410, "Expired", "too old resource version"
	}
	return code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

func (s *fakeServer) list(w http.ResponseWriter, kind *fakeKind, what fault, limit, from string) {
	s.mutex.Lock()
	list, found := s.lists[from]
	if from == "" {
		list = fakeList{version: s.version}
		for _, key := range slices.Sorted(maps.Keys(kind.objects)) {
			list.items = append(list.items, kind.objects[key].raw)
		}
	} else if !found {
		s.mutex.Unlock()
		fail(w, gone)
		return
	}
	size, token := len(list.items), ""
	if n, err := strconv.Atoi(limit); err == nil && n < size {
		size, token = n, fmt.Sprintf("%d-%d", list.version, len(s.lists))
		s.lists[token] = fakeList{list.version, list.items[n:]}
	}
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	page := fmt.Appendf(nil, `{"kind":"List","items":[%s],"metadata":{"resourceVersion":"%d","continue":%q}}`,
		bytes.Join(list.items[:size], []byte(",")), list.version, token)
	switch what {
	case cut:
		_, _ = w.Write(page[:len(page)*2/3])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case noise:
		_, _ = w.Write([]byte(`{"items":[{"apiVersion":"other/v1"}],`))
	default:
		_, _ = w.Write(page)
	}
}

// watch sends what happened after a version, and then what happens, with bookmarks in between.
func (s *fakeServer) watch(w http.ResponseWriter, r *http.Request, call fakeCall, kind *fakeKind, groupVersion string) {
	at, _ := strconv.Atoi(call.from)
	s.mutex.Lock()
	if at < kind.floor {
		s.mutex.Unlock()
		fail(w, gone)
		return
	}
	closes := kind.closes
	s.open++
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.open--
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	send := &fakeStream{s: s, w: w, call: call, groupVersion: groupVersion}
	for {
		s.mutex.Lock()
		changed, over, version := s.changed, kind.closes != closes, s.version
		begin, _ := slices.BinarySearchFunc(kind.events, at, func(e fakeEvent, v int) int { return e.version - v - 1 })
		events, forgotten := slices.Clone(kind.events[begin:]), at < kind.floor
		s.mutex.Unlock()
		if forgotten {
			return
		}
		if !send.events(events) {
			return
		}
		at = version
		_ = flush.Flush()
		if over {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-tick.C:
			if !send.bookmark(at) {
				return
			}
			_ = flush.Flush()
		}
	}
}

// fakeStream sends frames, with faults.
type fakeStream struct {
	s            *fakeServer
	w            http.ResponseWriter
	call         fakeCall
	groupVersion string
}

func (f *fakeStream) events(events []fakeEvent) bool {
	for i := 0; i < len(events); i++ {
		e := events[i]
		frame := f.frame(e)
		call := f.call
		call.verb, call.what = "frame", string(e.what)
		switch f.s.ask(call) {
		case twice:
			_, _ = f.w.Write(append(frame, frame...))
		case swap:
			if i+1 < len(events) {
				// Both are sent, whatever comes next: nobody could know of a frame that never follows the one it belongs before.
				frame = append(f.frame(events[i+1]), frame...)
				i++
			}
			_, _ = f.w.Write(frame)
		case cut:
			_, _ = f.w.Write(frame[:len(frame)/2])
			_ = http.NewResponseController(f.w).Flush()
			panic(http.ErrAbortHandler)
		case noise:
			_, _ = f.w.Write([]byte("{\"type\":\"MODIFIED\",\"object\":{\"kind\":7}}\n"))
			return false
		case gone, broken:
			_, status := failure(gone)
			if f.s.ask(call) == broken {
				_, status = failure(broken)
			}
			_, _ = f.w.Write([]byte(`{"type":"ERROR","object":` + status + "}\n"))
			return false
		case stopWatch:
			return false
		default:
			_, _ = f.w.Write(frame)
		}
	}
	return true
}

// frame is what tells of an event. An object is sent at the version that was asked for.
func (f *fakeStream) frame(e fakeEvent) []byte {
	object := map[string]any{}
	_ = json.Unmarshal(e.raw, &object)
	object["apiVersion"] = f.groupVersion
	raw, _ := json.Marshal(object)
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", e.what, raw)
}

func (f *fakeStream) bookmark(version int) bool {
	call := f.call
	call.verb, call.what = "frame", bookmark
	switch f.s.ask(call) {
	case silentBookmark:
		return true
	case stopWatch:
		return false
	}
	_, err := fmt.Fprintf(f.w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", version)
	return err == nil
}
