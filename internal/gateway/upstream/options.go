package upstream

import (
	"context"
	"net"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// Options configures a Service. The zero value of a field means its default.
type Options struct {
	// Dial opens a connection. Default: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Clock gives the time for idle timeouts and ejections. Default: the real clock.
	Clock clock.PassiveClock

	// DialTimeout bounds opening a connection, including TLS. Default 5 s.
	DialTimeout time.Duration
	// DialPatience is how long a request waits for a new connection before it goes on to another endpoint, if there is one.
	// Default 250 ms.
	DialPatience time.Duration
	// SendTimeout bounds each write of a part of a request. Default 60 s.
	SendTimeout time.Duration
	// ContinueTimeout bounds the wait for 100 Continue. After it, the body is sent anyway.
	// Default 1 s.
	ContinueTimeout time.Duration
	// IdleTimeout is how long an idle connection is kept. Default 60 s.
	IdleTimeout time.Duration
	// MaxIdle is how many idle connections are kept per endpoint. Default 128.
	MaxIdle int
	// MaxHeaderBytes bounds the head and the trailers of a response. Default 64 KiB.
	MaxHeaderBytes int

	// Ejection defines when a failing endpoint is ejected.
	Ejection Ejection
	// Checked is called with the result of each health check. Optional.
	Checked func(CheckResult)
	// Backoff defines how long to wait before a retry.
	Backoff Backoff
	// Panics is told of a panic of what works for one request or one endpoint. Nil: it ends the process.
	Panics panics.Reporter
}

// Backoff defines how long to wait before a retry. The wait is a random part between half
// of the time and the whole time.
type Backoff struct {
	// Base is the time before the first retry. It doubles with each retry. Default 25 ms.
	Base time.Duration
	// Max bounds the time. Default 250 ms.
	Max time.Duration
}

// Ejection defines when a failing endpoint gets no requests for some time.
type Ejection struct {
	// Failures is how many failures in a row make the gateway send its own request to the
	// endpoint. If that fails too, the endpoint is ejected. Default 5.
	Failures int
	// Unreachable is the same for failures to connect, which no client can cause. Default 2.
	Unreachable int
	// Base is how long the first ejection lasts. Each further one without a success in
	// between lasts twice as long as the last. Default 10 s.
	Base time.Duration
	// Max bounds how long an ejection lasts. Default 5 min.
	Max time.Duration
	// MaxPercent is the percentage of a Service's endpoints that may be ejected at the same
	// time. One of two or more may always be ejected, the last one never. Default 50.
	MaxPercent int
}

func (o Options) withDefaults() Options {
	if o.Dial == nil {
		o.Dial = dialTCP
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	setDefault(&o.DialTimeout, 5*time.Second)
	setDefault(&o.DialPatience, 250*time.Millisecond)
	setDefault(&o.SendTimeout, time.Minute)
	setDefault(&o.ContinueTimeout, time.Second)
	setDefault(&o.IdleTimeout, time.Minute)
	setDefault(&o.MaxIdle, 128)
	setDefault(&o.MaxHeaderBytes, 64<<10)
	setDefault(&o.Ejection.Failures, 5)
	setDefault(&o.Ejection.Unreachable, 2)
	setDefault(&o.Ejection.Base, 10*time.Second)
	setDefault(&o.Ejection.Max, 5*time.Minute)
	setDefault(&o.Ejection.MaxPercent, 50)
	setDefault(&o.Backoff.Base, 25*time.Millisecond)
	setDefault(&o.Backoff.Max, 250*time.Millisecond)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", address)
}
