package background_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/backup/background"
)

func owner(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// rig is a started pool whose work goes on until it is let go.
type rig struct {
	pool *background.Pool[string, string]

	mu       sync.Mutex
	began    []string
	reported []string
	gates    map[string]chan struct{}
}

func start(t *testing.T, limit, perNamespace int) *rig {
	r := &rig{pool: background.New[string, string](limit, perNamespace), gates: map[string]chan struct{}{}}
	r.pool.Notify(func(o types.NamespacedName) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reported = append(r.reported, o.String())
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.pool.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) ask(o types.NamespacedName, key string) string {
	r.mu.Lock()
	gate := r.gates[key]
	if gate == nil {
		gate = make(chan struct{})
		r.gates[key] = gate
	}
	r.mu.Unlock()
	result, ended := r.pool.Ask(o, key, func(ctx context.Context) string {
		r.mu.Lock()
		r.began = append(r.began, key)
		r.mu.Unlock()
		select {
		case <-gate:
			return "done " + key
		case <-ctx.Done():
			return "canceled " + key
		}
	})
	return fmt.Sprint(result, " ", ended)
}

func TestWorkIsBoundedAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, 2, 2)
		synctest.Wait() // the pool begins what is asked for at once
		a, b := owner("one", "a"), owner("two", "b")
		for _, key := range []string{"1", "2", "3"} {
			if got := r.ask(a, key); got != " false" {
				t.Errorf("asked for the first time: %q", got)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff(2, len(r.began)); diff != "" {
			t.Errorf("at a time: %s", diff)
		}
		r.ask(b, "4")
		synctest.Wait()
		if len(r.began) != 3 || r.began[2] != "4" {
			t.Errorf("began %v, and a namespace for which nothing was done does not wait", r.began)
		}
		close(r.gates["1"])
		close(r.gates["2"])
		synctest.Wait()
		if len(r.began) != 4 || r.ask(a, "1") != "done 1 true" || r.ask(a, "1") != "done 1 true" {
			t.Errorf("began %v, the first says %q", r.began, r.ask(a, "1"))
		}
		if diff := cmp.Diff([]string{"one/a", "one/a"}, r.reported); diff != "" {
			t.Errorf("told: %s", diff)
		}
		r.pool.Keep(a, func(key string) bool { return key != "1" })
		if got := r.ask(a, "1"); got != " false" {
			t.Errorf("what was forgotten is known: %q", got)
		}
		close(r.gates["3"])
		close(r.gates["4"])
	})
}

func TestANamespaceDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, 3, 2)
		for _, key := range []string{"1", "2", "3", "4"} {
			r.ask(owner("greedy", "a"), key)
		}
		r.ask(owner("other", "b"), "5")
		synctest.Wait()
		if got := fmt.Sprint(r.began); len(r.began) != 3 || !slices.Contains(r.began, "5") {
			t.Errorf("began %s", got)
		}
	})
}

// Work of many namespaces that never ends does not delay what another one asks for, and one namespace gets no more than its share.
func TestWorkThatNeverEndsKeepsNoOtherNamespaceWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, 8, 3)
		synctest.Wait()
		for n := range 20 {
			for work := range 10 {
				r.ask(owner(fmt.Sprint("greedy", n), "a"), fmt.Sprint(n, "-", work))
			}
		}
		synctest.Wait()
		before := len(r.began)
		if want := 3 + 3 + 2 + 17; before != want {
			t.Errorf("%d began for 20 namespaces, want %d: one for each at least, and 8 for the first", before, want)
		}
		if first := slices.DeleteFunc(slices.Clone(r.began), func(key string) bool { return !strings.HasPrefix(key, "0-") }); len(first) != 3 {
			t.Errorf("of the first namespace %v began", first)
		}
		r.ask(owner("other", "b"), "first")
		r.ask(owner("other", "b"), "second")
		synctest.Wait()
		if got := r.began[before:]; !slices.Equal(got, []string{"first"}) {
			t.Errorf("began of the other namespace: %v", got)
		}
	})
}

// What is canceled counts as being done until it has ended: nothing that must not overlap with it may begin before.
func TestWhatIsNotWantedIsCanceledAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, 1, 1)
		a := owner("one", "a")
		r.ask(a, "before")
		r.ask(a, "queued")
		synctest.Wait()
		none := func(string) bool { return false }
		if !r.pool.Keep(a, none) {
			t.Error("it was not being done")
		}
		synctest.Wait()
		if r.pool.Keep(a, none) {
			t.Error("it goes on")
		}
		if diff := cmp.Diff([]string{"before"}, r.began); diff != "" {
			t.Errorf("began: %s", diff)
		}
		if len(r.reported) != 1 {
			t.Errorf("told %v", r.reported)
		}
	})
}

func TestWorkThatIsAskedForEarlyBeginsWithThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := background.New[string, string](1, 1)
		work := func(context.Context) string { return "done" }
		pool.Ask(owner("one", "a"), "1", work)
		synctest.Wait()
		if _, ended := pool.Ask(owner("one", "a"), "1", work); ended {
			t.Error("it was done before the pool was started")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- pool.Start(ctx) }()
		synctest.Wait()
		if result, ended := pool.Ask(owner("one", "a"), "1", work); !ended || result != "done" {
			t.Errorf("it is %q, %v", result, ended)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
