package replica_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// hostilePort is the environment variable that makes the test binary the hostile pods: in a process of their own, so that what
// they cost is not counted.
const hostilePort = "SLIPWAY_TEST_HOSTILE_PODS"

// hostile are answers of pods that want to cost much. n counts the questions to a pod.
var hostile = []struct {
	name   string
	answer func(w http.ResponseWriter, r *http.Request, n int)
}{
	{"many listeners, others each time", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, `"listeners":[`+strings.Repeat("{},", 690_000)+"{}]")
	}},
	{"many routes", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, `"routes":[`+strings.Repeat(`"AAAAAAAAAAAA",`, 138_000)+`""]`)
	}},
	{"many problems", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, `"problems":[`+strings.Repeat(`{"reason":"A"},`, 138_000)+`{"reason":"A"}]`)
	}},
	{"as much as fits", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, `"problems":[`+strings.Repeat(`{"reason":"A"},`, 5000)+fmt.Sprintf(`{"reason":"A","message":"%d"}]`, n))
	}},
	{"a list again and again", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, strings.Repeat(`"listeners":[{},{},{},{}],`, 70_000)+`"routes":[]`)
	}},
	{"a long message", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, `"problems":[{"reason":"A","message":"`+strings.Repeat("x", 1900_000)+`"}]`)
	}},
	{"deep", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, `"more":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	}},
	{"packed spaces", func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
	}},
	{"packed nothing, for ever", func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Encoding", "gzip")
		forever(w, r, nothing)
	}},
	{"for ever", func(w http.ResponseWriter, r *http.Request, _ int) { forever(w, r, spaces) }},
	{"an error, for ever", func(w http.ResponseWriter, r *http.Request, _ int) {
		w.WriteHeader(http.StatusInternalServerError)
		forever(w, r, spaces)
	}},
	{"a byte from time to time", func(w http.ResponseWriter, r *http.Request, _ int) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			<-time.After(10 * time.Millisecond)
		}
	}},
	{"a long head", func(w http.ResponseWriter, _ *http.Request, n int) {
		w.Header().Set("X-Much", strings.Repeat("x", 4<<20))
		writeDocument(w, n, `"generation":1`)
	}},
	{"hints", func(w http.ResponseWriter, _ *http.Request, n int) {
		for range 10_000 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		writeDocument(w, n, `"generation":1`)
	}},
	{"elsewhere", func(w http.ResponseWriter, r *http.Request, _ int) {
		http.Redirect(w, r, r.URL.String(), http.StatusFound)
	}},
	{"something else, at once", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, fmt.Sprintf(`"generation":%d`, n))
	}},
	{"something else, as soon as it is believed", func(w http.ResponseWriter, _ *http.Request, n int) {
		<-time.After(25 * time.Millisecond)
		writeDocument(w, n, fmt.Sprintf(`"generation":%d`, n))
	}},
	{"good, then bad", func(w http.ResponseWriter, _ *http.Request, n int) {
		if n%2 == 0 {
			writeDocument(w, n, `"generation":1`)
		} else {
			w.WriteHeader(http.StatusBadGateway)
		}
	}},
	{"stale, then not", func(w http.ResponseWriter, _ *http.Request, n int) {
		writeDocument(w, n, fmt.Sprintf(`"view":{"current":%t}`, n%2 == 0))
	}},
	{"nothing", func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }},
	{"the end of the connection", func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }},
}

var (
	spaces  = bytes.Repeat([]byte{' '}, 64<<10)
	packed  = pack(1000)
	nothing = bytes.Repeat(pack(0), 1000)
)

// pack packs so many times 64 KiB.
func pack(times int) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for range times {
		_, _ = w.Write(spaces)
	}
	_ = w.Close()
	return out.Bytes()
}

func writeDocument(w io.Writer, n int, rest string) {
	_, _ = fmt.Fprintf(w, `{"protocol":1,"uid":"gateway","revision":%d,%s}`, n, rest)
}

func forever(w io.Writer, r *http.Request, content []byte) {
	for r.Context().Err() == nil {
		if _, err := w.Write(content); err != nil {
			return
		}
	}
}

// each is how many pods answer each hostile answer.
const each = 4

func hostileAddress(i int) string { return fmt.Sprintf("127.66.%d.%d", i/200, 1+i%200) }

// TestHostilePods is no test: it is what answers as the pods, in a process of its own.
func TestHostilePods(t *testing.T) {
	port := os.Getenv(hostilePort)
	if port == "" {
		t.Skip("it is started by another test")
	}
	for i := range each * len(hostile) {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(hostileAddress(i), port))
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hostile[i%len(hostile)].answer(w, r, int(asked.Add(1)))
		})}
		go func() { _ = server.Serve(listener) }()
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other test ends
}

func startHostilePods(t *testing.T, port int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostilePods$")
	command.Env = append(os.Environ(), hostilePort+"="+strconv.Itoa(port))
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
}

// news counts what a Follower tells of each namespace.
type news struct {
	mutex sync.Mutex
	count map[string]int
	good  chan struct{}
}

func (n *news) tell(gateway types.NamespacedName) {
	n.mutex.Lock()
	n.count[gateway.Namespace]++
	n.mutex.Unlock()
	if gateway.Namespace == "good" {
		n.good <- struct{}{}
	}
}

func (n *news) of(namespace string) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.count[namespace]
}

// used is the processor time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// reading is the processor time of reading 1 MiB of answers on this machine. A namespace may have so much read in a second.
func reading(t *testing.T, size document.Size) time.Duration {
	t.Helper()
	var body bytes.Buffer
	writeDocument(&body, 1, `"problems":[`+strings.Repeat(`{"reason":"A"},`, 5000)+`{"reason":"A"}]`)
	if _, err := document.Read(body.Bytes(), size); err != nil {
		t.Fatal(err)
	}
	start, read := used(t), 0
	for ; read < 4<<20; read += body.Len() {
		_, _ = document.Read(body.Bytes(), size)
	}
	return (used(t) - start) * (1 << 20) / time.Duration(read)
}

// round is what some changes of the good gateway took to be known, and what the operator used meanwhile.
type round struct {
	median, slowest time.Duration
	processor       float64 // cores
	memory          uint64  // the most that the heap had
}

// between is the time between two changes.
const between = 250 * time.Millisecond

// watchGood changes what a good gateway serves, from time to time.
func watchGood(t *testing.T, board *document.Board, heard *news, changes int) round {
	t.Helper()
	var took []time.Duration
	var result round
	start, usedBefore := time.Now(), used(t)
	for range changes {
		before := time.Now()
		doc := board.Current()
		doc.Generation++
		board.Publish(doc)
		select {
		case <-heard.good:
		case <-time.After(30 * time.Second):
			t.Fatal("the change of the good gateway is not known after 30 s")
		}
		took = append(took, time.Since(before))
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		result.memory = max(result.memory, memory.HeapInuse)
		<-time.After(between)
	}
	result.processor = (used(t) - usedBefore).Seconds() / time.Since(start).Seconds()
	slices.Sort(took)
	result.median, result.slowest = took[len(took)/2], took[len(took)-1]
	return result
}

// What the pods of one namespace answer costs the operator a stated share, and delays no news of another namespace.
func TestPodsThatAnswerAnythingHurtNoOtherNamespace(t *testing.T) {
	board := document.NewBoard(clock.RealClock{}, "test")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: board, ReadHeaderTimeout: time.Second}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	port := listener.Addr().(*net.TCPAddr).Port

	heard := &news{count: map[string]int{}, good: make(chan struct{}, 100)}
	follower := replica.New(replica.Options{Port: port})
	follower.Notify(heard.tell)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	small := document.Size{Routes: 1000, Objects: 2}
	follower.Follow(t.Context(), types.NamespacedName{Namespace: "good", Name: "edge"}, small, []replica.Pod{{UID: "good", IP: "127.0.0.1"}})
	<-heard.good
	alone, perMiB := watchGood(t, board, heard, 4), reading(t, small)

	startHostilePods(t, port)
	var pods []replica.Pod
	for i := range each * len(hostile) {
		pods = append(pods, replica.Pod{UID: types.UID(strconv.Itoa(i)), IP: hostileAddress(i)})
	}
	evil := types.NamespacedName{Namespace: "evil", Name: "edge"}
	follower.Follow(t.Context(), evil, small, pods)
	first := watchGood(t, board, heard, 6) // what they may do at once
	told := heard.of("evil")
	beside := watchGood(t, board, heard, 12)
	perSecond := float64(heard.of("evil")-told) / (12 * between.Seconds())

	t.Logf("alone:      %+v", alone)
	t.Logf("at first:   %+v", first)
	t.Logf("beside it:  %+v, %d pods, %.0f changes told per second", beside, len(pods), perSecond)
	for i, one := range hostile {
		answer := follower.Answer(evil, types.UID(strconv.Itoa(i)))
		t.Logf("%-45s state %d %s", one.name, answer.State, answer.Detail)
	}
	const enough = replica.Patience / 2 // so nobody waits for a pod that says nothing; a busy machine alone takes some of it
	for _, r := range []round{first, beside} {
		if r.median > max(2*alone.median, enough) {
			t.Errorf("a change of the good gateway is known after %v, alone after %v", r.median, alone.median)
		}
		if more := int64(r.memory) - int64(alone.memory); more > 64<<20 {
			t.Errorf("the hostile pods take %d MiB of memory, want at most 64", more>>20)
		}
	}
	most := 2 * perMiB.Seconds() // the answers are 1 MiB a second, and the rest is for questions
	t.Logf("processor:  to read 1 MiB takes %v", perMiB)
	if more := beside.processor - alone.processor; more > most {
		t.Errorf("the hostile pods take %.2f cores, want at most %.2f", more, most)
	}
	if limit := float64(len(pods)); perSecond > limit {
		t.Errorf("%.0f changes are told in a second, want at most %.0f", perSecond, limit)
	}
}
