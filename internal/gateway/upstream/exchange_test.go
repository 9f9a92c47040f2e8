package upstream

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestResponseEndsWhereItSays(t *testing.T) {
	for name, test := range map[string]struct {
		method   string
		response string
		status   int
		body     string
		trailers []Field
		fresh    bool // the connection must not be reused
		ends     bool // the endpoint closes the connection
	}{
		"length": {response: okResponse, status: 200, body: "ok"},
		"length of nothing": {
			response: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200,
		},
		"chunks": {
			response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3;a=b\r\nyes\r\n0\r\n\r\n",
			status:   200, body: "okyes",
		},
		"chunks with sizes in both cases and leading zeros": {
			response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00a\r\n0123456789\r\nA\r\n0123456789\r\n000\r\n\r\n",
			status:   200, body: "01234567890123456789",
		},
		"chunks and trailers": {
			response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\nContent-Length: 7\r\nTransfer-Encoding: a\r\n\r\n",
			status:   200, body: "ok", trailers: []Field{{"Digest", "x"}},
		},
		"end of the connection": {response: "HTTP/1.1 200 OK\r\n\r\nok", status: 200, body: "ok", fresh: true, ends: true},
		"HTTP/1.0":              {response: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", fresh: true},
		"Connection: close":     {response: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", fresh: true},
		"HEAD with a length":    {method: "HEAD", response: "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", status: 200, fresh: true},
		"HEAD with chunks":      {method: "HEAD", response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", status: 200, fresh: true},
		"HEAD with no content":  {method: "HEAD", response: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200},
		"HEAD with a body":      {method: "HEAD", response: okResponse, status: 200, fresh: true},
		"304":                   {response: "HTTP/1.1 304 Not Modified\r\n\r\n", status: 304},
		"HEAD without a length": {method: "HEAD", response: "HTTP/1.1 200 OK\r\n\r\n", status: 200},
		"204":                   {response: "HTTP/1.1 204 No Content\r\n\r\n", status: 204},
		"204 with a length":     {response: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", status: 204, fresh: true},
		"204 with chunks":       {response: "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 204, fresh: true},
		"304 with a length":     {response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n", status: 304, fresh: true},
		"after 100 that nobody asked for": {
			response: "HTTP/1.1 100 Continue\r\n\r\n" + okResponse, status: 200, body: "ok",
		},
		"after as many early hints as may come": {
			response: strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInformational) + okResponse, status: 200, body: "ok",
		},
		"after early hints": {
			response: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + okResponse, status: 200, body: "ok",
		},
		"more than the response": {response: okResponse + "HTTP/1.1 200 OK\r\n", status: 200, body: "ok", fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				for p.head() != "" {
					p.send(test.response)
					if test.ends {
						return
					}
				}
			})
			s := serving(t, Options{}, b.address())
			req := get()
			if test.method != "" {
				req.Method = test.method
			}
			for range 2 {
				response, err := s.Do(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response)
				if err != nil {
					t.Fatal(err)
				}
				if response.Status != test.status || string(body) != test.body {
					t.Errorf("got %d %q, want %d %q", response.Status, body, test.status, test.body)
				}
				if response.UntilClose != test.ends {
					t.Errorf("its end is that of the connection: %t", response.UntilClose)
				}
				if diff := cmp.Diff(test.trailers, append([]Field(nil), response.Trailers()...)); diff != "" {
					t.Errorf("trailers: -want +got:\n%s", diff)
				}
				response.Close()
			}
			want := int64(1)
			if test.fresh {
				want = 2
			}
			if got := b.accepted.Load(); got != want {
				t.Errorf("two requests took %d connections, want %d", got, want)
			}
		})
	}
}

func TestBodyThatIsCutOrWrongIsAnError(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, response := range map[string]string{
		"less than its length":           "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok",
		"no last chunk":                  chunked + "2\r\nok\r\n",
		"end in a chunk":                 chunked + "9\r\nok",
		"end in a chunk size":            chunked + "9",
		"end before the trailers' end":   chunked + "0\r\n",
		"empty chunk size":               chunked + "\r\nok\r\n0\r\n\r\n",
		"chunk size with a sign":         chunked + "+2\r\nok\r\n0\r\n\r\n",
		"chunk size with a prefix":       chunked + "0x2\r\nok\r\n0\r\n\r\n",
		"chunk size that does not fit":   chunked + "ffffffffffffffff2\r\nok\r\n0\r\n\r\n",
		"chunk size with a space before": chunked + " 2\r\nok\r\n0\r\n\r\n",
		"chunk longer than its size":     chunked + "2\r\nokay\r\n0\r\n\r\n",
		"bare line feed after the size":  chunked + "2\nok\r\n0\r\n\r\n",
		"bare line feed after a chunk":   chunked + "2\r\nok\n0\r\n\r\n",
		"line feed in an extension":      chunked + "2;a\nb\r\nok\r\n0\r\n\r\n",
		"control byte in an extension":   chunked + "2;a=\x01\r\nok\r\n0\r\n\r\n",
		"endless extension":              chunked + "2;" + strings.Repeat("a", 2*maxChunkLine) + "\r\nok\r\n0\r\n\r\n",
		"folded trailer":                 chunked + "0\r\nA: b\r\n c\r\n\r\n",
		"trailer without a colon":        chunked + "0\r\nA\r\n\r\n",
		"endless trailers":               chunked + "0\r\n" + strings.Repeat("A: b\r\n", 20<<10) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				p.head()
				p.send(response)
			})
			answer, err := serving(t, Options{}, b.address()).Do(t.Context(), get())
			if err != nil {
				t.Fatal(err)
			}
			if body, err := readAll(answer); err == nil {
				t.Errorf("the body %q passes as whole", body)
			}
			eventually(t, "the connection is closed", func() bool { return b.open.Load() == 0 })
		})
	}
}

func TestHeadThatMustNotBePassedOn(t *testing.T) {
	for name, response := range map[string]string{
		"not HTTP":                         "220 mail.example.com ESMTP\r\n\r\n",
		"two lengths":                      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
		"length and chunks":                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"switching without being asked":    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
		"endless informational responses":  strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInformational+1),
		"head larger than anybody accepts": "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 65<<10) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				p.head()
				p.send(response)
				p.untilClosed()
			})
			_, err := serving(t, Options{}, b.address()).Do(t.Context(), get())
			wantKind(t, err, Malformed)
			eventually(t, "the connection is closed", func() bool { return b.open.Load() == 0 })
		})
	}
}

func TestInformationalResponsesArePassedOn(t *testing.T) {
	b := answering(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 3\r\n\r\n"+okResponse)
	var got []Field
	req := get()
	req.Informational = func(status int, fields []Field) {
		if status != 103 {
			t.Errorf("got %d", status)
		}
		got = append(got, fields...)
	}
	if status, body := fetch(t, serving(t, Options{}, b.address()), req); status != 200 || body != "ok" {
		t.Errorf("got %d %q", status, body)
	}
	if diff := cmp.Diff([]Field{{"Link", "</a>"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSilenceEndsInTime(t *testing.T) {
	for name, test := range map[string]struct {
		adjust func(*Request)
		before string
	}{
		"no head":     {adjust: func(r *Request) { r.HeaderTimeout = 20 * time.Millisecond }},
		"half a head": {adjust: func(r *Request) { r.HeaderTimeout = 20 * time.Millisecond }, before: "HTTP/1.1 200 OK\r\n"},
		"deadline":    {adjust: func(r *Request) { r.Deadline = time.Now().Add(20 * time.Millisecond) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				p.head()
				p.send(test.before)
				p.untilClosed()
			})
			req := get()
			test.adjust(req)
			_, err := serving(t, Options{}, b.address()).Do(t.Context(), req)
			wantKind(t, err, Timeout)
		})
	}
}

func TestDeadlineHoldsForTheBodyAndHeaderTimeoutDoesNot(t *testing.T) {
	for name, test := range map[string]struct {
		adjust func(*Request)
		cut    bool
	}{
		"a slow body after the header timeout": {adjust: func(r *Request) { r.HeaderTimeout = 30 * time.Millisecond }},
		"a slow body after its deadline":       {adjust: func(r *Request) { r.Deadline = time.Now().Add(30 * time.Millisecond) }, cut: true},
		"a slow body after the attempt":        {adjust: func(r *Request) { r.AttemptTimeout = 30 * time.Millisecond }, cut: true},
		"a slow body within the attempt":       {adjust: func(r *Request) { r.AttemptTimeout = 30 * time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				p.head()
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok")
				<-time.After(90 * time.Millisecond)
				p.send("ok")
				p.untilClosed()
			})
			req := get()
			test.adjust(req)
			response, err := serving(t, Options{}, b.address()).Do(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			_, err = readAll(response)
			if (err != nil) != test.cut {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestWhoeverGivesUpIsNotServedAnyMore(t *testing.T) {
	asked := make(chan struct{}, 2)
	b := listen(t, func(p *peer, number int) {
		p.head()
		if number == 2 {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok")
		}
		asked <- struct{}{}
		p.untilClosed()
	})
	s := serving(t, Options{}, b.address())

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := s.Do(ctx, get())
	wantKind(t, err, Canceled)

	ctx, cancel = context.WithCancel(t.Context())
	response, err := s.Do(ctx, get())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := readAll(response); err == nil {
		t.Error("the rest of the body came from somewhere")
	}
	eventually(t, "both connections are closed", func() bool { return b.open.Load() == 0 })
	if got := s.Ejected(); len(got) != 0 {
		t.Errorf("the endpoint pays for it: %v", got)
	}
}

func TestTunnelAfterAnUpgrade(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		head := p.head()
		if !strings.Contains(head, "Connection: Upgrade\r\nUpgrade: websocket\r\n") {
			t.Errorf("the upgrade was not asked for:\n%s", head)
		}
		p.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello ")
		_, _ = io.Copy(p, p.in)
	})
	s := serving(t, Options{}, b.address())
	req := get()
	req.HeaderTimeout = 50 * time.Millisecond
	req.Upgrade = "websocket"
	response, err := s.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Close()
	if response.Status != 101 || response.Upgrade != "websocket" {
		t.Fatalf("got %d %q", response.Status, response.Upgrade)
	}
	if diff := cmp.Diff([]Field{{"Sec-WebSocket-Accept", "x"}}, response.Fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	<-time.After(60 * time.Millisecond) // a tunnel stays open longer than the wait for a head
	tunnel := response.Tunnel()
	_, _ = io.WriteString(tunnel, "world")
	if err := tunnel.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(tunnel)
	if err != nil || string(text) != "hello world" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestUpgradeThatIsRefusedIsAResponse(t *testing.T) {
	b := answering(t, okResponse)
	req := get()
	req.Upgrade = "websocket"
	if status, body := fetch(t, serving(t, Options{}, b.address()), req); status != 200 || body != "ok" {
		t.Errorf("got %d %q", status, body)
	}
}

func TestBufferedTellsWhenToFlush(t *testing.T) {
	more := make(chan struct{})
	b := listen(t, func(p *peer, _ int) {
		p.head()
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n")
		<-more
		p.send("0\r\n\r\n")
		p.untilClosed()
	})
	response, err := serving(t, Options{}, b.address()).Do(t.Context(), get())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Close()
	piece := make([]byte, 100)
	n, err := response.Read(piece)
	if string(piece[:n]) != "one" || err != nil {
		t.Fatalf("got %q, %v", piece[:n], err)
	}
	n, err = response.Read(piece)
	if string(piece[:n]) != "two" || err != nil {
		t.Fatalf("got %q, %v", piece[:n], err)
	}
	if response.Buffered() {
		t.Error("nothing is buffered, and the next read waits")
	}
	close(more)
	if n, err := response.Read(piece); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d, %v", n, err)
	}
	if !response.Buffered() {
		t.Error("at its end a body does not wait")
	}
}
