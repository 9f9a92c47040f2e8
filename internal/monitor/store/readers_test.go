package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// TestReadersDoNotWaitForEachOther: however many read a file at a time, and whatever they look up on the way, nobody holds what another
// one waits for. Each of as many as there are connections is held where it has begun to read, until all of them have.
func TestReadersDoNotWaitForEachOther(t *testing.T) {
	s := open(t, Options{})
	for i := range 20 {
		commit(t, s, Batch{Kind: widgets, Records: []change.Record{{
			Kind: widgets, Namespace: fmt.Sprintf("namespace-%d", i), Name: "a", UID: uidOf(i), ResourceVersion: fmt.Sprint(i + 1), Type: change.Updated,
			Time: s.options.Clock.Now(), Actor: change.Actor{Confidence: change.Unknown},
		}}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var begun sync.WaitGroup
	begun.Add(readersPerFile)
	all := make(chan struct{})
	go func() {
		begun.Wait()
		close(all)
	}()
	places := make(chan struct{}, readersPerFile)
	for range readersPerFile {
		places <- struct{}{}
	}
	allow := func() func(schema.GroupResource, string) Share {
		first := true
		return func(schema.GroupResource, string) Share {
			if first {
				first = false
				select {
				case <-places:
					begun.Done()
				default: // enough wait already
				}
				select {
				case <-all:
				case <-ctx.Done():
				}
			}
			return Share{All: true}
		}
	}
	read := make(chan error)
	const readers = 3 * readersPerFile
	for range readers {
		go func() {
			page, err := s.Changes(ctx, Query{OldestFirst: true, Allow: allow()})
			if err == nil && len(page.Changes) != 20 {
				err = fmt.Errorf("%d changes", len(page.Changes))
			}
			read <- err
		}()
	}
	var failed error
	for range readers {
		failed = errors.Join(failed, <-read)
	}
	if failed != nil {
		t.Errorf("readers of one file keep each other: %v", failed)
	}
}
