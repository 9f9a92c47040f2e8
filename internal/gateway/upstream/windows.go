package upstream

import (
	"net/netip"
	"sync"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// An endpoint that speaks HTTP/2 may send so many bytes of a response before somebody takes them. They wait in the memory of
// the gateway, because other responses come on the same connection.
const (
	wideWindow   = 256 << 10
	narrowWindow = 16 << 10
	// maxWide bounds how many responses have a wide window, of all Services of a Registry. The others have a narrow one, which
	// is slower where the endpoint is far away. So all together take at most maxWide × wideWindow = 64 MiB, and 16 KiB for each
	// request in flight: a response without a place never comes on a connection with wide windows, whatever limits there are.
	// Over HTTP/1.1 the kernel keeps what is not taken, by the same places.
	maxWide = 256
)

// windows shares the wide windows among clients. The zero value is ready to use.
type windows struct {
	mu    sync.Mutex
	taken clients.Places
}

// take takes a wide window for a response to a client. It returns false if there is none for this client.
func (w *windows) take(client netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.taken.Room(client, maxWide) {
		return false
	}
	w.taken.Take(client)
	return true
}

// release gives a wide window back.
func (w *windows) release(client netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken.Release(client)
}
