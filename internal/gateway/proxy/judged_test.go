package proxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"golang.org/x/net/http2"
)

func TestAServiceIsShownTheBody(t *testing.T) {
	a := startAsking(t, `, body: {maxBytes: 10}`, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-Method") == "DELETE" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	send := func(method, body string, length int64) string {
		request := a.request(method, "/x", "Content-Type", "text/a", "Content-Encoding", "br", "Content_type", "text/b", "X-A", "a")
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), length
		response, _ := a.send(request)
		return status(response)
	}
	for name, length := range map[string]int64{"known": 10, "chunked": -1} {
		want(t, name, send("PUT", "0123456789", length), "200")
		asked, passed := <-a.asked, <-a.passed
		want(t, name+": question", asked.Method+" "+asked.body+" "+asked.Header.Get("Content-Type")+" "+asked.Header.Get("Content-Encoding"), "POST 0123456789 text/a br")
		want(t, name+": request", passed.Method+" "+passed.body+" "+passed.Header.Get("Content-Type")+" "+join(passed.Header["Content_type"]), "PUT 0123456789 text/a ")
		want(t, name+": length", passed.ContentLength, int64(10))
		want(t, name+": refused", send("DELETE", "0123456789", length), "403")
		<-a.asked
		want(t, name+": too large", send("PUT", "0123456789a", length+min(length, 1)), "413")
	}
	none(t, "the Service", a.asked)
	none(t, "the backend", a.passed)
	response, _ := a.get("/")
	want(t, "without a body", response.StatusCode, 200)
	want(t, "the question", (<-a.asked).body+(<-a.passed).body, "")
	answered, _ := a.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: t\r\n\r\n")
	want(t, "with a trailer", answered.StatusCode, 200)
	passed := <-a.passed
	want(t, "what nobody has judged", passed.body+join(passed.Header["Trailer"])+fmt.Sprint(len(passed.Trailer)), "a0")
}

func TestAServiceThatSpeaksGRPCIsShownTheBody(t *testing.T) {
	g, a, passed := startAuthorizer(t, `, body: {maxBytes: 1048576}`, func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
		return &authv3.CheckResponse{}, nil
	})
	body := bytes.Repeat([]byte("\xff\x00ab"), 1<<18)
	request := g.request("POST", "/")
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, _ := g.send(request)
	want(t, "status", response.StatusCode, 200)
	want(t, "judged", bytes.Equal((<-a.asked).GetRawBody(), body), true)
	want(t, "passed", (<-passed).body == string(body), true)
}

// judge remembers the bodies that a Service was shown, and those that the backend got.
type judge struct {
	mu             sync.Mutex
	judged, passed map[string][]string // by the number of the request
}

func (j *judge) note(in map[string][]string, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	text := string(body)
	if err != nil {
		text = "half of " + text
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	in[r.Header.Get("X-Number")] = append(in[r.Header.Get("X-Number")], text)
}

// Whatever clients send and wherever they stop, a backend gets a body only if the Service was shown exactly this one for this
// request, and let it in.
func TestABackendGetsOnlyBodiesThatTheServiceHasJudged(t *testing.T) {
	for _, early := range []bool{false, true} { // the backend answers before it has read
		j := &judge{judged: map[string][]string{}, passed: map[string][]string{}}
		service := serve(t, func(w http.ResponseWriter, r *http.Request) {
			j.note(j.judged, r)
			if strings.Contains(r.Header.Get("X-Number"), "refused") {
				w.WriteHeader(http.StatusForbidden)
			}
		})
		backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if early && len(r.Header.Get("X-Number"))%2 == 0 {
				w.WriteHeader(http.StatusOK)
				return
			}
			j.note(j.passed, r)
		})
		g := startTable(t, Options{ClientTimeout: time.Second}, compileAsking(t, `, requestHeaders: [X-Number], body: {maxBytes: 50000}`, backend, service))
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(uint64(client), 1))
				for i := range 30 {
					number := fmt.Sprintf("%d-%d-%s", client, i, []string{"in", "refused"}[r.IntN(2)])
					sendSomehow(g, r, number)
				}
			})
		}
		clients.Wait()
		j.mu.Lock()
		checkJudged(t, j)
		j.mu.Unlock()
		eventually(t, "no room is taken", g.handler.process.Room.Empty)
	}
}

func checkJudged(t *testing.T, j *judge) {
	t.Helper()
	got := 0
	for number, bodies := range j.passed {
		for _, body := range bodies {
			got++
			if half, left := strings.CutPrefix(body, "half of "); left && len(j.judged[number]) == 1 && strings.HasPrefix(j.judged[number][0], half) {
				body = j.judged[number][0] // the client has left once it was judged, so the request is cut, and the backend is told
			}
			if len(j.judged[number]) != 1 || j.judged[number][0] != body || !strings.HasPrefix(body, "body of "+number+" ") || strings.Contains(number, "refused") {
				t.Errorf("request %q: the Service was shown %.80q, and the backend got %.80q", number, j.judged[number], body)
			}
		}
	}
	for number, bodies := range j.judged {
		for _, body := range bodies {
			if !strings.HasPrefix(body, "body of "+number+" ") && !strings.HasPrefix(body, "half of ") { // the client has left
				t.Errorf("for request %q the Service was shown %.80q", number, body)
			}
		}
	}
	if got < 40 || len(j.judged) < 100 {
		t.Errorf("only %d of %d came through: the requests are too strange to show anything", got, len(j.judged))
	}
}

// sendSomehow sends a request in one of many ways, with another one behind it on the connection.
func sendSomehow(g *gateway, r *rand.Rand, number string) {
	body := "body of " + number + " " + strings.Repeat("x", r.IntN(60000))
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if r.IntN(4) == 0 {
		sendInHTTP2(conn, r, number, body)
		return
	}
	head := "POST / HTTP/1.1\r\nHost: a\r\nX-Number: " + number + "\r\n"
	if r.IntN(4) == 0 {
		head += "Expect: 100-continue\r\n"
	}
	text := body
	if r.IntN(2) == 0 {
		head += "Transfer-Encoding: chunked\r\n"
		half := r.IntN(len(body))
		text = fmt.Sprintf("%x\r\n%s\r\n", len(body)-half, body[:len(body)-half])
		if half > 0 {
			text += fmt.Sprintf("%x\r\n%s\r\n", half, body[len(body)-half:])
		}
		text += "0\r\n\r\n"
	} else {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	text = head + "\r\n" + text
	if r.IntN(3) == 0 {
		text = text[:r.IntN(len(text))] // and no more
	} else {
		text += "POST / HTTP/1.1\r\nHost: a\r\nX-Number: " + number + "-next-in\r\nContent-Length: " + fmt.Sprint(len("body of "+number+"-next-in x")) + "\r\nConnection: close\r\n\r\nbody of " + number + "-next-in x"
	}
	_, _ = io.WriteString(conn, text)
	if tcp, is := conn.(*net.TCPConn); is && r.IntN(2) == 0 {
		_ = tcp.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn)
}

// sendInHTTP2 does the same on a stream, which it may reset.
func sendInHTTP2(conn net.Conn, r *rand.Rand, number, body string) {
	transport := &http2.Transport{AllowHTTP: true}
	client, err := transport.NewClientConn(conn)
	if err != nil {
		return
	}
	reader := io.Reader(strings.NewReader(body))
	if r.IntN(3) == 0 {
		reader = io.MultiReader(strings.NewReader(body[:r.IntN(len(body))]), iotest.ErrReader(io.ErrClosedPipe))
	}
	request, err := http.NewRequest(http.MethodPost, "http://a/", reader)
	if err != nil {
		return
	}
	request.Header.Set("X-Number", number)
	if r.IntN(2) == 0 {
		request.ContentLength = int64(len(body))
	}
	if response, err := client.RoundTrip(request); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	a := startAsking(t, `, body: {maxBytes: 100}`, func(http.ResponseWriter, *http.Request) {})
	a.handler.process.ClientTimeout = 50 * time.Millisecond
	conn, err := net.Dial("tcp", a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123")
	answer, _ := io.ReadAll(conn)
	want(t, "the answer", strings.HasPrefix(string(answer), "HTTP/1.1 408 "), true)
	none(t, "the Service", a.asked)
}
