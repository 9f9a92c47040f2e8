package peers

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

const (
	// dialTime bounds opening a connection, with its handshake.
	dialTime = time.Second
	// beatTime is how often something is sent. silenceTime is after how much silence a connection ends.
	beatTime    = 250 * time.Millisecond
	silenceTime = time.Second
	// queued bounds the asks that wait to be sent to one replica.
	queued = 4096
)

// link is a connection to another replica. This side asks.
type link struct {
	mesh   *Mesh
	conn   net.Conn
	number uint64
	peer   instance
	asks   chan quota.Ask
}

// Ask sends an ask.
func (l *link) Ask(ask quota.Ask) bool {
	select {
	case l.asks <- ask:
		return true
	default:
		return false
	}
}

// open opens a connection, and learns who is at the other end.
func (m *Mesh) open(ctx context.Context, address string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	dialer := tls.Dialer{Config: m.options.Identity.config()}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err // the caller only tries again
	}
	l := &link{mesh: m, conn: conn, number: m.connections.Add(1), asks: make(chan quota.Ask, queued)}
	if l.peer, err = m.greet(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// greet says who this is, and reads who the other one is.
func (m *Mesh) greet(conn net.Conn) (other instance, err error) {
	_ = conn.SetDeadline(m.options.Clock.Now().Add(dialTime))
	if _, err = conn.Write(m.instance[:]); err == nil {
		_, err = io.ReadFull(conn, other[:])
	}
	_ = conn.SetDeadline(time.Time{})
	return other, err // the caller only closes
}

// run exchanges asks and answers until the connection or the context ends.
func (l *link) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		l.write(ctx)
	}()
	l.read()
	cancel()
	_ = l.conn.Close()
	<-written
}

// read takes answers.
func (l *link) read() {
	defer l.mesh.options.Panics.Catch("take answers of another replica")
	buffer, from := make([]byte, maxFrame), bufio.NewReader(l.conn)
	for {
		_ = l.conn.SetReadDeadline(l.mesh.options.Clock.Now().Add(silenceTime))
		records, err := readFrame(from, buffer, kindAnswers, answerSize)
		if err != nil {
			return
		}
		for ; len(records) > 0; records = records[answerSize:] {
			l.mesh.options.Quota.Answered(l.number, readAnswer(records))
		}
	}
}

// write sends asks. Those that wait go in one frame.
func (l *link) write(ctx context.Context) {
	defer l.mesh.options.Panics.Catch("ask another replica")
	beat := l.mesh.options.Clock.NewTicker(beatTime)
	defer beat.Stop()
	frame := make([]byte, 0, maxFrame)
	for {
		records := 0
		frame = appendHead(frame[:0], kindAsks, 0)
		select {
		case <-ctx.Done():
			return
		case <-beat.C():
		case ask := <-l.asks:
			frame, records = appendAsk(frame, &ask), 1
		}
		for more := true; more && records < maxRecords; {
			select {
			case ask := <-l.asks:
				frame = appendAsk(frame, &ask)
				records++
			default:
				more = false
			}
		}
		appendHead(frame[:0], kindAsks, records)
		_ = l.conn.SetWriteDeadline(l.mesh.options.Clock.Now().Add(silenceTime))
		if _, err := l.conn.Write(frame); err != nil {
			return
		}
		l.mesh.frames.Add(1)
	}
}
