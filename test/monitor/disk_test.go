//go:build monitororacle

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const (
	diskBytes = 48 << 20
	// fullFor is how long the disk stays full, and fullLines how many lines may be logged for that: a few say what is wrong.
	fullFor   = 15 * time.Second
	fullLines = 20
	diskFull  = "degraded: the store takes no changes: its disk is full\n"
)

// disk is a file system of its own, which is full when a test wants it.
type disk struct {
	t      *testing.T
	folder string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a disk of its own")
	}
	d := &disk{t: t, folder: t.TempDir()}
	if err := syscall.Mount("tmpfs", d.folder, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); errors.Is(err, syscall.EPERM) {
		t.Skip("this root may not mount")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *disk) filler() string { return filepath.Join(d.folder, "filler") }

// fill takes all room that is left.
func (d *disk) fill() {
	d.t.Helper()
	file, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, size := range []int{1 << 20, 4 << 10} {
		for block := make([]byte, size); err == nil; {
			_, err = file.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatal(err)
		}
		err = nil
	}
}

func (d *disk) free() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// hook is the webhook of whoever is on call.
type hook struct {
	*httptest.Server

	mutex   sync.Mutex
	refuses bool
	refused int
	taken   map[string]int // how often it has taken each alarm
}

func newHook(t *testing.T) *hook {
	h := &hook{refuses: true, taken: map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			ID string `json:"id"`
		}
		err := json.NewDecoder(r.Body).Decode(&event)
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if err != nil || event.ID == "" {
			t.Errorf("an alarm without an ID: %v", err)
		}
		if h.refuses {
			h.refused++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.taken[event.ID]++
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) accept() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.refuses = false
}

func (h *hook) counts() (refused int, taken map[string]int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.refused, maps.Clone(h.taken)
}

// alarmFor makes a rule that raises an alarm for each object of a resource.
func (g *generator) alarmFor(resource string) {
	g.t.Helper()
	rule := &slipwayv1alpha1.MonitorRule{
		ObjectMeta: metav1.ObjectMeta{Name: "full-" + strings.SplitN(g.group, ".", 2)[0]},
		Spec: slipwayv1alpha1.MonitorRuleSpec{
			Kinds: []slipwayv1alpha1.MonitoredKind{{Group: g.group, Kind: "K" + resource}}, When: "object.spec.value != ''",
			Outputs: &slipwayv1alpha1.MonitorOutputs{Webhooks: []string{"on-call"}},
		},
	}
	if err := g.client.Create(g.t.Context(), rule); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = g.client.Delete(context.Background(), rule) })
}

// TestAFullDisk: while the disk of the history is full, the monitor says so, and why, in few words; an alarm that waited is posted once,
// though that cannot be noted; and when there is room again, everything that happened meanwhile is recorded.
func TestAFullDisk(t *testing.T) {
	const resource = "apples"
	d, h := newDisk(t), newHook(t)
	g := newGenerator(t, 1)
	p := newProcess(t, os.Getenv("MONITOR"), env.Config, newProxy(t, apiServer(t)), g.group)
	p.folder = filepath.Join(d.folder, "store")
	p.configure(g.group, fmt.Sprintf("webhooks: [{name: on-call, url: %q}]\n", h.URL))
	g.define(resource)
	g.alarmFor(resource)
	p.start()
	p.ready()

	writing, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for random := rand.New(rand.NewPCG(1, 2)); writing.Err() == nil; {
			g.write(t.Context(), resource, random)
			wait(writing, 20*time.Millisecond)
		}
	})
	defer writer.Wait()
	defer stop()
	environment.Eventually(t, func() error {
		if refused, _ := h.counts(); refused == 0 {
			return errors.New("no alarm was tried")
		}
		return nil
	})

	before := p.lines()
	d.fill()
	p.says(diskFull)
	h.accept()
	environment.Eventually(t, func() error {
		if _, taken := h.counts(); len(taken) == 0 {
			return errors.New("no alarm is delivered while the disk is full")
		}
		return nil
	})
	wait(t.Context(), fullFor)
	lines := p.lines() - before
	p.says(diskFull)
	_, taken := h.counts()
	posts := 0
	for id, times := range taken {
		posts += times
		if times > 1 {
			t.Errorf("the alarm %s was posted %d times", id, times)
		}
	}
	t.Logf("%s with a full disk: %d alarms, %d posts, %d lines", fullFor, len(taken), posts, lines)
	if lines < 1 || lines > fullLines {
		t.Errorf("%d lines were logged in %s, and a few, %d at most, say it", lines, fullFor, fullLines)
	}

	d.free()
	p.says("ok\n")
	stop()
	writer.Wait()
	g.lookUpAll(t.Context())
	if found := g.conclude(t, p, attempts); found.wrong() {
		t.Errorf("%q", found.Examples)
	}
	_, taken = h.counts()
	for id, times := range taken {
		if times > 1 {
			t.Errorf("in the end the alarm %s was posted %d times", id, times)
		}
	}
}
