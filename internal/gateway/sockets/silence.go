package sockets

import (
	"net"
	"time"
)

// maxUnanswered is how often in a row the kernel asks a peer in vain: with keepalives each second, or with what it sends again after
// 0.2, 0.4, 0.8 and 1.6 s. So a peer is silent for 3 to 5 s.
const maxUnanswered = 4

// minSilence is for how many milliseconds nothing was acknowledged: a peer that answers, and misses one segment again and again, is
// not silent.
const minSilence = 2500

// AskOften makes the kernel ask a peer that sends nothing each second whether it is there.
func AskOften(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second})
	}
}
