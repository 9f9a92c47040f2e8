package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

var widgets = change.Kind{
	Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: "11111111-0000-0000-0000-000000000001",
}

// open makes a recorder on a folder.
func open(ctx context.Context, t testing.TB, dir string, more func(*Options)) (*Recorder, *store.Store) {
	t.Helper()
	r, s, err := openFolder(ctx, dir, more)
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

func openFolder(ctx context.Context, dir string, more func(*Options)) (*Recorder, *store.Store, error) {
	s, err := store.Open(ctx, store.Options{Dir: dir, Patch: patch})
	if err != nil {
		return nil, nil, err
	}
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		return nil, nil, err
	}
	options := Options{Store: s, Policy: policy, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}
	if more != nil {
		more(&options)
	}
	r, err := New(ctx, options)
	return r, s, err
}

func patch(body []byte, fields []change.Field) ([]byte, error) {
	return change.Patch(body, fields, nil)
}

// event is one of an object, at a resource version.
type event struct {
	supervisor.Event
	version int
	value   string
}

func object(name string, uid types.UID, version int, value string) supervisor.Object {
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "a", "uid": uid, "resourceVersion": strconv.Itoa(version), "generation": version},
		"spec":     map[string]any{"value": value},
	})
	return supervisor.Object{Namespace: "a", Name: name, UID: uid, ResourceVersion: strconv.Itoa(version), Raw: raw}
}

// history is what truly happened.
type history struct{ events []event }

// newHistory makes a random history: each event changes something.
func newHistory(seed uint64, length int) history {
	random := rand.New(rand.NewPCG(seed, 1))
	h := history{}
	live := map[string]types.UID{}
	for version := 1; version <= length; version++ {
		name := fmt.Sprintf("w%d", random.IntN(12))
		uid, exists := live[name]
		e := event{version: version, value: fmt.Sprintf("v%d", version)}
		switch {
		case !exists:
			uid = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", version))
			live[name] = uid
			e.Type = supervisor.Added
		case random.IntN(5) == 0:
			delete(live, name)
			e.Type = supervisor.Deleted
		default:
			e.Type = supervisor.Modified
		}
		e.Object = object(name, uid, version, e.value)
		h.events = append(h.events, e)
	}
	return h
}

// at returns the objects that there are after a version.
func (h history) at(version int) map[types.UID]supervisor.Object {
	objects := map[types.UID]supervisor.Object{}
	for _, e := range h.events {
		if e.version > version {
			break
		}
		if e.Type == supervisor.Deleted {
			delete(objects, e.Object.UID)
			continue
		}
		objects[e.Object.UID] = e.Object
	}
	return objects
}

// play tells a recorder of a history as a supervisor does, from where the journal resumes. Now and then it forgets history, so that
// a list follows, or stops in the middle of one, or opens the journal again.
func (h history) play(ctx context.Context, r *Recorder, random *rand.Rand, each func(version int)) error {
	if _, err := r.Known(ctx); err != nil {
		return err
	}
	for {
		j, err := r.Open(ctx, widgets, supervisor.Schema{})
		if err != nil {
			return err
		}
		at, _ := strconv.Atoi(j.Resume())
		again, err := h.follow(ctx, j, at, random, each)
		if err != nil || !again {
			return err
		}
	}
}

// playOnce tells of each event once, without a list that would make up for one that is missing.
func (h history) playOnce(ctx context.Context, t *testing.T, r *Recorder) {
	t.Helper()
	j, err := r.Open(ctx, widgets, supervisor.Schema{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.BeginList(ctx, supervisor.Gap{}); err != nil {
		t.Fatal(err)
	}
	if err := j.EndList(ctx, "1", true); err != nil {
		t.Fatal(err)
	}
	for _, e := range h.events {
		if err := j.Event(ctx, e.Event); err != nil {
			t.Fatal(err)
		}
	}
}

func (h history) follow(ctx context.Context, j supervisor.Journal, at int, random *rand.Rand, each func(int)) (again bool, err error) {
	gap := supervisor.Gap{}
	list := at == 0
	for at < len(h.events) || list {
		if list {
			at = min(at+random.IntN(20)+1, len(h.events))
			finished, err := h.list(ctx, j, at, gap, random)
			if err != nil || !finished {
				return true, err
			}
			list = false
			continue
		}
		each(at)
		switch random.IntN(60) {
		case 0:
			list, gap = true, supervisor.Gap{Since: time.Unix(int64(at), 0), Reason: "the history was forgotten"}
			continue
		case 1:
			return true, nil
		case 2:
			if err := j.Bookmark(ctx, strconv.Itoa(at), time.Time{}); err != nil {
				return false, err
			}
		}
		if err := j.Event(ctx, h.events[at].Event); err != nil {
			return false, err
		}
		at++
	}
	return false, nil
}

func (h history) list(ctx context.Context, j supervisor.Journal, at int, gap supervisor.Gap, random *rand.Rand) (finished bool, err error) {
	if err := j.BeginList(ctx, gap); err != nil {
		return false, err
	}
	objects := h.at(at)
	for _, uid := range slices.Sorted(maps.Keys(objects)) {
		if random.IntN(100) == 0 {
			return false, nil
		}
		if err := j.Listed(ctx, objects[uid]); err != nil {
			return false, err
		}
	}
	return true, j.EndList(ctx, strconv.Itoa(at), true)
}

// check compares what is stored with what happened. It returns what is wrong.
func (h history) check(ctx context.Context, s *store.Store) (problems []string) {
	fault := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	want := h.at(len(h.events))
	for state, err := range s.StatesOf(ctx, widgets.GroupResource()) {
		if err != nil {
			fault("read the states: %v", err)
			return problems
		}
		object, found := want[state.UID]
		if !found || object.ResourceVersion != state.ResourceVersion {
			fault("%s is stored at %s, and is at %q", state.UID, state.ResourceVersion, object.ResourceVersion)
		}
		delete(want, state.UID)
	}
	for uid := range want {
		fault("%s is not stored", uid)
	}
	return append(problems, h.checkRecords(ctx, s)...)
}

func (h history) checkRecords(ctx context.Context, s *store.Store) (problems []string) {
	fault := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	seen, last, gone, gaps := map[string]bool{}, map[types.UID]int{}, map[types.UID]bool{}, 0
	cursor := ""
	for {
		page, err := s.Changes(ctx, store.Query{Limit: 1000, OldestFirst: true, Cursor: cursor})
		if err != nil {
			fault("read the changes: %v", err)
			return problems
		}
		for _, c := range page.Changes {
			if c.Type == change.Gap {
				gaps++
				continue
			}
			if gone[c.UID] {
				fault("%s has a record (%s) after it was deleted", c.UID, c.Type)
			}
			gone[c.UID] = gone[c.UID] || c.Type == change.Deleted
			if c.ResourceVersion == "" {
				continue
			}
			version, _ := strconv.Atoi(c.ResourceVersion)
			key := string(c.UID) + "/" + c.ResourceVersion
			if seen[key] {
				fault("%s is there twice", key)
			}
			seen[key] = true
			if version <= last[c.UID] {
				fault("%s comes after %d", key, last[c.UID])
			}
			last[c.UID] = version
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	now := h.at(len(h.events))
	for _, e := range h.events {
		_, lives := now[e.Object.UID]
		if last[e.Object.UID] > 0 && !lives && !gone[e.Object.UID] {
			fault("%s was seen, and its deletion is missing", e.Object.UID)
		}
		if !seen[string(e.Object.UID)+"/"+e.Object.ResourceVersion] && gaps == 0 {
			fault("%s/%s is missing, and there is no gap", e.Object.UID, e.Object.ResourceVersion)
		}
	}
	return problems
}
