package replica_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

var edge = types.NamespacedName{Namespace: "team", Name: "edge"}

// size is that of a small gateway.
var size = document.Size{Routes: 10}

// gateway is the admin port of a gateway pod.
type gateway struct {
	*httptest.Server

	mutex    sync.Mutex
	document document.Document
	changed  chan struct{}
	holding  chan struct{} // gets a value for each question that is held back
	words    chan string   // gets the operator's word of each question
	older    bool          // a gateway of a release that takes the word with GET
	asking   sync.WaitGroup
}

func newGateway(t *testing.T, doc document.Document) *gateway {
	g := &gateway{document: doc, changed: make(chan struct{}), holding: make(chan struct{}, 100), words: make(chan string, 100)}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.asking.Add(1)
	defer g.asking.Done()
	wait := r.URL.Query().Get("wait")
	if g.older && r.Method != http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	word := r.URL.Query().Get("standby")
	if instructs := r.Method == http.MethodPost && r.Header.Get(document.InstructionHeader) != ""; !g.older && (word != "") != instructs {
		word = r.Method + " with " + word
	}
	g.words <- word
	g.mutex.Lock()
	doc, changed := g.document, g.changed
	g.mutex.Unlock()
	if wait == strconv.FormatInt(doc.Revision, 10) {
		g.holding <- struct{}{}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		g.mutex.Lock()
		doc = g.document
		g.mutex.Unlock()
	}
	_ = json.NewEncoder(w).Encode(doc)
}

func (g *gateway) set(doc document.Document) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.document = doc
	close(g.changed)
	g.changed = make(chan struct{})
}

// follow follows the pod behind an address. It returns the follower and where changes are
// told.
func follow(t *testing.T, address string) (follower *replica.Follower, told chan types.NamespacedName) {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(parsed.Host)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	follower = replica.New(replica.Options{Port: number})
	told = make(chan types.NamespacedName, 100)
	follower.Notify(func(name types.NamespacedName) { told <- name })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	follower.Follow(t.Context(), edge, size, []replica.Pod{{UID: "pod", IP: host}})
	return follower, told
}

// next waits for the next change and returns the answer.
func next(t *testing.T, follower *replica.Follower, told chan types.NamespacedName) replica.Answer {
	t.Helper()
	select {
	case name := <-told:
		if name != edge {
			t.Fatalf("a change of %v was told, want %v", name, edge)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no change was told; known is %+v", follower.Answer(edge, "pod"))
	}
	return follower.Answer(edge, "pod")
}

func want(t *testing.T, got, want replica.Answer) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}

func TestAChangeIsToldWhenItHappens(t *testing.T) {
	first := document.Document{Protocol: 1, Revision: 7, Generation: 1}
	server := newGateway(t, first)
	follower, told := follow(t, server.URL)
	want(t, next(t, follower, told), replica.Answer{State: replica.Answering, Document: &first})

	<-server.holding
	// Nothing but the revision: not worth a word. What comes next is, and nothing is lost.
	server.set(document.Document{Protocol: 1, Revision: 8, Generation: 1})
	problem := document.Document{Protocol: 1, Revision: 9, Generation: 2, Problems: []document.Problem{{Route: 0, Reason: "NoEndpoints"}}}
	server.set(problem)
	want(t, next(t, follower, told), replica.Answer{State: replica.Answering, Document: &problem})
}

func TestAPodThatDoesNotAnswerIsSilentAndComesBack(t *testing.T) {
	doc := document.Document{Protocol: 1, Revision: 7, Generation: 1}
	server := newGateway(t, doc)
	address := server.Listener.Addr().String()
	follower, told := follow(t, server.URL)
	next(t, follower, told)

	server.CloseClientConnections()
	_ = server.Listener.Close()
	start := time.Now()
	want(t, next(t, follower, told), replica.Answer{State: replica.Silent, Document: &doc})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %v, want at most 2s", took)
	}

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := &http.Server{Handler: server, ReadHeaderTimeout: time.Second}
	t.Cleanup(func() { _ = again.Close() })
	go func() { _ = again.Serve(listener) }()
	want(t, next(t, follower, told), replica.Answer{State: replica.Answering, Document: &doc})
}

func TestWhatIsNotADocumentIsIncompatible(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"404":     {http.NotFound, "/revision is answered with status 404"},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret!") }, "/revision is answered with something else than a document"},
		"a later protocol": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"protocol": 2}`) },
			"it speaks protocol 2 and the operator speaks protocol 1",
		},
		"no reason": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"protocol": 1, "problems": [{"reason": "not a reason"}]}`)
			},
			"/revision is answered with reasons that are none",
		},
		"longer than it can be": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"protocol": 1, "version": "`+strings.Repeat("x", 2<<20)+`"}`)
			},
			"/revision is answered with more than there can be",
		},
		"another place": {http.RedirectHandler("http://example.com", http.StatusFound).ServeHTTP, "/revision is answered with status 302"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			t.Cleanup(server.Close)
			follower, told := follow(t, server.URL)
			want(t, next(t, follower, told), replica.Answer{State: replica.Incompatible, Detail: tc.want})
		})
	}
}

func TestAnErrorOfThePodIsNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	follower, told := follow(t, server.URL)
	want(t, next(t, follower, told), replica.Answer{State: replica.Silent})
}

// A pod that is ready deserves a question at once, though it was silent while it started.
func TestAPodThatBecomesReadyIsAskedAtOnce(t *testing.T) {
	server := newGateway(t, document.Document{Protocol: 1, Generation: 1})
	address := server.Listener.Addr().String()
	server.Close()
	follower, told := follow(t, "http://"+address)
	want(t, next(t, follower, told), replica.Answer{State: replica.Silent})

	follower.Follow(t.Context(), edge, size, []replica.Pod{{UID: "pod", IP: "127.0.0.1", Ready: true}})
	want(t, follower.Answer(edge, "pod"), replica.Answer{State: replica.Asking})
}

func TestAPodThatGoesIsForgotten(t *testing.T) {
	server := newGateway(t, document.Document{Protocol: 1, Revision: 7, Generation: 1})
	follower, told := follow(t, server.URL)
	next(t, follower, told)
	<-server.holding
	follower.Follow(t.Context(), edge, size, nil)
	// The question that is held back ends.
	server.asking.Wait()
	want(t, follower.Answer(edge, "pod"), replica.Answer{})
}

// A pod that is stale is told at once whether others are current, and what it was told once is
// taken back. A pod that is current is told nothing. The word is never a GET, unless the pod's release knows nothing else.
func TestAStalePodIsToldWhetherOthersAreCurrent(t *testing.T) {
	t.Run("a pod of this release", func(t *testing.T) { tellStalePod(t, false) })
	t.Run("a pod of an older release", func(t *testing.T) { tellStalePod(t, true) })
}

func tellStalePod(t *testing.T, older bool) {
	t.Helper()
	current := document.Document{Protocol: 1, Revision: 7, Generation: 1, View: &document.View{Current: true}}
	stale := document.Document{Protocol: 1, Revision: 8, Generation: 1, View: &document.View{Since: time.Unix(1, 0).UTC(), Of: []string{"Services"}}}
	server := newGateway(t, current)
	server.older = older
	follower, told := follow(t, server.URL)
	next(t, follower, told)
	words := func(want ...string) {
		t.Helper()
		for _, want := range want {
			select {
			case got := <-server.words:
				if got != want {
					t.Errorf("the word is %q, want %q", got, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("no question, want one with the word %q", want)
			}
		}
		<-server.holding
	}
	words("", "") // it is asked, and asked again for what comes next
	follower.Standby(edge, nil)
	server.set(stale)
	want(t, next(t, follower, told), replica.Answer{State: replica.Answering, Document: &stale})
	words("")
	follower.Standby(edge, nil) // there is nothing to take back
	follower.Standby(edge, map[types.UID]bool{"pod": true})
	words("true")
	follower.Standby(edge, map[types.UID]bool{"pod": true})
	follower.Standby(edge, nil)
	words("false")
	current.Revision = 9
	server.set(current)
	want(t, next(t, follower, told), replica.Answer{State: replica.Answering, Document: &current})
	words("")
}
