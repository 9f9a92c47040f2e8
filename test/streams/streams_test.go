//go:build !race

package streams

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/server"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

const (
	viewers       = 10
	changesPerSec = 300
	busy          = 20
	namespaces    = 12
	// silence is how long a stream may be without a change while there are changes all the time.
	silence = 5 * time.Second
	// usual is how long the test lasts, unless the environment has DURATION.
	usual = 6 * time.Second
	// busyVariable makes this program one that only uses a processor.
	busyVariable = "STREAMS_TEST_BUSY"
)

func TestMain(m *testing.M) {
	if os.Getenv(busyVariable) != "" {
		for n := 0; ; n++ { // until it is killed
			_ = n
		}
	}
	os.Exit(m.Run())
}

var widgets = change.Kind{
	Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: "11111111-0000-0000-0000-000000000001",
}

// TestNoStreamIsSilent: however busy the machine is, each of some streams is told of changes as long as there are any, and of all of them
// in the end.
func TestNoStreamIsSilent(t *testing.T) {
	during := usual
	if text := os.Getenv("DURATION"); text != "" {
		var err error
		if during, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	var commit slowest
	address, journal := begin(t, &commit)
	var watched []*viewer
	var reading sync.WaitGroup
	t.Cleanup(reading.Wait)
	for i := range viewers {
		v := view(t, address, i)
		watched = append(watched, v)
		reading.Go(v.read)
	}
	load(t)
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var made atomic.Int64
	writing := make(chan error, 1)
	go func() { writing <- write(ctx, t.Context(), journal, &made) }()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	var longest time.Duration
	for done := false; !done; {
		select {
		case err := <-writing:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		case <-look.C:
		}
		for _, v := range watched {
			quiet := v.quiet()
			longest = max(longest, quiet)
			if quiet > silence {
				t.Fatalf("the stream of %s is silent for %s, after %d changes of %d; %s", v.user, quiet.Round(time.Second), v.changes.Load(), made.Load(), situation(watched, &commit))
			}
		}
	}
	t.Logf("%d changes in %s, %d streams: the longest silence is %s; %s", made.Load(), during, viewers, longest.Round(time.Millisecond), situation(watched, &commit))
	for _, v := range watched {
		v.await(made.Load())
	}
}

// slowest is the longest time that something took, and when the last one ended.
type slowest struct{ longest, last atomic.Int64 }

func (s *slowest) note(took time.Duration, _ int) {
	s.longest.Store(max(s.longest.Load(), int64(took)))
	s.last.Store(time.Now().UnixNano())
}

// situation tells a store that does not come to its end from a stream that does not.
func situation(watched []*viewer, commit *slowest) string {
	silences := make([]time.Duration, 0, len(watched))
	for _, v := range watched {
		silences = append(silences, v.quiet().Round(time.Millisecond))
	}
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("silences now %v; the last commit was %s ago, and the longest took %s; load %s", silences,
		time.Since(time.Unix(0, commit.last.Load())).Round(time.Millisecond), time.Duration(commit.longest.Load()).Round(time.Millisecond), strings.TrimSpace(string(load)))
}

// write makes changes until the first context ends.
func write(during, all context.Context, journal supervisor.Journal, made *atomic.Int64) error {
	pace := rate.NewLimiter(changesPerSec, changesPerSec/10)
	for n := 1; pace.Wait(during) == nil; n++ {
		name := fmt.Sprintf("w%d", n%100)
		raw, err := json.Marshal(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{
				"name": name, "namespace": namespaceOf(n), "uid": uidOf(n), "resourceVersion": fmt.Sprint(n), "creationTimestamp": "2026-01-02T00:00:00Z",
			},
			"spec": map[string]any{"value": n, "text": strings.Repeat("some text ", n%30)},
		})
		if err != nil {
			return err
		}
		event := supervisor.Event{Type: supervisor.Modified, Object: supervisor.Object{
			Namespace: namespaceOf(n), Name: name, UID: uidOf(n), ResourceVersion: fmt.Sprint(n), Raw: raw,
		}}
		if err := journal.Event(all, event); err != nil {
			return err
		}
		made.Add(1)
	}
	return nil
}

func namespaceOf(n int) string { return fmt.Sprintf("team-%d", n%100%namespaces) }

func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n%100)) }

// begin makes a store, who writes it and who serves it, as the monitor does.
func begin(t *testing.T, commit *slowest) (address string, journal supervisor.Journal) {
	history, err := store.Open(t.Context(), store.Options{
		Dir: t.TempDir(), Patch: func(body []byte, fields []change.Field) ([]byte, error) { return change.Patch(body, fields, nil) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = history.Close() })
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := recorder.New(t.Context(), recorder.Options{
		Store: history, Policy: policy, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), CommitInterval: 20 * time.Millisecond,
		Committed: commit.note,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.WithoutCancel(t.Context())) })
	if journal, err = r.Open(t.Context(), widgets, supervisor.Schema{}); err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(server.Options{
		Store: history, Coverage: covered{}, TokenReviews: tokens{}, AccessReviews: rights{}, Namespaces: namespaceReads{},
		Subscribe: func() server.Subscription { return subscription{r.Subscribe(1, nil)} }, Key: []byte(strings.Repeat("k", 32)),
	})
	if err != nil {
		t.Fatal(err)
	}
	made := httptest.NewUnstartedServer(nil)
	made.Config = server.HTTPServer(handler)
	made.Start()
	t.Cleanup(made.Close)
	t.Cleanup(made.CloseClientConnections)
	return made.URL, journal
}

type subscription struct{ *recorder.Subscription }

// Next waits until something was stored.
func (s subscription) Next(ctx context.Context) error {
	_, _, err := s.Subscription.Next(ctx)
	return err
}

// load keeps the processors busy until the test ends.
func load(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range busy {
		command := exec.Command(self)
		command.Env = append(os.Environ(), busyVariable+"=yes", "GOMAXPROCS=1")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
	}
}

// viewer reads one stream.
type viewer struct {
	*testing.T
	address, user string
	body          *bufio.Scanner
	changes, last atomic.Int64
	ended, woken  chan struct{}
}

// view begins a stream. Half of the viewers may list everywhere, and the others in each namespace.
func view(t *testing.T, address string, number int) *viewer {
	user := fmt.Sprintf("everywhere-%d", number)
	if number%2 == 1 {
		user = fmt.Sprintf("inside-%d", number)
	}
	v := &viewer{T: t, address: address, user: user, ended: make(chan struct{}), woken: make(chan struct{}, 1)}
	v.last.Store(time.Now().UnixNano())
	if err := v.open(""); err != nil {
		t.Fatal(err)
	}
	return v
}

// open begins the stream, after a change that it told of.
func (v *viewer) open(last string) error {
	request, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.address+api.Prefix+"stream", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+v.user)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	v.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", v.user, answer.Status)
	}
	v.body = bufio.NewScanner(answer.Body)
	v.body.Buffer(nil, 1<<20)
	return nil
}

// read counts changes. A stream that ends as streams do after 10 minutes is begun again where it was.
func (v *viewer) read() {
	defer close(v.ended)
	id := ""
	for {
		for v.body.Scan() {
			name, value, _ := strings.Cut(v.body.Text(), ": ")
			switch {
			case name == "id":
				id = value
				v.changes.Add(1)
				v.last.Store(time.Now().UnixNano())
				select {
				case v.woken <- struct{}{}:
				default:
				}
			case value == "failure":
				v.body.Scan()
				v.Errorf("the stream of %s has failed: %s", v.user, v.body.Text())
			}
		}
		if v.body.Err() != nil || v.Context().Err() != nil || v.open(id) != nil {
			return
		}
	}
}

func (v *viewer) quiet() time.Duration { return time.Since(time.Unix(0, v.last.Load())) }

// await waits until the stream has told of so many changes.
func (v *viewer) await(all int64) {
	limit := time.NewTimer(2 * silence)
	defer limit.Stop()
	for v.changes.Load() < all {
		select {
		case <-v.woken:
		case <-v.ended:
			v.Errorf("the stream of %s ended after %d of %d changes", v.user, v.changes.Load(), all)
			return
		case <-limit.C:
			v.Errorf("the stream of %s was told of %d changes of %d", v.user, v.changes.Load(), all)
			return
		}
	}
}

// covered says that everything is seen.
type covered struct{}

// Coverage says what is seen.
func (covered) Coverage() supervisor.Coverage {
	now := time.Now()
	return supervisor.Coverage{
		Time: now, Complete: true, Definitions: supervisor.KindCoverage{State: supervisor.Live, LastSeen: now},
		Kinds: []supervisor.KindCoverage{{Kind: widgets, State: supervisor.Live, LastSeen: now}},
	}
}

// tokens, rights and namespaceReads play the API server: a token is the name of its user.
type (
	tokens         struct{}
	rights         struct{}
	namespaceReads struct{}
)

// Create says whose a token is.
func (tokens) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	answer := review.DeepCopy()
	answer.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}, Audiences: review.Spec.Audiences,
	}
	return answer, nil
}

// Create says what a user may list.
func (rights) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	answer := review.DeepCopy()
	answer.Status.Allowed = review.Spec.ResourceAttributes.Namespace != "" || strings.HasPrefix(review.Spec.User, "everywhere")
	return answer, nil
}

// Get says which namespace has a name.
func (namespaceReads) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), ResourceVersion: "1",
	}}, nil
}
