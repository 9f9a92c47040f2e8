package sockets

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// What a peer does not take waits in the kernel up to the bound, over connections that a listener has accepted and over others.
// Before it stops, the peer takes much, so that the kernel would keep much.
func TestLittleWaitsForAPeerThatTakesNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	listener = Listen(listener)
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	BoundUnsent(dialed)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for name, pair := range map[string][2]net.Conn{"accepted": {accepted, dialed}, "dialed": {dialed, accepted}} {
		sender, taker := pair[0], pair[1]
		const taken, window = 64 << 20, 64 << 10
		_ = taker.(*net.TCPConn).SetReadBuffer(window)
		go func() {
			piece := make([]byte, 64<<10)
			for left := taken; left > 0; {
				n, err := taker.Read(piece)
				if err != nil {
					return
				}
				left -= n
			}
		}()
		piece, sent := make([]byte, 16<<10), 0
		for {
			_ = sender.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			n, err := sender.Write(piece)
			sent += n
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		// MaxUnsent, twice the window of the taker, and parts of writes. Without a bound there are 4 MiB.
		if waiting := sent - taken; waiting > 768<<10 {
			t.Errorf("%s: %d KiB wait", name, waiting>>10)
		}
	}
}
