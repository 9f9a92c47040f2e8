package peers

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

// maxServed bounds the connections of other replicas. Only who has the secret gets that far.
const maxServed = 2 * maxMembers

// accept serves connections of other replicas until the listener is closed.
func (m *Mesh) accept(ctx context.Context) {
	for {
		conn, err := m.options.Listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			select { // no file descriptors, perhaps
			case <-ctx.Done():
				return
			case <-m.options.Clock.After(firstPause):
				continue
			}
		}
		m.wait.Go(func() { m.serve(ctx, conn) })
	}
}

// serve serves one connection until it or the context ends.
func (m *Mesh) serve(ctx context.Context, raw net.Conn) {
	defer m.options.Panics.Catch("answer another replica")
	defer func() { _ = raw.Close() }()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	if !m.pending.enter(raw) {
		return
	}
	conn := tls.Server(raw, m.options.Identity.config())
	_ = conn.SetDeadline(m.options.Clock.Now().Add(dialTime))
	err := conn.HandshakeContext(ctx)
	m.pending.leave(raw)
	if err != nil {
		m.rejected.Add(1)
		return
	}
	peer, err := m.greet(conn)
	if err != nil || !m.came(peer) {
		return
	}
	defer m.left(peer)
	m.answer(conn)
}

// answer answers asks.
func (m *Mesh) answer(conn net.Conn) {
	buffer, from := make([]byte, maxFrame), bufio.NewReader(conn)
	reply := make([]byte, 0, maxFrame)
	for {
		_ = conn.SetDeadline(m.options.Clock.Now().Add(silenceTime))
		records, err := readFrame(from, buffer, kindAsks, askBytes)
		if err != nil {
			return
		}
		answers := 0
		reply = appendHead(reply[:0], kindAnswers, 0)
		for ; len(records) > 0; records = records[askBytes:] {
			if answer, wanted := m.options.Quota.Answer(readAsk(records)); wanted {
				reply = appendAnswer(reply, &answer)
				answers++
			}
		}
		appendHead(reply[:0], kindAnswers, answers)
		if _, err := conn.Write(reply); err != nil {
			return
		}
		m.frames.Add(1)
	}
}

var _ quota.Peer = (*link)(nil)
