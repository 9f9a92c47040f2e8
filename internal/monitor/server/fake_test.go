package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// cluster plays the API server: a token is the name of its user.
type cluster struct {
	mutex sync.Mutex
	// lists has what users may list, as user/resource.group/namespace, with nothing after the last slash for everywhere.
	lists map[string]bool
	// audiences has the audience of tokens, besides the API server's own.
	audiences          map[string]string
	refused            map[string]bool
	down               error
	tokensAsked, asked int
	// namespaces are those that are not there since long ago, nil for one that does not exist.
	namespaces     map[string]*metav1.PartialObjectMetadata
	namespacesDown error
	namespacesRead int
}

func newCluster() *cluster {
	return &cluster{lists: map[string]bool{}, audiences: map[string]string{}, refused: map[string]bool{}, namespaces: map[string]*metav1.PartialObjectMetadata{}}
}

func (c *cluster) allow(user, kind, namespace string, may bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lists[user+"/"+kind+"/"+namespace] = may
}

func (c *cluster) counts() (tokens, rights int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.tokensAsked, c.asked
}

type tokenReviews struct{ *cluster }

func (c tokenReviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.tokensAsked++
	if c.down != nil {
		return nil, fmt.Errorf("with %s: %w", review.Spec.Token, c.down)
	}
	token, answer := review.Spec.Token, review.DeepCopy()
	audience := c.audiences[token]
	fits := len(review.Spec.Audiences) == 0 && audience == "" || slices.Contains(review.Spec.Audiences, audience)
	if fits && !c.refused[token] && strings.HasPrefix(token, "user") {
		answer.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: token}, Audiences: review.Spec.Audiences}
	}
	return answer, nil
}

type accessReviews struct{ *cluster }

func (c accessReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.asked++
	if c.down != nil {
		return nil, c.down
	}
	a, answer := review.Spec.ResourceAttributes, review.DeepCopy()
	kind := a.Resource
	if a.Group != "" {
		kind += "." + a.Group
	}
	answer.Status.Allowed = a.Verb == "list" && (c.lists[review.Spec.User+"/"+kind+"/"+a.Namespace] || c.lists[review.Spec.User+"/"+kind+"/"])
	return answer, nil
}

type namespaceReads struct{ *cluster }

// longAgo is when namespaces were made of which nothing else is said.
var longAgo = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func (c namespaceReads) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.namespacesRead++
	if c.namespacesDown != nil {
		return nil, c.namespacesDown
	}
	found, known := c.namespaces[name]
	switch {
	case !known:
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(longAgo), ResourceVersion: "1",
		}}, nil
	case found == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	return found.DeepCopy(), nil
}

type coverage struct{ kinds []change.Kind }

func (c coverage) Coverage() supervisor.Coverage {
	now := time.Now()
	all := supervisor.Coverage{Time: now, Complete: true, Definitions: supervisor.KindCoverage{State: supervisor.Live, LastSeen: now}}
	for i, kind := range c.kinds {
		one := supervisor.KindCoverage{Kind: kind, State: supervisor.Live, LastSeen: now, Lag: time.Duration(i) * 10 * time.Millisecond}
		if i%4 == 3 {
			one.State, one.Reason, one.LastSeen = supervisor.Failing, "of "+kind.Resource+" nothing is heard", now.Add(-time.Minute)
		}
		all.Kinds = append(all.Kinds, one)
	}
	return all
}

// monitor is a server over a real store.
type monitor struct {
	*testing.T
	cluster *cluster
	store   *store.Store
	handler http.Handler
	options Options
	number  int
	// made is when the next object or namespace is made.
	made time.Time
}

func kindOf(resource string, namespaced bool) change.Kind {
	return change.Kind{Group: "example.com", Version: "v1", Kind: strings.ToUpper(resource[:1]) + resource[1:], Resource: resource, Namespaced: namespaced, Definition: types.UID("definition-" + resource)}
}

func newMonitor(t *testing.T, adapt func(*Options), kinds ...change.Kind) *monitor {
	t.Helper()
	made, err := store.Open(t.Context(), store.Options{
		Dir: t.TempDir(), BatchWait: time.Nanosecond,
		Patch: func(body []byte, fields []change.Field) ([]byte, error) { return change.Patch(body, fields, nil) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	m := &monitor{T: t, cluster: newCluster(), store: made, made: longAgo.Add(time.Hour)}
	m.options = Options{
		Store: made, Coverage: coverage{kinds}, TokenReviews: tokenReviews{m.cluster}, AccessReviews: accessReviews{m.cluster}, Namespaces: namespaceReads{m.cluster},
		Key: []byte(strings.Repeat("k", 32)), Rate: 100_000, Burst: 100_000, Clock: clock.RealClock{}, Hosts: []string{"monitor.example.com"},
	}
	if adapt != nil {
		adapt(&m.options)
	}
	if m.handler, err = New(m.options); err != nil {
		t.Fatal(err)
	}
	return m
}

// record commits a change of an object and its state.
func (m *monitor) record(kind change.Kind, namespace, name, secret string) change.Record {
	m.Helper()
	m.number++
	uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", m.number))
	version := fmt.Sprint(1000 + m.number)
	quoted, _ := json.Marshal(secret)
	record := change.Record{
		Kind: kind, Namespace: namespace, Name: name, UID: uid, ResourceVersion: version, Type: change.Updated, Time: time.Now(),
		Fields: []change.Field{{Path: ".spec.text", Op: change.Changed, Old: json.RawMessage(`"before"`), New: quoted}},
		Actor:  change.Actor{Name: "editor", Confidence: change.Likely, Source: "managedFields"}, Reason: secret, ObjectCreated: m.made,
	}
	body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"creationTimestamp":%q,"ownerReferences":[{"apiVersion":"v1","kind":"Owner","name":"owner","uid":"owner-uid"}]},"spec":{"text":%s},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Broken","message":%s}]}}`,
		kind.Kind, name, namespace, uid, m.made.Format(time.RFC3339), quoted, quoted)
	m.commit(store.Batch{Kind: kind, Checkpoint: version, Records: []change.Record{record}, Put: []change.State{{
		Namespace: namespace, Name: name, UID: uid, ResourceVersion: version, Body: []byte(body),
	}}})
	return record
}

// gone commits that an object was deleted.
func (m *monitor) gone(kind change.Kind, last change.Record) {
	m.Helper()
	m.number++
	version := fmt.Sprint(1000 + m.number)
	last.Type, last.ResourceVersion, last.Fields = change.Deleted, version, nil
	m.commit(store.Batch{Kind: kind, Checkpoint: version, Records: []change.Record{last}, Drop: []types.UID{last.UID}})
}

// unmake takes a namespace away, and remake makes another one of the name. The time goes on before and after it.
func (m *monitor) unmake(name string) {
	m.cluster.mutex.Lock()
	defer m.cluster.mutex.Unlock()
	m.cluster.namespaces[name] = nil
}

func (m *monitor) remake(name string, after time.Duration) {
	m.cluster.mutex.Lock()
	defer m.cluster.mutex.Unlock()
	m.number++
	m.made = m.made.Add(after)
	m.cluster.namespaces[name] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(fmt.Sprintf("uid-%s-%d", name, m.number)), CreationTimestamp: metav1.NewTime(m.made), ResourceVersion: fmt.Sprint(1000 + m.number),
	}}
	m.made = m.made.Add(after)
}

// touch writes a namespace.
func (m *monitor) touch(name string) {
	m.cluster.mutex.Lock()
	defer m.cluster.mutex.Unlock()
	m.number++
	m.cluster.namespaces[name].ResourceVersion = fmt.Sprint(1000 + m.number)
}

func (m *monitor) commit(batch store.Batch) {
	m.Helper()
	if err := m.store.Commit(context.Background(), batch); err != nil {
		m.Fatal(err)
	}
}

func (m *monitor) ask(user, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Host = "localhost:8080"
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+user)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	return w
}

// get asks and reads an answer that must be good.
func get[T any](m *monitor, user, path string) T {
	m.Helper()
	var into T
	w := m.ask(user, path)
	if w.Code != http.StatusOK {
		m.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &into); err != nil {
		m.Fatal(err)
	}
	return into
}

// aheadClock is the real time, and some more of it once a test says so: what the server remembers is forgotten then.
type aheadClock struct {
	clock.RealClock
	by atomic.Int64
}

func (c *aheadClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.by.Load())) }

var errDown = errors.New("connection refused")

func names(changes []api.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.Name)
	}
	return all
}
