//go:build monitortest

package store

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	standardKills  = 200
	queryChanges   = 3000
	queries        = 150
	objectVersions = 400
)

func TestAPageEndsWhenTooMuchIsNotAllowed(t *testing.T) {
	s := open(t, Options{})
	h := newHistory()
	for range maxScan/2000 + 1 {
		b := h.batch(s.options.Clock.Now(), 2000, 50)
		b.Put = nil
		commit(t, s, b)
	}
	page, err := s.Changes(t.Context(), Query{Allow: func(schema.GroupResource, string) bool { return false }})
	if err != nil || len(page.Changes) != 0 || page.Next == "" {
		t.Fatalf("%d changes, next %q, %v", len(page.Changes), page.Next, err)
	}
	page, err = s.Changes(t.Context(), Query{Cursor: page.Next})
	if err != nil || len(page.Changes) != standardLimit || page.Changes[0].ResourceVersion != "2000" {
		t.Fatalf("the next page begins with %v, %v", page.Changes[0].ResourceVersion, err)
	}
}
