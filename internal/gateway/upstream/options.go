package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"k8s.io/utils/clock"
)

// Options configures a Service. The zero value of a field means its default.
type Options struct {
	// TLS is the configuration of TLS to the endpoints. Default: no TLS.
	TLS *tls.Config
	// Dial opens a connection. Default: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Clock is where idle timeouts and ejections take the time from. Default: the real one.
	Clock clock.PassiveClock

	// DialTimeout bounds opening a connection, TLS included. Default 5 s.
	DialTimeout time.Duration
	// SendTimeout bounds each write of a piece of a request. Default 60 s.
	SendTimeout time.Duration
	// ContinueTimeout bounds the wait for 100 Continue, after which the body is sent
	// anyway. Default 1 s.
	ContinueTimeout time.Duration
	// IdleTimeout is how long a connection is kept without a request. Default 60 s.
	IdleTimeout time.Duration
	// MaxIdle is how many connections without a request are kept per endpoint. Default 128.
	MaxIdle int
	// MaxHeaderBytes bounds the head of a response, and its trailers. Default 64 KiB.
	MaxHeaderBytes int

	// Ejection says when an endpoint that fails is left out.
	Ejection Ejection
	// Checked is called with the result of each check of an endpoint. Optional.
	Checked func(CheckResult)
	// Backoff says how long is waited before a request is sent again.
	Backoff Backoff
}

// Backoff says how long is waited before a request is sent again: from half of a time up
// to all of it.
type Backoff struct {
	// Base is that time before the first retry; it doubles with each. Default 25 ms.
	Base time.Duration
	// Max bounds it. Default 250 ms.
	Max time.Duration
}

// Ejection says when an endpoint that fails is left out for a while.
type Ejection struct {
	// Failures is how many failures in a row make the gateway ask the endpoint itself, whose
	// failure then ejects. Default 5.
	Failures int
	// Base is how long the first ejection lasts; each further one without a success in
	// between lasts twice as long as the one before. Default 10 s.
	Base time.Duration
	// Max bounds the time of an ejection. Default 5 min.
	Max time.Duration
	// MaxPercent is how many of a Service's endpoints may be ejected at a time. One of
	// two or more always may, the last one never. Default 50.
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
	setDefault(&o.SendTimeout, time.Minute)
	setDefault(&o.ContinueTimeout, time.Second)
	setDefault(&o.IdleTimeout, time.Minute)
	setDefault(&o.MaxIdle, 128)
	setDefault(&o.MaxHeaderBytes, 64<<10)
	setDefault(&o.Ejection.Failures, 5)
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
