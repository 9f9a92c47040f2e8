package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// large are the last states of objects of a namespace, of about 100 kB each.
func large(random *rand.Rand, namespace string, first, count int) Batch {
	b := Batch{Kind: widgets}
	for i := range count {
		content := noise(random, 100_000)
		state := change.State{
			Namespace: namespace, Name: fmt.Sprint("o", first+i), UID: uidOf(first + i), ResourceVersion: fmt.Sprint(first + i),
			Created: time.Unix(1_700_000_000, 0).UTC(), Body: fmt.Appendf(nil, `{"metadata":{"creationTimestamp":"2023-11-14T22:13:20Z"},"x":%s}`, content),
		}
		copy(state.Hash[:], content[1:])
		b.Put = append(b.Put, state)
	}
	return b
}

// whole is how many of the objects have a last state with its content.
func whole(t *testing.T, s *Store, b Batch) (count int) {
	t.Helper()
	for i := range b.Put {
		want := &b.Put[i]
		got, err := s.State(t.Context(), widgets.GroupResource(), want.UID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Hash != want.Hash || !got.Created.Equal(want.Created) || got.ResourceVersion != want.ResourceVersion {
			t.Fatalf("the state of %s is %+v", want.Name, got)
		}
		if bytes.Equal(got.Body, want.Body) && !got.MetadataOnly {
			count++
		} else if !got.MetadataOnly || got.Reason != change.NoRoom || len(got.Body) > 100 {
			t.Fatalf("the state of %s has %d bytes and says %q", want.Name, len(got.Body), got.Reason)
		}
	}
	return count
}

// Whatever a namespace keeps in its objects, the last states of another one are whole, and both have a history.
func TestTheLastStatesOfANamespaceHaveAShare(t *testing.T) {
	fills(t)
	s := open(t, Options{MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(41, 7))
	greedy := Batch{Kind: widgets}
	for n := range 20 {
		more := large(random, "greedy", 10_000+20*n, 20)
		commit(t, s, more)
		greedy.Put = append(greedy.Put, more.Put...)
	}
	kept := whole(t, s, greedy)
	if bytes := int64(kept) * 100_000; bytes > MinBytes/4 || bytes < MinBytes/6 {
		t.Errorf("%d states of 400 are whole, in about %d of %d bytes", kept, bytes, MinBytes)
	}
	quiet := large(random, "quiet", 20_000, 20)
	commit(t, s, quiet)
	if got := whole(t, s, quiet); got != 20 {
		t.Errorf("of another namespace %d of 20 states are whole", got)
	}
	h := newHistory()
	commit(t, s, h.batch(s.options.Clock.Now(), 4, 3))
	same(t, "records", all(t, s, Query{}), h.records)

	// Another session counts the same, and what is smaller or as large as before is kept.
	s = reopen(t, s)
	more := large(random, "greedy", 30_000, 20)
	commit(t, s, more)
	if got := whole(t, s, more); got > 1 {
		t.Errorf("after a restart %d more states are whole", got)
	}
	again := Batch{Kind: widgets, Put: slices.Clone(greedy.Put[:1])}
	again.Put[0].ResourceVersion = "60000"
	commit(t, s, again)
	if whole(t, s, again) != 1 {
		t.Error("a state that was whole is not after a change of the same size")
	}

	// Who makes room has it, and so after a kind is forgotten.
	gone := Batch{Kind: widgets}
	for i := range greedy.Put[:60] {
		gone.Drop = append(gone.Drop, greedy.Put[i].UID)
	}
	commit(t, s, gone)
	fresh := large(random, "greedy", 40_000, 20)
	commit(t, s, fresh)
	if got := whole(t, s, fresh); got != 20 {
		t.Errorf("once 60 objects are gone %d of 20 new states are whole", got)
	}
	if err := s.Forget(t.Context(), widgets.GroupResource()); err != nil {
		t.Fatal(err)
	}
	fresh = large(random, "greedy", 50_000, 60)
	commit(t, s, fresh)
	if got := whole(t, s, fresh); got != 60 {
		t.Errorf("once the kind was forgotten %d of 60 states are whole", got)
	}
}

// What is counted while states come, change, grow, shrink and go is what there is.
func TestWhatLastStatesHoldIsCounted(t *testing.T) {
	fills(t)
	s := open(t, Options{MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(41, 8))
	for range 60 {
		b, seen := Batch{Kind: widgets}, map[types.UID]bool{}
		for range 1 + random.IntN(20) {
			uid := uidOf(random.IntN(100))
			if seen[uid] {
				continue
			}
			seen[uid] = true
			if random.IntN(3) == 0 {
				b.Drop = append(b.Drop, uid)
				continue
			}
			state := change.State{UID: uid, Namespace: string(rune('a' + random.IntN(3))), Body: noise(random, 1+random.IntN(60_000))}
			if random.IntN(2) == 0 {
				state.Managers = noise(random, 1+random.IntN(2000))
			}
			b.Put = append(b.Put, state)
		}
		commit(t, s, b)
	}
	err := s.update(t.Context(), func(se *session) error {
		held, all := se.held, se.heldAll
		if err := se.countHeld(); err != nil {
			return err
		}
		same(t, "what namespaces hold", held, se.held)
		same(t, "what all hold", all, se.heldAll)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
