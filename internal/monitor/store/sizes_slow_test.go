//go:build monitortest

package store

import (
	"fmt"
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
	page, err := s.Changes(t.Context(), Query{Allow: func(schema.GroupResource, string) Share { return Share{} }})
	if err != nil || len(page.Changes) != 0 || page.Next == "" {
		t.Fatalf("%d changes, next %q, %v", len(page.Changes), page.Next, err)
	}
	page, err = s.Changes(t.Context(), Query{Cursor: page.Next})
	if err != nil || len(page.Changes) != standardLimit || page.Changes[0].ResourceVersion != "2000" {
		t.Fatalf("the next page begins with %v, %v", page.Changes[0].ResourceVersion, err)
	}
}

// TestEveryByteOfAHeader: a file of which one byte of the header of SQLite, or of the root of its tables, is wrong, does no harm.
func TestEveryByteOfAHeader(t *testing.T) {
	const header = 112
	files, options := filesOfAStore(t)
	for _, name := range []string{stateFile, olderDay, newestDay} {
		for at := range header {
			for _, value := range []byte{0, 1, 2, 3, 5, 13, 0x7f, 0xff} {
				t.Run(fmt.Sprintf("%s, byte %d is %d", name, at, value), func(t *testing.T) {
					t.Parallel()
					useDamaged(t, options, files, name, func(content []byte) []byte {
						content[at] = value
						return content
					})
				})
			}
		}
	}
}
