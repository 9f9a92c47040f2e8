package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
)

func TestEarlyHintsComeInOrder(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, link := range []string{"</a>", "</b>"} {
			w.Header().Set("Link", link)
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Set("Link", "</c>")
		w.WriteHeader(http.StatusOK)
	})
	const heads = "103 </a>, 103 </b>, 200 </c>"
	for name, routes := range map[string]string{"HTTP/1": toApp, "HTTP/2": toH2} {
		t.Run("from "+name, func(t *testing.T) {
			g := start(t, Options{}, routes, backend)
			want(t, "over HTTP/1", headsOverHTTP1(g), heads)
			want(t, "over HTTP/2", headsOverHTTP2(g), heads)
		})
	}
}

// headsOverHTTP1 returns the statuses and links of what answers a request.
func headsOverHTTP1(g *gateway) string {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	text, _ := io.ReadAll(conn)
	var heads []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if status, is := strings.CutPrefix(line, "HTTP/1.1 "); is {
			heads = append(heads, status[:3])
		}
		if link, is := strings.CutPrefix(line, "Link: "); is && len(heads) > 0 {
			heads[len(heads)-1] += " " + link
		}
	}
	return strings.Join(heads, ", ")
}

// headsOverHTTP2 is headsOverHTTP1 for the other protocol.
func headsOverHTTP2(g *gateway) string {
	g.t.Helper()
	f := g.frames()
	f.open(1, true, good...)
	var heads []string
	for {
		switch frame := f.next().(type) {
		case nil:
			return strings.Join(heads, ", ") + " and the end"
		case *http2.MetaHeadersFrame:
			head := frame.PseudoValue("status")
			for _, field := range frame.RegularFields() {
				if field.Name == "link" {
					head += " " + field.Value
				}
			}
			heads = append(heads, head)
			if !strings.HasPrefix(head, "1") {
				return strings.Join(heads, ", ")
			}
		}
	}
}

func TestNoBackendSwitchesProtocolsOverHTTP2(t *testing.T) {
	g := start(t, Options{}, toH2, statusBackend(t, "101"))
	want(t, "over HTTP/1", headsOverHTTP1(g), "502")
	want(t, "over HTTP/2", headsOverHTTP2(g), "502")
}

// slowClient takes no informational response before its deadline.
type slowClient struct {
	*httptest.ResponseRecorder

	late  chan time.Time // the deadlines that were set
	heads []int
}

// SetWriteDeadline is for http.ResponseController.
func (c *slowClient) SetWriteDeadline(at time.Time) error {
	c.late <- at
	return nil
}

func (c *slowClient) WriteHeader(status int) {
	c.heads = append(c.heads, status)
	if status < 200 {
		<-c.late
		return
	}
	c.ResponseRecorder.WriteHeader(status)
}

func TestAClientMustTakeHintsInTime(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	})
	for _, major := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", major), func(t *testing.T) {
			g := start(t, Options{ClientTimeout: 20 * time.Millisecond}, toApp, backend)
			client := &slowClient{ResponseRecorder: httptest.NewRecorder(), late: make(chan time.Time, 10)}
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.ProtoMajor, request.ProtoMinor = major, 2-major
			g.handler.ServeHTTP(client, request)
			if diff := cmp.Diff([]int{103, 200}, client.heads); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if major == 1 { // the wait for the final response is not the client's
				want(t, "the deadline is lifted", (<-client.late).IsZero(), true)
			}
		})
	}
}
