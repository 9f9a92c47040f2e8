package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

const crashKinds, crashObjects = 3, 20

func crashKind(k int) change.Kind {
	return change.Kind{Group: "example.com", Version: "v1", Kind: fmt.Sprintf("Kind%d", k), Resource: fmt.Sprintf("kind%ds", k)}
}

// events is the life of a kind: what happens at a number follows from the numbers before it.
type events struct {
	kind   change.Kind
	number int
	bodies map[int][]byte
}

// next adds an event to a batch.
func (e *events) next(b *Batch, at time.Time) {
	e.number++
	n := (e.number * 7) % crashObjects
	record, state := edit(e.kind, n, e.number, e.bodies[n], at)
	switch {
	case e.number%11 == 0 && e.bodies[n] != nil:
		record.Type, record.Fields = change.Deleted, nil
		delete(e.bodies, n)
		for i := range b.Put {
			if b.Put[i].UID == record.UID {
				b.Put = append(b.Put[:i:i], b.Put[i+1:]...)
				break
			}
		}
		b.Drop = append(b.Drop, record.UID)
	default:
		e.bodies[n] = state.Body
		for i, uid := range b.Drop {
			if uid == record.UID {
				b.Drop = append(b.Drop[:i:i], b.Drop[i+1:]...)
				break
			}
		}
		b.Put = append(b.Put, state)
	}
	b.Records = append(b.Records, record)
	b.Checkpoint = strconv.Itoa(e.number)
}

// until returns the life of a kind up to a number.
func until(kind change.Kind, number int) *events {
	e := &events{kind: kind, bodies: map[int][]byte{}}
	for e.number < number {
		e.next(&Batch{}, time.Unix(0, 0))
	}
	return e
}

func crashOptions(dir string, round int) Options {
	clock := newClock()
	clock.Step(time.Duration(round) * 3 * time.Hour)
	return Options{Dir: dir, Clock: clock, MaxBytes: MinBytes, MaxAge: 24 * time.Hour, BatchWait: time.Millisecond, SnapshotEvery: 4, Patch: flatPatch, hasty: round%2 == 0}
}

// crashChild commits until it is killed, and prints what was acknowledged.
func crashChild() error {
	round, err := strconv.Atoi(os.Getenv("STORE_TEST_ROUND"))
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), crashOptions(os.Getenv("STORE_TEST_DIR"), round))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var out sync.Mutex
	for k := range crashKinds {
		wg.Go(func() {
			kind := crashKind(k)
			checkpoint, err := s.Checkpoint(context.Background(), kind.GroupResource())
			number, _ := strconv.Atoi(checkpoint)
			life := until(kind, number)
			random := rand.New(rand.NewPCG(uint64(round), uint64(k)))
			for err == nil {
				b := Batch{Kind: kind, Values: []Value{{fmt.Sprintf("last/%d", k), nil}}}
				for range 1 + random.IntN(5) {
					life.next(&b, s.options.Clock.Now())
				}
				b.Values[0].Data = []byte(b.Checkpoint)
				b.Outbox = []Message{{Key: fmt.Sprintf("%d/%s", k, b.Checkpoint)}}
				if err = s.Commit(context.Background(), b); err == nil {
					out.Lock()
					fmt.Fprintf(os.Stdout, "%d %s\n", k, b.Checkpoint)
					out.Unlock()
				}
			}
			fmt.Fprintln(os.Stderr, err)
		})
	}
	wg.Wait()
	return errors.New("nobody killed it")
}

// runAndKill runs the child, kills it at a random moment, and returns up to what each kind was acknowledged.
func runAndKill(t *testing.T, dir string, round int, random *rand.Rand) [crashKinds]int {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), roleVariable+"=crash", "STORE_TEST_DIR="+dir, fmt.Sprintf("STORE_TEST_ROUND=%d", round))
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged [crashKinds]int
	var timer *time.Timer
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // what it was printing when it was killed was not acknowledged to anybody
		}
		var k, number int
		if _, scan := fmt.Sscanf(line, "%d %d\n", &k, &number); err != nil || scan != nil {
			t.Fatalf("%q: %v, %v", line, err, scan)
		}
		acknowledged[k] = number
		if timer == nil {
			timer = time.AfterFunc(time.Duration(random.IntN(40_000))*time.Microsecond, func() { _ = child.Process.Kill() })
		}
	}
	if err := child.Wait(); timer == nil || stderr.Len() > 0 {
		t.Fatalf("round %d: the child ended with %v: %s", round, err, stderr.String())
	}
	return acknowledged
}

func TestNothingIsLostAndNothingIsTwiceWhenItIsKilled(t *testing.T) {
	dir := t.TempDir() + "/store"
	random := rand.New(rand.NewPCG(5, 6))
	var checkpoints [][crashKinds]int
	var seen [crashKinds]int
	cursor := ""
	trimmed := 0
	for round := range *kills {
		acknowledged := runAndKill(t, dir, round, random)
		if round%3 == 0 { // looking at it recovers it, and that is for Open to do
			trimmed += unacknowledged(t, dir)
		}
		s, err := Open(t.Context(), crashOptions(dir, round))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if losses, err := s.Losses(t.Context()); err != nil || len(losses) > 0 {
			t.Fatalf("round %d: losses %+v, %v", round, losses, err)
		}
		cursor = checkTail(t, s, cursor, &seen)
		for k := range crashKinds {
			if seen[k] < acknowledged[k] {
				t.Fatalf("round %d: of kind %d the changes up to %d were acknowledged, and it ends at %d", round, k, acknowledged[k], seen[k])
			}
			checkKind(t, s, k, seen[k])
		}
		checkpoints = append(checkpoints, seen)
		if round%50 == 49 || round == *kills-1 {
			checkWhole(t, s, checkpoints)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if *kills >= 100 && trimmed == 0 {
		t.Error("no kill left a change that was not acknowledged, so this proves little")
	}
	t.Logf("%d kills, %d changes, %d of them found after a kill and not acknowledged", *kills, seen[0]+seen[1]+seen[2], trimmed)
}

// unacknowledged counts changes on the disk that the state does not know: a kill between the two transactions leaves them.
func unacknowledged(t *testing.T, dir string) int {
	t.Helper()
	s := &Store{dir: dir, background: t.Context()}
	state, err := s.openDatabase(s.path(stateFile), "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer state.close()
	var name string
	var tail, last int
	if err := state.one(t.Context(), `SELECT name, tail FROM files ORDER BY substr(name, 1, 18) DESC LIMIT 1`, nil, &name, &tail); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path(name)); err != nil {
		return 0
	}
	day, err := s.openDatabase(s.path(name), "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer day.close()
	if err := day.one(t.Context(), `SELECT coalesce(max(id), 0) FROM changes`, nil, &last); err != nil {
		return 0 // it was killed before it had tables
	}
	return last - tail
}

// checkTail reads the changes after a cursor: of each kind the numbers go on without a hole and without one that is there twice.
func checkTail(t *testing.T, s *Store, cursor string, seen *[crashKinds]int) string {
	t.Helper()
	for {
		page, err := s.Changes(t.Context(), Query{OldestFirst: true, Limit: maxLimit, Cursor: cursor})
		if err != nil || len(page.Unreadable) > 0 {
			t.Fatalf("%v, %v", page.Unreadable, err)
		}
		for _, c := range page.Changes {
			k := int(c.Kind.Resource[4] - '0')
			number, _ := strconv.Atoi(c.ResourceVersion)
			if number != seen[k]+1 {
				t.Fatalf("of kind %d comes %d after %d", k, number, seen[k])
			}
			seen[k] = number
			cursor = c.Position
		}
		if page.Next == "" {
			return cursor
		}
	}
}

// checkKind compares everything but the history with what must be there at a number.
func checkKind(t *testing.T, s *Store, k, number int) {
	t.Helper()
	kind := crashKind(k).GroupResource()
	checkpoint, err := s.Checkpoint(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	if want := strconv.Itoa(number); checkpoint != want && (number != 0 || checkpoint != "") {
		t.Fatalf("kind %d has the checkpoint %q, and its changes end at %s", k, checkpoint, want)
	}
	want := map[string]string{}
	for n, body := range until(crashKind(k), number).bodies {
		want[string(uidOf(n))] = string(body)
	}
	got := map[string]string{}
	for state, err := range s.StatesOf(t.Context(), kind) {
		if err != nil {
			t.Fatal(err)
		}
		got[string(state.UID)] = string(state.Body)
	}
	same(t, "states", got, want)
	values, err := s.Values(t.Context(), fmt.Sprintf("last/%d", k))
	if err != nil || (number > 0 && (len(values) != 1 || string(values[0].Data) != checkpoint)) {
		t.Fatalf("kind %d at %d has the value %v, %v", k, number, values, err)
	}
}

// checkWhole reads the whole history: what is missing is too old.
func checkWhole(t *testing.T, s *Store, checkpoints [][crashKinds]int) {
	t.Helper()
	first, last := [crashKinds]int{}, [crashKinds]int{}
	for _, r := range all(t, s, Query{}) {
		k := int(r.Kind.Resource[4] - '0')
		number, _ := strconv.Atoi(r.ResourceVersion)
		if first[k] == 0 {
			first[k], last[k] = number, number-1
		}
		if number != last[k]+1 {
			t.Fatalf("of kind %d comes %d after %d", k, number, last[k])
		}
		last[k] = number
	}
	same(t, "the end of the history", last, checkpoints[len(checkpoints)-1])
	if old := len(checkpoints) - 10; old >= 0 {
		for k := range crashKinds {
			if first[k] > checkpoints[old][k]+1 {
				t.Fatalf("of kind %d the history begins at %d, and %d is not too old", k, first[k], checkpoints[old][k]+1)
			}
		}
	}
	counts, err := countByKind(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range counts {
		k := int(count.Resource[4] - '0')
		if count.Changes != int64(last[k]-first[k]+1) {
			t.Fatalf("kind %d counts %d changes, and has %d", k, count.Changes, last[k]-first[k]+1)
		}
	}
	if _, err := s.Object(t.Context(), schema.GroupResource{Group: "example.com", Resource: "kind0s"}, uidOf(7), s.options.Clock.Now()); err != nil {
		t.Fatal(err)
	}
}

func TestAFailureBetweenTheTwoFilesLeavesNothing(t *testing.T) {
	for name, again := range map[string]bool{"and it goes on": false, "and it is started again": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			h := newHistory()
			commit(t, s, h.batch(s.options.Clock.Now(), 10, 3))
			broken := errors.New("planted")
			var onDisk int64
			s.fault = func(string) error {
				if err := s.writer.session.day.one(t.Context(), `SELECT max(id) FROM changes`, nil, &onDisk); err != nil {
					t.Error(err)
				}
				return broken
			}
			clone := *h
			clone.bodies = map[int][]byte{}
			for n, body := range h.bodies {
				clone.bodies[n] = body
			}
			b := clone.batch(s.options.Clock.Now(), 7, 3)
			b.Outbox = []Message{{Key: "x"}}
			if err := s.Commit(t.Context(), b); !errors.Is(err, broken) {
				t.Fatalf("Commit: %v", err)
			}
			if onDisk != 17 {
				t.Fatalf("%d changes were on the disk at the fault, want 17", onDisk)
			}
			same(t, "records after the fault", all(t, s, Query{}), h.records)
			if again {
				s = reopen(t, s)
			}
			s.fault = nil
			if n, err := s.Waiting(t.Context()); n != 0 || err != nil {
				t.Errorf("%d messages, %v", n, err)
			}
			same(t, "records before the next commit", all(t, s, Query{}), h.records)
			commit(t, s, h.batch(s.options.Clock.Now(), 9, 3))
			same(t, "records", all(t, s, Query{}), h.records)
			counts, err := countByKind(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "counts", counts, []kindCount{{"example.com", "widgets", 19}})
			rate, err := s.Rate(t.Context(), s.options.Clock.Now().Add(-time.Hour), 1)
			if err != nil || rate[0].Changes != 19 {
				t.Errorf("rate %v, %v", rate, err)
			}
			for _, actor := range []string{"manager-0", "manager-1", "manager-2"} {
				if got := len(all(t, s, Query{Actor: actor})); got < 6 {
					t.Errorf("%d changes of %s", got, actor)
				}
			}
		})
	}
}

func TestBodiesOfTheTestsAreDeterministic(t *testing.T) {
	a, b := until(crashKind(1), 200), until(crashKind(1), 200)
	same(t, "bodies", a.bodies, b.bodies)
	for _, body := range a.bodies {
		if !json.Valid(body) {
			t.Errorf("not JSON: %s", body)
		}
	}
}
