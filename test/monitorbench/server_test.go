//go:build monitorbench

package monitorbench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// server is a real API server and etcd (without fsync, as for all tests here), with the rules that come with the monitor.
type server struct {
	*environment.Environment

	rest *rest.RESTClient
}

// ownKinds are the kinds of Slipway, which such a server has.
const ownKinds = 6

func startServer(t *testing.T) *server {
	t.Helper()
	env, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := rest.CopyConfig(env.Config)
	config.GroupVersion, config.APIPath = &schema.GroupVersion{Version: "v1"}, "/api"
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{env, client}
	content, err := os.ReadFile("../../config/monitor/rules/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		rule := &slipwayv1alpha1.MonitorRule{}
		if err := yaml.Unmarshal([]byte(document), rule); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.Create(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// define makes a definition.
func (s *server) define(ctx context.Context, k kind) error {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(fmt.Appendf(nil, `{"metadata":{"name":%q},%s}`, k.crd(), k.definition()), d); err != nil {
		return err
	}
	return s.Client.Create(ctx, d)
}

// written is a change that the API server has confirmed.
type written struct {
	version, object int
	broken          bool
	at              time.Time
}

// writer changes objects of one kind.
type writer struct {
	*server

	kind   kind
	parts  [][]object // one for each of those that write at a time
	brakes bool       // each tenth change says that the object is broken, or is no more

	mutex sync.Mutex
	done  []written
}

type object struct {
	number, round int
	version       string
	broken        bool
}

const writers = 8

// newWriter makes a kind and its objects.
func (s *server) newWriter(t *testing.T, k kind, objects int) *writer {
	t.Helper()
	if err := s.define(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "a kind that is served", func() error { return s.rest.Get().AbsPath(path(k)).Do(t.Context()).Error() })
	w := &writer{server: s, kind: k, parts: make([][]object, writers)}
	for i := range objects {
		w.parts[i%writers] = append(w.parts[i%writers], object{number: i})
	}
	var group sync.WaitGroup
	for i := range w.parts {
		group.Go(func() {
			for j := range w.parts[i] {
				if err := w.write(t.Context(), &w.parts[i][j]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	w.done = nil
	return w
}

// write makes an object, or changes it.
func (w *writer) write(ctx context.Context, o *object) error {
	where := "/apis/" + w.kind.version() + "/namespaces/default/" + w.kind.plural
	request := w.rest.Post().AbsPath(where)
	if o.version != "" {
		request = w.rest.Put().AbsPath(where, fmt.Sprintf("object-%d", o.number))
		o.round++
	}
	if w.brakes && (o.round+o.number)%10 == 5 {
		o.broken = !o.broken
	}
	body := appendObject(nil, w.kind, o.number, o.version, false, o.round, o.broken)
	answer, err := request.SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
	if err != nil {
		return err
	}
	at := time.Now()
	_, after, _ := bytes.Cut(answer, []byte(`"resourceVersion":"`))
	text, _, _ := bytes.Cut(after, []byte(`"`))
	number, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("an answer without a resource version: %w", err)
	}
	o.version = string(text)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.done = append(w.done, written{number, o.number, o.broken, at})
	return nil
}

// run changes one object after another until the context ends, or until that many changes are made: 0 is any number. With a rate it
// makes so many in a second, and not more.
func (w *writer) run(ctx context.Context, t *testing.T, limit int, rate float64) {
	t.Helper()
	var group sync.WaitGroup
	for i := range w.parts {
		group.Go(func() {
			part := w.parts[i]
			began := time.Now()
			most := math.MaxInt
			if limit > 0 {
				most = (limit + writers - 1 - i) / writers
			}
			for n := 0; n < most && ctx.Err() == nil; n++ {
				if rate > 0 {
					due := time.Duration((float64(n) + float64(i)/writers) * writers / rate * float64(time.Second))
					waitUntil(ctx, began.Add(due))
				}
				if err := w.write(t.Context(), &part[n%len(part)]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func waitUntil(ctx context.Context, moment time.Time) {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// taken returns what was written, and forgets it.
func (w *writer) taken() []written {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	done := w.done
	w.done = nil
	return done
}

// missing returns how many of the written changes are not in the store of a monitor that has ended, and how many of these are of a
// time in which a gap is recorded.
func missing(t *testing.T, folder string, group string, done []written) (lost, inGaps int) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: folder + "/history", MaxBytes: 8 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	type gap struct{ since, until time.Time }
	var gaps []gap
	found := map[string]bool{}
	for cursor := ""; ; {
		page, err := s.Changes(t.Context(), store.Query{Group: group, OldestFirst: true, Limit: 1000, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Changes {
			c := &page.Changes[i]
			if c.Type == "Gap" {
				gaps = append(gaps, gap{c.Since.Add(-time.Second), c.Time.Add(time.Second)})
			}
			found[c.ResourceVersion] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for _, one := range done {
		switch {
		case found[strconv.Itoa(one.version)]:
		case slices.ContainsFunc(gaps, func(g gap) bool { return one.at.After(g.since) && one.at.Before(g.until) }):
			inGaps++
		default:
			lost++
		}
	}
	return lost, inGaps
}

// reported reads the lines of a process: when each resource version was known.
func reported(t *testing.T, file string) map[int]time.Time {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := map[int]time.Time{}
	for line := range strings.Lines(string(content)) {
		version, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, err1 := strconv.Atoi(version)
		nanoseconds, err2 := strconv.ParseInt(at, 10, 64)
		if _, twice := known[number]; err1 == nil && err2 == nil && !twice {
			known[number] = time.Unix(0, nanoseconds)
		}
	}
	return known
}
