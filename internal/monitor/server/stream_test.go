package server

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

// stuckStore is a store that does not answer when it is asked for changes.
type stuckStore struct {
	Store
	stuck chan struct{}
}

func (s stuckStore) Changes(ctx context.Context, q store.Query) (store.Page, error) {
	select {
	case <-s.stuck:
		<-ctx.Done()
		return store.Page{}, ctx.Err()
	default:
		return s.Store.Changes(ctx, q)
	}
}

// TestAStreamThatCannotGoOnSaysSo: whatever a stream waits for, it ends with a reason, and the client goes on from its last place.
func TestAStreamThatCannotGoOnSaysSo(t *testing.T) {
	apples := kindOf("apples", true)
	stuck := make(chan struct{})
	m := newMonitor(t, func(o *Options) { o.Store = stuckStore{o.Store, stuck} }, apples)
	m.cluster.allow("user", "apples.example.com", "", true)
	handler, made, err := newServer(m.options)
	if err != nil {
		t.Fatal(err)
	}
	made.within = 2 * time.Second // long enough for what is not stuck
	server := httptest.NewServer(handler)
	defer server.Close()
	defer server.CloseClientConnections()
	l := listen(t, server.URL, "user", "stream", "")
	l.next("view")
	m.record(apples, "north", "a", "x")
	l.next("change")
	close(stuck)
	if _, data := l.next("failure"); !strings.Contains(data, string(failure.Unavailable)) {
		t.Errorf("%s", data)
	}
}
