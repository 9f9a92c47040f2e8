package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// sharing is a data plane among several that share limits.
type sharing struct {
	*gateway
	shared  *peers.Shared
	address string // for the others
	stop    func()
}

// ownAddress returns an address of this machine that nobody else has: a port that is not given to connections, at one of its 16
// million addresses.
func ownAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), peers.Port)
}

// startSharing starts three data planes with the same routes, and waits until each reaches the others.
func startSharing(t testing.TB, routes string) []*sharing {
	t.Helper()
	return startSharingTable(t, ServerOptions{}, func(backend string) *table.Table { return compile(t, routes, nil, backend) })
}

// startSharingTable does the same with a table that sends requests to a backend.
func startSharingTable(t testing.TB, server ServerOptions, tableTo func(backend string) *table.Table) []*sharing {
	t.Helper()
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	changed := make(chan struct{}, 1)
	var list []*sharing
	for range 3 {
		s := &sharing{address: ownAddress()}
		s.shared = peers.NewShared(peers.SharedOptions{Address: s.address, Scope: "test", Clock: clock.RealClock{}, Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
		s.gateway = startServer(t, Options{Shared: s.shared}, server, tableTo(backend))
		list = append(list, s)
	}
	settings := peers.Settings{Wanted: true, Secret: bytes.Repeat([]byte("s"), 32), Addresses: []string{list[0].address, list[1].address, list[2].address}}
	for _, s := range list {
		ctx, cancel := context.WithCancel(t.Context())
		s.stop = func() { cancel(); s.shared.Set(t.Context(), peers.Settings{}) }
		t.Cleanup(s.stop)
		if again := s.shared.Set(ctx, settings); !again.IsZero() {
			t.Fatalf("%s is taken", s.address)
		}
	}
	for limit := time.After(20 * time.Second); ; {
		apart := false
		for _, s := range list {
			apart = apart || s.shared.Figures().State != peers.State{Known: 2, Reached: 2}
		}
		if !apart {
			return list
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatal("the replicas do not reach each other")
		}
	}
}

// load sends requests to data planes: so many clients each, one after another, until the time is over. half is called in the
// middle. It returns how many were allowed, and in how many seconds.
func load(t testing.TB, list []*sharing, clients [3]int, duration time.Duration, half func()) (allowed, refused int64, seconds float64) {
	t.Helper()
	var ok, not atomic.Int64
	var wait sync.WaitGroup
	begin := time.Now()
	for i, s := range list {
		for n := range clients[i] {
			client := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
			transport := client.Transport.(*http.Transport)
			transport.Protocols.SetHTTP1(n%2 == 0)
			transport.Protocols.SetUnencryptedHTTP2(n%2 == 1)
			wait.Go(func() {
				defer client.CloseIdleConnections()
				for time.Since(begin) < duration {
					response, err := client.Get("http://" + s.gateway.address + "/")
					if err != nil {
						return // it was killed
					}
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					switch response.StatusCode {
					case http.StatusOK:
						ok.Add(1)
					case http.StatusTooManyRequests:
						not.Add(1)
						if after, err := strconv.Atoi(response.Header.Get("Retry-After")); err != nil || after < 1 {
							t.Errorf("Retry-After is %q", response.Header.Get("Retry-After"))
						}
					default:
						t.Errorf("the answer is %s", response.Status)
					}
				}
			})
		}
	}
	if half != nil {
		timer := time.NewTimer(duration / 2)
		defer timer.Stop()
		<-timer.C
		half()
	}
	wait.Wait()
	return ok.Load(), not.Load(), time.Since(begin).Seconds()
}

// decidedLate is how many requests were decided before the owner of the limit had answered, on a busy machine. Tokens pay for those that
// were allowed, but not before the test ends.
func decidedLate(list []*sharing) (late float64) {
	for _, s := range list {
		late += float64(s.shared.Figures().Late)
	}
	return late
}

const sharedRoute = `[{backendService: {name: app, port: 80}, rateLimit: {requests: 100, period: 1s, count: Gateway}}]`

// The limit holds for all replicas together, over HTTP/1.1 and HTTP/2, and with the same
// clients three replicas that do not share allow more.
func TestALimitOfTheGatewayHoldsForAllReplicasTogether(t *testing.T) {
	shapes := map[string][3]int{"even": {2, 2, 2}, "uneven": {5, 3, 2}, "one": {4, 0, 0}}
	holds := func(t *testing.T, list []*sharing, clients [3]int) {
		t.Helper()
		allowed, refused, seconds := load(t, list, clients, 2*time.Second, nil)
		most, late := 100*(seconds+1), decidedLate(list)
		t.Logf("%d allowed of %.0f, %d refused, %.0f decided late", allowed, most, refused, late)
		if float64(allowed) > 1.05*most+late || refused == 0 {
			t.Errorf("%d requests were allowed in %.1f s, want at most %.0f", allowed, seconds, most)
		}
		if float64(allowed) < 0.7*most { // a slow machine makes requests late
			t.Errorf("only %d requests were allowed in %.1f s, want about %.0f", allowed, seconds, most)
		}
	}
	for name, clients := range shapes {
		t.Run(name, func(t *testing.T) { holds(t, startSharing(t, sharedRoute), clients) })
		t.Run("of a GatewayPolicy/"+name, func(t *testing.T) {
			holds(t, startSharingPolicies(t, nil, limitedRoute("team", "/"), limitPolicy("team", "{requests: 100, period: 1s, count: Gateway}", "")), clients)
		})
	}
	t.Run("each replica counts", func(t *testing.T) {
		list := startSharing(t, `[{backendService: {name: app, port: 80}, rateLimit: {requests: 100, period: 1s}}]`)
		if allowed, _, seconds := load(t, list, shapes["even"], 2*time.Second, nil); float64(allowed) < 1.5*100*(seconds+1) {
			t.Errorf("only %d requests were allowed by three replicas in %.1f s", allowed, seconds)
		}
	})
}

func TestALimitOfTheGatewayHoldsWhenAReplicaIsKilled(t *testing.T) {
	list := startSharing(t, sharedRoute)
	allowed, _, seconds := load(t, list, [3]int{2, 2, 2}, 3*time.Second, func() {
		list[2].stop()
		_ = list[2].server.Shutdown(t.Context())
	})
	if most := 1.05*100*(seconds+1) + decidedLate(list); float64(allowed) > most {
		t.Errorf("%d requests were allowed in %.1f s, want at most %.0f", allowed, seconds, most)
	}
	if allowed < 150 {
		t.Errorf("only %d requests were allowed", allowed)
	}
}

// What does not reach the others allows its part of the limit, and not none.
func TestAReplicaAloneAllowsItsPart(t *testing.T) {
	list := startSharing(t, `[{backendService: {name: app, port: 80}, rateLimit: {requests: 90, period: 1h, count: Gateway}}]`)
	one := list[0].shared
	one.Set(t.Context(), peers.Settings{Wanted: true, Addresses: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}})
	allowed := 0
	for range 200 {
		if response, _ := list[0].get("/"); response.StatusCode == http.StatusOK {
			allowed++
		}
	}
	if allowed != 30 {
		t.Errorf("%d requests were allowed, want 30", allowed)
	}
}
