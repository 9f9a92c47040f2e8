package store

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// TestAShareHasWhatBelongsToTheNamespace: objects that were made before the namespace are left out, whatever happened to them later, and
// in the second in which it was made the versions tell, those of the changes or that up to which everything is stored.
func TestAShareHasWhatBelongsToTheNamespace(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock})
	begun := clock.Now().Truncate(time.Second)
	body := func(created time.Time) []byte {
		return fmt.Appendf(nil, `{"metadata":{"creationTimestamp":%q}}`, created.Format(time.RFC3339))
	}
	n := 0
	add := func(name string, created time.Time, version int, state []byte) {
		n++
		b := Batch{Kind: widgets, Records: []change.Record{{
			Kind: widgets, Namespace: "north", Name: name, UID: uidOf(n), ResourceVersion: fmt.Sprint(version), Type: change.Updated,
			Time: clock.Now(), ObjectCreated: created, Actor: change.Actor{Confidence: change.Unknown},
		}}}
		if state != nil {
			b.Put = []change.State{{Namespace: "north", Name: name, UID: uidOf(n), ResourceVersion: fmt.Sprint(version), Body: state}}
		}
		commit(t, s, b)
	}
	add("before", begun.Add(-time.Second), 150, body(begun.Add(-time.Second)))
	add("after", begun.Add(time.Second), 90, nil)
	add("same-second-older", begun, 90, nil)
	add("same-second-newer", begun, 101, nil)
	add("same-second-there", begun, 90, body(begun))
	add("unknown-gone", time.Time{}, 150, nil)
	add("unknown-there", time.Time{}, 90, body(begun.Add(time.Hour)))
	add("unknown-before", time.Time{}, 90, body(begun.Add(-time.Hour)))
	read := func() map[string]bool {
		t.Helper()
		page, err := s.Changes(t.Context(), Query{Allow: func(_ schema.GroupResource, namespace string) Share {
			if namespace != "north" {
				return Share{}
			}
			return Share{Of: &change.Tenure{UID: types.UID("now"), Created: begun, ResourceVersion: "100"}}
		}})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, c := range page.Changes {
			found[c.Name] = true
		}
		return found
	}
	want := map[string]bool{"after": true, "same-second-newer": true, "unknown-there": true}
	same(t, "before anything newer is stored", read(), want)
	commit(t, s, Batch{Kind: widgets, Checkpoint: "200"})
	want["same-second-there"] = true
	same(t, "when everything up to a newer version is stored", read(), want)
}
