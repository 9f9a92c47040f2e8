package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// zeros is a body, which counts what is taken of it.
type zeros struct {
	left  int64
	taken *atomic.Int64
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	z.taken.Add(n)
	return int(n), nil
}

// A proxy in front of the gateway has many people's uploads on one connection. A backend that reads none of them holds up nobody
// who uploads to another one: all streams of a connection may wait with full windows, but for one.
func TestUploadsThatNobodyReadsHoldUpNoOther(t *testing.T) {
	const stalled, perUpload, fair = 249, 4 << 20, 1 << 20
	ended := make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stalled" {
			<-ended
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}))
	defer backend.Close()
	defer close(ended)
	g := start(t, Options{}, toApp, backend.Listener.Addr().String())

	var dialed atomic.Int64
	transport := &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, g.address)
	}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	upload := func(path string, length int64, taken *atomic.Int64) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a"+path, &zeros{left: length, taken: taken})
		if err != nil {
			return "", err
		}
		request.ContentLength = length
		response, err := transport.RoundTrip(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	var waiting, taken atomic.Int64
	if _, err := upload("/", 1, &taken); err != nil { // so that there is a connection for all
		t.Fatal(err)
	}
	for range stalled {
		wait.Go(func() { _, _ = upload("/stalled", perUpload, &waiting) })
	}
	last, since := int64(0), time.Now()
	eventually(t, "nothing more is taken", func() bool {
		if now := waiting.Load(); now != last || now < stalled {
			last, since = now, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
	got := make(chan string, 1)
	go func() {
		text, err := upload("/", fair, &taken)
		got <- fmt.Sprint(text, " ", err)
	}()
	select {
	case text := <-got:
		if text != fmt.Sprint(fair, " <nil>") {
			t.Errorf("got %s", text)
		}
	case <-time.After(hang):
		t.Fatalf("an upload waits for others, of which %d MiB are on their way", last>>20)
	}
	if last < stalled*streamWindow || dialed.Load() != 1 {
		t.Errorf("%d KiB of %d uploads are on their way, over %d connections, so nothing is shown", last>>10, stalled, dialed.Load())
	}
}
