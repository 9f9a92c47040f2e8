package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// What a backend has sent is not held back for what it has not.
func TestAHeadDoesNotWaitForItsBody(t *testing.T) {
	const routes = `
- {path: /h1, backendService: {name: app, port: 80}, compression: {minBytes: 1}}
- {path: /h2, backendService: {name: h2, port: 80}, cache: {}}`
	const body = "the body of the response"
	taken := make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "24")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Cache-Control", r.URL.RawQuery)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-taken:
			_, _ = io.WriteString(w, body)
		case <-time.After(5 * time.Second):
			t.Error("the head has not come")
		}
	})
	g := start(t, Options{}, routes, backend)
	for _, version := range []int{1, 2} {
		for _, path := range []string{"/h1", "/h1?no-transform", "/h2", "/h2?max-age=60"} {
			for _, accepts := range []string{"", "gzip"} {
				client, before := clientOf(t, version), time.Now()
				response, err := client.Do(g.request("GET", path, "Accept-Encoding", accepts))
				if err != nil {
					t.Fatal(err)
				}
				if response.Header.Get("Age") == "" {
					taken <- struct{}{}
				}
				got, err := io.ReadAll(response.Body)
				response.Body.Close()
				if (response.Header.Get("Content-Encoding") == "" && string(got) != body) || err != nil {
					t.Errorf("HTTP/%d, %s: got %q, %v after %v", version, path, got, err, time.Since(before))
				}
			}
		}
	}
}
