package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestHandler(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "greeting")
	if err := os.WriteFile(file, []byte("good morning\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		env        map[string]string
		file       string
		path       string
		wantStatus int
		wantBody   string
	}{
		"greeting":              {path: "/", wantStatus: 200, wantBody: "Hello from " + hostname + ", demo dev\n"},
		"greeting with message": {path: "/", env: map[string]string{"MESSAGE": "hi"}, wantStatus: 200, wantBody: "Hello from " + hostname + ", demo dev\nhi\n"},
		"any path":              {path: "/users/1", wantStatus: 200, wantBody: "Hello from " + hostname + ", demo dev\npath: /users/1\n"},
		"never ready":           {path: "/never", wantStatus: 503, wantBody: "never\n"},
		"healthy":               {path: "/healthz", wantStatus: 200, wantBody: "ok\n"},
		"config":                {path: "/config", env: map[string]string{"GREETING": "hello"}, file: file, wantStatus: 200, wantBody: "env: hello\nfile: good morning\n"},
		"config without any":    {path: "/config", file: file + ".missing", wantStatus: 200, wantBody: "env: \nfile: \n"},
		"exit not allowed":      {path: "/exit?code=1", wantStatus: 403, wantBody: "set ALLOW_EXIT=true to allow this\n"},
		"exit with bad code":    {path: "/exit?code=x", env: map[string]string{"ALLOW_EXIT": "true"}, wantStatus: 400, wantBody: "code must be a number from 0 to 255\n"},
		"exit":                  {path: "/exit?code=7", env: map[string]string{"ALLOW_EXIT": "true"}, wantStatus: 200, wantBody: "exit 7"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			app := newApp(func(key string) string { return test.env[key] }, test.file, 0)
			response := httptest.NewRecorder()
			app.exit = func(code int) { fmt.Fprintf(response, "exit %d", code) }
			app.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, test.path, nil))
			if response.Code != test.wantStatus || response.Body.String() != test.wantBody {
				t.Errorf("GET %s = %d %q, want %d %q", test.path, response.Code, response.Body, test.wantStatus, test.wantBody)
			}
		})
	}
}

func TestTheHealthCheckFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := newApp(func(string) string { return "true" }, "", 0)
		get := func(path string) int {
			response := httptest.NewRecorder()
			app.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
			return response.Code
		}
		for _, step := range []struct {
			path string
			want int
		}{
			{"/fail?for=x", http.StatusBadRequest},
			{"/fail?for=2h", http.StatusBadRequest},
			{"/healthz", http.StatusOK},
			{"/fail?for=10s", http.StatusOK},
			{"/healthz", http.StatusInternalServerError},
			{"/", http.StatusOK},
			{"/fail?for=0s", http.StatusOK},
			{"/healthz", http.StatusOK},
			{"/fail?for=10s", http.StatusOK},
			{"/healthz", http.StatusInternalServerError},
		} {
			if got := get(step.path); got != step.want {
				t.Errorf("GET %s = %d, want %d", step.path, got, step.want)
			}
		}
		<-time.After(11 * time.Second)
		synctest.Wait()
		if got := get("/healthz"); got != http.StatusOK {
			t.Errorf("afterwards GET /healthz = %d", got)
		}
	})
}

func TestStartDelay(t *testing.T) {
	app := newApp(func(string) string { return "" }, "", time.Hour)
	response := httptest.NewRecorder()
	app.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if response.Code != http.StatusServiceUnavailable {
		t.Errorf("GET /healthz during the delay = %d, want 503", response.Code)
	}
}

// A request that has begun is answered although the server is told to end.
func TestServeDrains(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, proceed := make(chan struct{}), make(chan struct{})
	app := newApp(func(key string) string {
		if key == "MESSAGE" {
			close(begun)
			<-proceed
		}
		return "late"
	}, "", 0)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, app) }()

	body := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String() + "/")
		if err != nil {
			body <- err.Error()
			return
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		body <- string(content)
	}()
	<-begun
	cancel()
	close(proceed)
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	hostname, _ := os.Hostname()
	if got, want := <-body, "Hello from "+hostname+", demo dev\nlate\n"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
}

func TestOccupy(t *testing.T) {
	for size, want := range map[string]int{"": 0, "3": 3 << 20} {
		if got, err := occupy(size); len(got) != want || err != nil {
			t.Errorf("occupy(%q) has %d bytes, %v, want %d", size, len(got), err, want)
		}
	}
	for _, size := range []string{"much", "-1", "5000"} {
		if _, err := occupy(size); err == nil {
			t.Errorf("occupy(%q) gives no error", size)
		}
	}
}
