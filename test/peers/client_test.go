//go:build peers

package peers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// asker asks a contender through its Service, on connections that it keeps.
type asker struct{ transport *http.Transport }

// newAsker returns one for the address of a Service. It is closed when the test ends.
func newAsker(t *testing.T, address string) *asker {
	a := &asker{&http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, "80"))
		},
	}}
	t.Cleanup(a.transport.CloseIdleConnections)
	return a
}

// ask returns the status and the color of the backend that has answered.
func (a *asker) ask(ctx context.Context, path string) (status int, color string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := a.transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode, response.Header.Get("X-Color"), err
}

// check returns an error unless one of the colors answers with 200.
func (a *asker) check(ctx context.Context, path string, colors ...string) error {
	status, color, err := a.ask(ctx, path)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("status %d", status)
	}
	if !slices.Contains(colors, color) {
		return fmt.Errorf("%q has answered", color)
	}
	return nil
}

// load is a steady stream of requests for a route that is there all the time.
type load struct {
	sent, wrong atomic.Int64
	first       atomic.Pointer[string] // what was wrong first
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

// startLoad sends so many requests a second, from so many clients, until stop. A client waits for each answer.
func startLoad(t *testing.T, a *asker, path string, rate, clients int) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	for range clients {
		l.done.Go(func() {
			ticker := time.NewTicker(time.Second * time.Duration(clients) / time.Duration(rate))
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				err := a.check(ctx, path, blue, green)
				if ctx.Err() != nil {
					return
				}
				l.sent.Add(1)
				if err != nil {
					l.wrong.Add(1)
					what := time.Now().Format("15:04:05.000 ") + err.Error()
					l.first.CompareAndSwap(nil, &what)
				}
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// count is how many requests were sent up to now, and how many of them were not answered as they should be.
type count struct{ sent, wrong int64 }

func (l *load) count() count { return count{l.sent.Load(), l.wrong.Load()} }

func (c count) since(before count) count { return count{c.sent - before.sent, c.wrong - before.wrong} }

func (c count) String() string { return fmt.Sprintf("%d of %d", c.wrong, c.sent) }
