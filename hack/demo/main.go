// Command demo is a small web server that shows what a cluster does with it:
// which pod answers, which configuration it runs with, how it starts and fails.
//
//	dump.go     a command that writes what a database might dump
//	main.go     the web server
//	notes.go    notes that are kept in a file on a volume
//	records.go  numbers that are written to two files in turn, to see whether a copy is of one moment
//	tree.go     making and listing trees of files that are hard to back up
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// version is set by the linker.
var version = "dev"

const (
	greetingFile   = "/etc/demo/greeting"
	terminationLog = "/dev/termination-log"
	drainTime      = 20 * time.Second
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "tree" {
		if err := treeCommand(os.Args[2:], os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "dump" {
		if err := dumpCommand(os.Args[2:], os.Getenv, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "records" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := recordsCommand(ctx, os.Args[2:], os.Stdout)
		stop()
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	if message := os.Getenv("START_FAILURE"); message != "" {
		fmt.Fprintln(os.Stderr, message)
		// Outside of a pod there is no such file, and nobody who would read it.
		_ = os.WriteFile(terminationLog, []byte(message), 0o644)
		os.Exit(3)
	}
	memory, err := occupy(os.Getenv("START_MEMORY"))
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.KeepAlive(memory)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv); err != nil {
		log.Fatal(err)
	}
}

// occupy uses so many MiB of memory, all of it.
func occupy(mebibytes string) ([]byte, error) {
	if mebibytes == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(mebibytes, 10, 12)
	if err != nil {
		return nil, fmt.Errorf("START_MEMORY, in MiB: %w", err)
	}
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	return memory, nil
}

func run(ctx context.Context, getenv func(string) string) error {
	port := getenv("PORT")
	if port == "" {
		port = "8080"
	}
	var delay time.Duration
	if text := getenv("START_DELAY"); text != "" {
		var err error
		if delay, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("START_DELAY: %w", err)
		}
	}
	if text := getenv("EXIT_AFTER"); text != "" {
		life, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("EXIT_AFTER: %w", err)
		}
		time.AfterFunc(delay+life, func() { log.Fatalf("ending after %v, as asked", life) })
	}
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	log.Printf("demo %s listens on %s", version, listener.Addr())
	return serve(ctx, listener, newApp(getenv, greetingFile, delay))
}

// serve answers until the context ends, then finishes what has begun.
func serve(ctx context.Context, listener net.Listener, app *app) error {
	server := &http.Server{Handler: app.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Print("draining")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return server.Shutdown(ctx)
}

type app struct {
	getenv       func(string) string
	greetingFile string
	exit         func(code int)
	ready        atomic.Bool
	failing      atomic.Bool
}

func newApp(getenv func(string) string, greetingFile string, delay time.Duration) *app {
	a := &app{getenv: getenv, greetingFile: greetingFile, exit: os.Exit}
	if delay <= 0 {
		a.ready.Store(true)
		return a
	}
	time.AfterFunc(delay, func() { a.ready.Store(true) })
	return a
}

func (a *app) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", a.hello)
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /config", a.config)
	mux.HandleFunc("/exit", a.stop)
	mux.HandleFunc("/fail", a.fail)
	kept := &notes{folder: a.getenv("NOTES_FOLDER")}
	mux.HandleFunc("GET /notes", kept.list)
	mux.HandleFunc("POST /notes", kept.add)
	// A probe of this path shows a rollout that never becomes ready.
	mux.HandleFunc("/never", func(response http.ResponseWriter, _ *http.Request) {
		http.Error(response, "never", http.StatusServiceUnavailable)
	})
	return mux
}

// hello greets at any path, so that a gateway can have one for each application.
func (a *app) hello(response http.ResponseWriter, request *http.Request) {
	hostname, err := os.Hostname()
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(response, "Hello from %s, demo %s\n", hostname, version)
	if request.URL.Path != "/" {
		fmt.Fprintf(response, "path: %s\n", request.URL.Path)
	}
	if message := a.getenv("MESSAGE"); message != "" {
		fmt.Fprintln(response, message)
	}
}

func (a *app) healthz(response http.ResponseWriter, _ *http.Request) {
	if !a.ready.Load() {
		http.Error(response, "starting", http.StatusServiceUnavailable)
		return
	}
	if a.failing.Load() {
		http.Error(response, "failing, as asked", http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(response, "ok")
}

// config shows the only two settings it may show: nobody else's secrets.
func (a *app) config(response http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(response, "env: %s\n", a.getenv("GREETING"))
	content, err := os.ReadFile(a.greetingFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(response, "file: %s\n", strings.TrimSpace(string(content)))
}

// fail makes the health check fail for a while; 0s ends that.
func (a *app) fail(response http.ResponseWriter, request *http.Request) {
	if !a.mayBreak(response) {
		return
	}
	pause, err := time.ParseDuration(request.FormValue("for"))
	if err != nil || pause < 0 || pause > time.Hour {
		http.Error(response, "for must be a duration of at most an hour", http.StatusBadRequest)
		return
	}
	a.failing.Store(pause > 0)
	if pause > 0 {
		time.AfterFunc(pause, func() { a.failing.Store(false) })
	}
	fmt.Fprintf(response, "the health check fails for %v\n", pause)
}

// mayBreak reports whether the application may be broken on request, and refuses otherwise.
func (a *app) mayBreak(response http.ResponseWriter) bool {
	if a.getenv("ALLOW_EXIT") == "true" {
		return true
	}
	http.Error(response, "set ALLOW_EXIT=true to allow this", http.StatusForbidden)
	return false
}

func (a *app) stop(response http.ResponseWriter, request *http.Request) {
	if !a.mayBreak(response) {
		return
	}
	code, err := strconv.Atoi(request.FormValue("code"))
	if err != nil || code < 0 || code > 255 {
		http.Error(response, "code must be a number from 0 to 255", http.StatusBadRequest)
		return
	}
	a.exit(code)
}
