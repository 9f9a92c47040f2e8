package livetest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

const (
	// RequestInterval bounds the load that a test makes.
	RequestInterval = 20 * time.Millisecond
	// EnoughRequests is how many it takes to prove something.
	EnoughRequests = 10
)

// Traffic is a steady stream of requests, one after the other.
type Traffic struct {
	f      *Fixture
	cancel context.CancelFunc
	done   sync.WaitGroup

	sent   atomic.Int64
	failed []string
	// enough is closed when there were so many requests that they prove something.
	enough chan struct{}
}

// Traffic requests an URL again and again until Stop.
func (f *Fixture) Traffic(client *http.Client, url string) *Traffic {
	ctx, cancel := context.WithCancel(f.Context())
	t := &Traffic{f: f, cancel: cancel, enough: make(chan struct{})}
	t.done.Go(func() {
		ticker := time.NewTicker(RequestInterval)
		defer ticker.Stop()
		for {
			start := time.Now()
			_, err := livecluster.Ask(ctx, client, url)
			if ctx.Err() != nil {
				return
			}
			if t.sent.Add(1) == EnoughRequests {
				close(t.enough)
			}
			if err != nil {
				t.failed = append(t.failed,
					fmt.Sprintf("%s after %v: %v", start.Format("15:04:05.000"), time.Since(start).Round(time.Millisecond), err))
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	f.Cleanup(func() { t.cancel(); t.done.Wait() })
	return t
}

// Sent returns how many requests there were up to now.
func (t *Traffic) Sent() int { return int(t.sent.Load()) }

// Stop ends the stream, once it has been long enough, and fails the test if any request
// was not answered.
func (t *Traffic) Stop(during string) {
	t.f.Helper()
	select {
	case <-t.enough:
	case <-time.After(time.Minute):
	}
	t.cancel()
	t.done.Wait()
	t.f.Measured("%s: %d of %d requests failed", during, len(t.failed), t.Sent())
	if len(t.failed) > 0 {
		t.f.Errorf("%d of %d requests failed, the first at %s", len(t.failed), t.Sent(),
			strings.Join(t.failed[:min(3, len(t.failed))], "; "))
	}
	if t.Sent() < EnoughRequests {
		t.f.Errorf("only %d requests were sent: the test proves nothing", t.Sent())
	}
}
