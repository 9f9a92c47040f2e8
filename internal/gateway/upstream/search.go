package upstream

import (
	"context"
	"net"
	"slices"
	"time"
)

// These rules decide how long a request waits for a new connection:
//
//   - While there is another endpoint that is not ejected, it waits Options.DialPatience. Then the connection hangs, and the
//     request goes on to the other endpoint: it was not sent, whatever its method is, so this is no retry.
//   - When it has waited for all of them, it begins again, and waits twice as long. A connection that has come meanwhile is
//     used at once (over HTTP/2: when it is the turn of its endpoint).
//   - In all, it waits Options.DialTimeout, as it does for the only endpoint.
//   - Until a connection that hangs is there or has failed, no other request goes to its endpoint, as long as there is another
//     one. Its failure counts as that of a request.

// search is what a request knows of the endpoints while it looks for a connection.
type search struct {
	wait     time.Duration // for the next connection; 0: Options.DialTimeout
	patience time.Duration // in this round
	end      time.Time     // of the whole search; zero while no connection has hung
	hung     []*endpoint   // whose connections may still come
	refused  []*endpoint   // that could not be reached
	begun    []*dialing    // not over HTTP/2, whose requests share them
	opened   chan struct{} // gets a value when one of begun is there
}

// choose picks the next endpoint: one with a connection that has come, or that of pick. It sets how long to wait for it.
func (s *search) choose(service *Service, pick func() *endpoint) *endpoint {
	e := s.ready()
	if e == nil {
		e = pick()
	}
	if e == nil {
		return nil
	}
	s.wait = 0
	other := service.hasOther(e, s.refused)
	if !other && s.end.IsZero() {
		return e
	}
	if s.patience == 0 {
		s.patience = service.options.DialPatience
	}
	s.wait = s.patience
	if !s.end.IsZero() {
		if left := s.end.Sub(service.options.Clock.Now()); !other || left < s.wait {
			s.wait = max(left, 1)
		}
	}
	return e
}

// ready returns the endpoint of a connection that has come while the request waited for another one.
func (s *search) ready() *endpoint {
	for _, d := range s.begun {
		d.mu.Lock()
		there := d.conn != nil
		d.mu.Unlock()
		if there {
			return d.endpoint
		}
	}
	return nil
}

// hasOther reports whether there is another endpoint that may be reached.
func (s *Service) hasOther(e *endpoint, refused []*endpoint) bool {
	now := s.ejectionTime()
	for _, other := range *s.eligible.Load() {
		if other != e && !other.ejected(now) && !slices.Contains(refused, other) {
			return true
		}
	}
	return false
}

// goesOn reports whether the request looks for a connection elsewhere after a failure.
func (s *search) goesOn(service *Service, e *endpoint, failure *Error) bool {
	if failure == nil {
		return false
	}
	now := service.options.Clock.Now()
	switch {
	case failure.hangs:
		if s.end.IsZero() {
			s.end = now.Add(service.options.DialTimeout - s.wait)
		}
		if !slices.Contains(s.hung, e) {
			s.hung = append(s.hung, e)
		}
	case failure.Kind == Connect, failure.Kind == MaxConnections:
		s.refused = append(s.refused, e)
		s.hung = slices.DeleteFunc(s.hung, func(hung *endpoint) bool { return hung == e })
	default:
		return false
	}
	return len(s.hung) > 0 && now.Before(s.end)
}

// next adds an endpoint to those that were tried. When none is left, it begins the next round.
func (s *search) next(service *Service, tried []*endpoint, e *endpoint) []*endpoint {
	tried = append(tried, e)
	now := service.ejectionTime()
	if slices.ContainsFunc(*service.eligible.Load(), func(e *endpoint) bool { return !e.ejected(now) && !slices.Contains(tried, e) }) {
		return tried
	}
	s.patience *= 2
	return slices.Clone(s.refused)
}

// restart begins a new search, for another attempt to send the request.
func (s *search) restart() {
	s.leave()
	*s = search{refused: s.refused}
}

// leave gives back the connections that were not used.
func (s *search) leave() {
	for _, d := range s.begun {
		d.leave()
	}
	s.begun = nil
}

// dial opens a connection, or goes on to wait for one that has hung before. count counts it in the gate, and keep takes it if
// the request goes elsewhere.
func (s *search) dial(ctx context.Context, e *endpoint, application string, count func(), keep func(net.Conn)) (net.Conn, error) {
	at := slices.IndexFunc(s.begun, func(d *dialing) bool { return d.endpoint == e })
	if at >= 0 && s.begun[at].failed() {
		s.begun = slices.Delete(s.begun, at, at+1)
		at = -1
	}
	if at < 0 {
		at = len(s.begun)
		s.begun = append(s.begun, s.begin(ctx, e, application, count, keep))
	}
	d := s.begun[at]
	conn, err := d.wait(ctx, s.wait, s.opened)
	if conn != nil {
		s.begun = slices.Delete(s.begun, at, at+1)
	}
	return conn, err
}

func (s *search) begin(ctx context.Context, e *endpoint, application string, count func(), keep func(net.Conn)) *dialing {
	if s.opened == nil {
		s.opened = make(chan struct{}, 1)
	}
	count()
	d := &dialing{endpoint: e, count: count, keep: keep, opened: s.opened, done: make(chan struct{}), counted: true}
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go d.run(ctx, application)
	return d
}

func (d *dialing) failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err != nil
}
