package proxy

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var reuseSeed = flag.Uint64("reuse.seed", 12, "of the connections that TestRandomConnections makes")

// manyX matches the filler of a body.
var manyX = regexp.MustCompile("x{10,}")

// script is what a client sends on one connection.
type script struct {
	text  string
	ids   []string // of its requests, in order
	waits bool     // whether it waits for an answer before it sends the second half
}

// framings produce heads and bodies, some of which contradict each other. Each body holds
// the text of a request.
var framings = []func(random *rand.Rand, body string) (fields, sent string){
	func(_ *rand.Rand, body string) (string, string) {
		return fmt.Sprintf("Content-Length: %d\r\n", len(body)), body
	},
	func(_ *rand.Rand, body string) (string, string) { // everything that follows is its body
		return fmt.Sprintf("Content-Length: %d\r\n", len(body)+1<<20), body
	},
	func(_ *rand.Rand, body string) (string, string) {
		return "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	},
	func(random *rand.Rand, body string) (string, string) {
		return "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body)+random.IntN(3)-1, body)
	},
	func(_ *rand.Rand, body string) (string, string) {
		return "Transfer-Encoding: chunked\r\nTrailer: X-A\r\n", fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\nX-A: b\r\n", len(body), body)
	},
	func(random *rand.Rand, body string) (string, string) {
		return fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", random.IntN(2*len(body))), fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	},
	func(_ *rand.Rand, body string) (string, string) {
		return fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n", len(body)), body
	},
	func(_ *rand.Rand, body string) (string, string) {
		return fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n", len(body)+1<<20), body
	},
	func(_ *rand.Rand, body string) (string, string) {
		return fmt.Sprintf("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n", len(body)), body
	},
	func(*rand.Rand, string) (string, string) { return "", "" },
	func(*rand.Rand, string) (string, string) { return "Connection: Upgrade\r\nUpgrade: websocket\r\n", "" },
}

func newScript(random *rand.Rand, number int) script {
	var names []string
	for name := range answers {
		names = append(names, strings.ReplaceAll(name, " ", "+"))
	}
	var text strings.Builder
	s := script{waits: random.IntN(2) == 0}
	for i := range 1 + random.IntN(4) {
		id := fmt.Sprintf("/%d-%d", number, i)
		s.ids = append(s.ids, id)
		early := ""
		if random.IntN(2) == 0 {
			early = "early+"
		}
		inner := fmt.Sprintf("GET /smuggled%s HTTP/1.1\r\nHost: a\r\n\r\n", id)
		body := strings.Repeat("x", random.IntN(2)*random.IntN(30000)) + strings.Repeat(inner, 1+random.IntN(3))
		fields, sent := framings[random.IntN(len(framings))](random, body)
		method := []string{"GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS"}[random.IntN(6)]
		host := []string{"a", "a", "a", "limited", "direct", "unknown", "redirect"}[random.IntN(7)]
		version := []string{"1.1", "1.1", "1.1", "1.0"}[random.IntN(4)]
		fmt.Fprintf(&text, "%s %s?answer=%s%s HTTP/%s\r\nHost: %s\r\n%s\r\n%s", method, id, early, names[random.IntN(len(names))], version, host, fields, sent)
	}
	s.text = text.String()
	return s
}

// play sends a script and returns everything that comes back.
func (g *gateway) play(s script) string {
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Error(err)
		return ""
	}
	defer conn.Close()
	half := len(s.text) / 2
	_, _ = io.WriteString(conn, s.text[:half])
	in := bufio.NewReader(conn)
	if s.waits {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = in.Peek(1)
	}
	_, _ = io.WriteString(conn, s.text[half:])
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	got, _ := io.ReadAll(in)
	return string(got)
}

// A backend gets only what a client sent as a request, and each request at most once. No
// client gets more answers than it sent requests. This holds whatever clients send, and
// however early backends answer.
func TestRandomConnections(t *testing.T) {
	t.Parallel()
	const connections, atATime = 400, 40
	backend := newHasty(t)
	g := startTable(t, Options{ClientTimeout: 100 * time.Millisecond}, compile(t, reuseRoutes, nil, backend.address))
	random := rand.New(rand.NewPCG(*reuseSeed, 0))
	sent := map[string]bool{}
	slots := make(chan struct{}, atATime)
	var wait sync.WaitGroup
	for i := range connections {
		s := newScript(random, i)
		for _, id := range s.ids {
			sent[id] = true
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			got := g.play(s)
			if count := strings.Count(got, "HTTP/1.") - strings.Count(got, "HTTP/1.1 10"); count > len(s.ids) {
				t.Errorf("seed %d: %d answers to %d requests:\n%q\ngot\n%q", *reuseSeed, count, len(s.ids), manyX.ReplaceAllString(s.text, "x..."), got)
			}
		})
	}
	wait.Wait()
	seen := map[string]int{}
	for _, target := range backend.targets() {
		seen[target]++
		if !sent[target] || seen[target] > 1 {
			t.Errorf("seed %d: the backend got %s, sent: %t, %d times", *reuseSeed, target, sent[target], seen[target])
		}
	}
	if len(seen) < connections/4 {
		t.Errorf("only %d requests reached the backend", len(seen))
	}
}
