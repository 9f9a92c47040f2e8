//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// requestInterval bounds the load that a test makes.
const requestInterval = 20 * time.Millisecond

// serviceURL is the Service's address, reachable from this machine.
func (f *fixture) serviceURL() string {
	f.Helper()
	service := mustGet(f, appName, &corev1.Service{})
	return livecluster.Address(service.Spec.ClusterIP, service.Spec.Ports[0].Port)
}

// answers waits until an URL answers with every one of the parts.
func (f *fixture) answers(url string, parts ...string) {
	f.Helper()
	client := livecluster.NewHTTPClient()
	f.Eventually(func() error {
		body, err := livecluster.Ask(f.Context(), client, url)
		if err != nil {
			return fmt.Errorf("%s does not answer: %w", url, err)
		}
		for _, part := range parts {
			if !strings.Contains(body, part) {
				return fmt.Errorf("%s answers %q, want %q in it", url, body, part)
			}
		}
		return nil
	})
}

// traffic is a steady stream of requests.
type traffic struct {
	f      *fixture
	cancel context.CancelFunc
	done   sync.WaitGroup

	sent   int
	failed []string
	// enough is closed when there were so many requests that they prove something.
	enough chan struct{}
}

// enoughRequests is how many it takes.
const enoughRequests = 10

// traffic requests an URL again and again until stop.
func (f *fixture) traffic(url string) *traffic {
	return f.trafficThrough(livecluster.NewHTTPClient(), url)
}

// trafficThrough does so with a client of its own.
func (f *fixture) trafficThrough(client *http.Client, url string) *traffic {
	ctx, cancel := context.WithCancel(f.Context())
	l := &traffic{f: f, cancel: cancel, enough: make(chan struct{})}
	l.done.Go(func() {
		ticker := time.NewTicker(requestInterval)
		defer ticker.Stop()
		for {
			start := time.Now()
			_, err := livecluster.Ask(ctx, client, url)
			if ctx.Err() != nil {
				return
			}
			l.sent++
			if l.sent == enoughRequests {
				close(l.enough)
			}
			if err != nil {
				l.failed = append(l.failed, fmt.Sprintf("%s after %v: %v", start.Format("15:04:05.000"), time.Since(start).Round(time.Millisecond), err))
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	f.Cleanup(func() { l.cancel(); l.done.Wait() })
	return l
}

// stop ends the stream, once it has been long enough, and fails the test if any request
// was not answered.
func (l *traffic) stop(during string) {
	l.f.Helper()
	select {
	case <-l.enough:
	case <-time.After(time.Minute):
	}
	l.cancel()
	l.done.Wait()
	l.f.Measured("%s: %d of %d requests failed", during, len(l.failed), l.sent)
	if len(l.failed) > 0 {
		l.f.Errorf("%d of %d requests failed, the first at %s", len(l.failed), l.sent, strings.Join(l.failed[:min(3, len(l.failed))], "; "))
	}
	if l.sent < enoughRequests {
		l.f.Errorf("only %d requests were sent: the test proves nothing", l.sent)
	}
}
