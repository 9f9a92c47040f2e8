//go:build monitorbench

package monitorbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

const (
	askedKinds   = 50
	askedObjects = 20_000
	// asked is how often each question is asked. One user may ask 60 times at once, so each question has its own user.
	asked = 60
)

// TestQueries asks the HTTP API of a monitor that has many changes, as a user with a token. The history is written with the store and
// not out of watches: that would take minutes. Its first part comes with states, so that there are objects.
func TestQueries(t *testing.T) {
	s := startServer(t)
	folder := filepath.Join(t.TempDir(), "store")
	fill(t, filepath.Join(folder, "history"))
	p := newProcess(t, s.Config, settings{store: folder, program: program(t)})
	p.start()
	first := s.token(t)
	eventually(t, time.Minute, "an answer", func() error { _, err := p.ask(first, url.Values{"limit": {"1"}}); return err })
	random := rand.New(rand.NewPCG(1, 1))
	team := func() string { return fmt.Sprintf("team-%d", random.IntN(40)) }
	hour := func() string { return time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) }
	all := spread{}
	for _, q := range []struct {
		name  string
		empty bool // nothing is found
		make  func() url.Values
	}{
		{"an object", false, func() url.Values {
			n := random.IntN(askedObjects)
			k := askedKind(n % askedKinds)
			return url.Values{"kind": {k.Resource + "." + k.Group}, "namespace": {fmt.Sprintf("team-%d", n%40)}, "name": {fmt.Sprintf("object-%d", n)}}
		}},
		{"the last hour", false, func() url.Values { return url.Values{"since": {hour()}} }},
		{"a namespace", false, func() url.Values { return url.Values{"namespace": {team()}} }},
		{"an actor", false, func() url.Values { return url.Values{"actor": {fmt.Sprintf("controller-%d", random.IntN(12))}} }},
		{"an actor that there is not", true, func() url.Values { return url.Values{"actor": {"nobody"}} }},
		{"a kind", false, func() url.Values {
			k := askedKind(random.IntN(askedKinds))
			return url.Values{"kind": {k.Resource + "." + k.Group}}
		}},
		{"a kind, namespace and actor", false, func() url.Values {
			k := askedKind(random.IntN(askedKinds))
			return url.Values{"kind": {k.Resource + "." + k.Group}, "namespace": {team()}, "actor": {fmt.Sprintf("controller-%d", random.IntN(12))}}
		}},
		{"deletions", true, func() url.Values { return url.Values{"type": {string(change.Deleted)}} }},
		{"everything, the newest first", false, func() url.Values { return url.Values{} }},
	} {
		// A new user may send 60 requests at once.
		times, answers, token := spread{}, 0, s.token(t)
		for range asked {
			values := q.make()
			began := time.Now()
			n, err := p.ask(token, values)
			if err != nil {
				t.Fatalf("%s: %v", q.name, err)
			}
			times = append(times, time.Since(began))
			answers += n
		}
		all = append(all, times...)
		if answers == 0 && !q.empty {
			t.Errorf("%s: no answer has a change", q.name)
		}
		results.most(t, times.at(0.95).Seconds(), 0.1, fmt.Sprintf("queries over %d changes, HTTP: %s", size.changes, q.name), "p95 100 ms", "p50 %s, p95 %s, worst %s; %d changes in an answer",
			milliseconds(times.at(0.5)), milliseconds(times.at(0.95)), milliseconds(times.at(1)), answers/asked)
	}
	results.most(t, all.at(0.95).Seconds(), 0.1, fmt.Sprintf("queries over %d changes, HTTP: all", size.changes), "p95 100 ms", "p50 %s, p95 %s, worst %s", milliseconds(all.at(0.5)), milliseconds(all.at(0.95)), milliseconds(all.at(1)))
	p.end(syscall.SIGTERM)
}

// token is that of a new user who may see everything.
func (s *server) token(t *testing.T) string {
	t.Helper()
	user := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "reader-"}}
	if err := s.Client.Create(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: user.Name}},
	}); err != nil {
		t.Fatal(err)
	}
	// A right counts when the API server has seen it, which takes a moment. The monitor remembers for seconds what was denied.
	eventually(t, time.Minute, "the rights of a user", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:default:" + user.Name, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "*", Resource: "*"},
		}}
		if err := s.Client.Create(t.Context(), review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New(review.Status.Reason)
		}
		return nil
	})
	request := &authenticationv1.TokenRequest{}
	if err := s.Client.SubResource("token").Create(t.Context(), user, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// ask asks for changes, and returns how many are in the answer.
func (p *process) ask(token string, values url.Values) (int, error) {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.api+"/api/v1/changes?"+values.Encode(), nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", response.Status, body)
	}
	answer := struct {
		Changes []json.RawMessage `json:"changes"`
	}{}
	err = json.Unmarshal(body, &answer)
	return len(answer.Changes), err
}

func askedKind(n int) change.Kind {
	k := numbered(n)
	return change.Kind{Group: k.group, Version: "v1", Kind: k.name, Resource: k.plural, Namespaced: true, Definition: types.UID(uidOf(500_000 + n))}
}

// fill writes a history of two days that ends now.
func fill(t *testing.T, folder string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: folder, MaxBytes: 8 << 30})
	if err != nil {
		t.Fatal(err)
	}
	const batch = 500
	began := time.Now()
	step := 48 * time.Hour * batch / time.Duration(size.changes)
	for done := 0; done < size.changes; done += batch {
		at := began.Add(-48*time.Hour + step*time.Duration(done/batch))
		if err := s.Commit(t.Context(), history(done, batch, at)); err != nil {
			t.Fatal(err)
		}
	}
	stats := s.Stats()
	results.tell(fmt.Sprintf("a history of %d changes", size.changes), "%.0f B of disk for each, with indexes and without snapshots; written in %.0f s",
		float64(stats.Bytes-stats.StateBytes-stats.SnapshotBytes)/float64(size.changes), time.Since(began).Seconds())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// history is a batch of changes of one kind.
func history(from, n int, at time.Time) store.Batch {
	k := from / n % askedKinds
	b := store.Batch{Kind: askedKind(k)}
	for i := from; i < from+n; i++ {
		object := int(mixed(i, 3)%(askedObjects/askedKinds))*askedKinds + k
		text := func(format string, salt int) json.RawMessage {
			raw, _ := json.Marshal(fmt.Sprintf(format, mixed(i, salt)))
			return raw
		}
		r := change.Record{
			Kind: b.Kind, Namespace: fmt.Sprintf("team-%d", object%40), Name: fmt.Sprintf("object-%d", object), UID: types.UID(uidOf(object)), ResourceVersion: fmt.Sprint(1000 + i),
			Generation: int64(i % 90), Type: change.Updated, Time: at,
			Actor: change.Actor{Name: fmt.Sprintf("controller-%d", object%12), Operation: "Update", Subresource: "status", Confidence: change.Likely, Source: "managedFields"},
		}
		r.Fields = []change.Field{
			{Path: `.status.conditions[type="Ready"].message`, Op: change.Changed, Old: text("waiting for pod app-%x", 1), New: text("waiting for pod app-%x", 2)},
			{Path: `.status.conditions[type="Ready"].status`, Op: change.Changed, Old: json.RawMessage(`"True"`), New: json.RawMessage(`"False"`)},
		}
		if i%3 == 0 {
			r.Fields = []change.Field{{Path: ".spec.image", Op: change.Changed, Old: text("registry.example.com/team/app:%x", 1), New: text("registry.example.com/team/app:%x", 2)}}
		}
		b.Records = append(b.Records, r)
	}
	return b
}
