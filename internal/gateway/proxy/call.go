package proxy

import (
	"math/rand/v2"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	authserve "github.com/slipway-dev/slipway/internal/gateway/feature/auth/serve"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// maxVia is how often a request may pass a gateway of our name. More than that is a loop.
const maxVia = 8

// call is a request that is being served: an exchange, and what features do not see of it. Calls are pooled and reused for other
// requests.
type call struct {
	exchange.Exchange

	handler *Handler
	state   *state
	w       http.ResponseWriter
	r       *http.Request

	lookup  table.Request
	path    table.Path
	route   *table.Route
	chosen  *table.WeightedBackend // nil until one is chosen
	wish    upstream.Affinity      // which of its endpoints should get the request
	fields  []upstream.Field       // for the backend
	span    trace.Span             // nil if the request is not traced
	counted bool                   // it is counted as in flight
}

// begin takes a request. The call is as end has left it.
func (e *call) begin(h *Handler, w http.ResponseWriter, r *http.Request) {
	e.handler, e.state, e.w, e.r = h, h.current.Load(), w, r
	steps := &h.everywhere
	if e.state != nil {
		steps = &e.state.everywhere
	}
	e.Begin(&h.process, e, steps, w, r)
}

// end counts and logs the call, and returns it to the pool.
func (e *call) end() {
	e.report()
	clear(e.fields)
	fields := e.fields[:0]
	e.Reset()
	e.handler, e.state, e.w, e.r = nil, nil, nil, nil
	e.lookup, e.path, e.route, e.chosen, e.wish = table.Request{}, table.Path{}, nil, nil, upstream.Affinity{}
	e.fields, e.span, e.counted = fields, nil, false
	calls.Put(e)
}

// report counts and logs the request.
func (e *call) report() {
	now := e.Clock.Now()
	_, path, _ := splitTarget(e.r.RequestURI)
	line := telemetry.Line{
		Start: e.Start, Duration: now.Sub(e.Start), Method: e.r.Method, Host: e.r.Host, Path: path, Protocol: e.r.Proto,
		Status: e.Answer.Status, Sent: e.Answer.Sent, Client: e.Client.Text, Identity: e.Facts.Identity,
		Agent:    e.r.Header.Get("User-Agent"),
		Endpoint: e.Answer.Endpoint, Cache: e.Facts.CacheResult, Failure: e.Answer.Failure,
	}
	if e.route != nil {
		line.Route = e.route.Name
	}
	percent := uint32(100)
	if e.state != nil {
		e.metrics().Observe(line.Status, e.Facts.Planned, line.Duration)
		percent = e.state.LogPercent
	}
	e.handler.log.Write(&line, percent)
	if e.span != nil {
		telemetry.EndSpan(e.span, &line, now)
	}
}

// metrics are those of the route.
func (e *call) metrics() *telemetry.Route {
	if e.state == nil || e.route == nil {
		return e.handler.metrics.NoRoute()
	}
	return e.state.metrics[e.route.Place]
}

// serve answers the request.
func (e *call) serve() {
	if tracer := e.handler.options.Tracer; tracer != nil {
		e.span = telemetry.StartSpan(e.r.Context(), tracer, e.r.Header, e.Start)
	}
	e.findClient()
	if e.enter() && e.findRoute() {
		e.follow()
	}
}

// follow does what the route says.
func (e *call) follow() {
	returned := false
	defer func() { e.Finish(e.Steps.End, returned) }()
	e.answerAdmitted()
	returned = true
}

func (e *call) answerAdmitted() {
	for _, admit := range e.Steps.Admit {
		if !admit(&e.Exchange) {
			return
		}
	}
	switch {
	case e.route.Redirect != nil:
		e.redirect()
	case e.route.Direct != nil:
		e.answerDirectly()
	default:
		e.forward()
	}
}

// findRoute finds the route of the request. If there is none, it answers the request and
// returns false.
func (e *call) findRoute() bool {
	if e.state == nil {
		return e.Refuse(http.StatusServiceUnavailable, "no_table")
	}
	if !e.admitConnection() {
		return false
	}
	if e.r.Method == http.MethodConnect {
		return e.Refuse(http.StatusNotImplemented, "connect")
	}
	if isMisspelt(e.r.Method) {
		return e.Refuse(http.StatusBadRequest, "method")
	}
	if len(e.r.Header) > maxNames || !e.readConnection() {
		return e.Refuse(http.StatusRequestHeaderFieldsTooLarge, "fields")
	}
	e.identify()
	if !e.findHost() || !e.mayGoOn() {
		return false
	}
	path, err := e.parsePath()
	if err != nil || strings.IndexByte(e.Query, '#') >= 0 || (e.r.ProtoMajor == 2 && !wellFormed(e.r)) {
		return e.Refuse(http.StatusBadRequest, "path")
	}
	if via := e.r.Header["Via"]; via != nil && strings.Count(strings.Join(via, ","), e.handler.options.Via) > maxVia {
		return e.Refuse(http.StatusLoopDetected, "loop")
	}
	e.path, e.Path, e.Match = path, path.Forward, path.Match
	e.lookup = table.Request{
		Method: e.r.Method, Host: e.lookup.Host, Path: path.Match, RawQuery: e.r.URL.RawQuery, Header: e.r.Header,
	}
	if e.state.Table.NamesPorts() {
		e.lookup.Port, e.lookup.Secure = portOf(e.r), e.r.TLS != nil
	}
	route := e.state.Table.Match(&e.lookup)
	if e.lookup.TookTooMuch() {
		return e.Refuse(http.StatusRequestHeaderFieldsTooLarge, "match_work")
	}
	if route == nil {
		return e.Refuse(http.StatusNotFound, "no_route")
	}
	if !e.state.Table.ReadAlike(&e.lookup, path, route) {
		return e.Refuse(http.StatusBadRequest, "path")
	}
	e.route, e.Steps = route, e.state.steps[route.Place]
	e.Route, e.Timeouts, e.Edits[1] = route.Name, &route.Timeouts, route.ResponseHeaders
	if route.Unavailable != nil {
		return e.Refuse(http.StatusInternalServerError, exchange.FailureRoute)
	}
	return true
}

func (e *call) redirect() {
	path := e.path.Forward
	if path == wholeServer {
		path = "/"
	}
	location := e.route.Redirect.Location(e.Scheme(), e.r.Host, portOf(e.r), path, e.Query)
	e.w.Header()["Location"] = []string{location}
	e.AnswerWith(e.route.Redirect.StatusCode, "", nil)
}

func (e *call) answerDirectly() {
	direct := e.route.Direct
	e.AnswerWith(direct.StatusCode, direct.ContentType, direct.Body)
}

// service returns the backend for the request. If no backend gets it, the result is nil and
// the reason. A backend that was picked and has lost its endpoints is replaced.
func (e *call) service() (backend *table.WeightedBackend, service *upstream.Service, lack table.Lack) {
	if e.Steps.Choose != nil {
		at, wish := e.Steps.Choose(&e.Exchange)
		if e.wish = wish; at >= 0 {
			backend = &e.route.Backends[at]
		}
	}
	switch {
	case backend != nil:
		return backend, e.state.services[backend.Index], table.LackNothing
	case e.wish.Hashed:
		backend, lack = e.route.PickFor(e.wish.Hash)
	default:
		backend, lack = e.route.Pick(rand.Uint64())
	}
	if backend == nil {
		return nil, nil, lack
	}
	if service = e.state.services[backend.Index]; service.Endpoints() > 0 {
		return backend, service, table.LackNothing
	}
	return e.readyService()
}

// readyService returns a backend of the route that has endpoints now. The request may still
// use an older table, whose endpoints are gone by now.
func (e *call) readyService() (*table.WeightedBackend, *upstream.Service, table.Lack) {
	if e.route.StrictShares {
		return nil, nil, table.LackEndpoints
	}
	for i := range e.route.Backends {
		backend := &e.route.Backends[i]
		service := e.state.services[backend.Index]
		if backend.Weight > 0 && service.Endpoints() > 0 {
			return backend, service, table.LackNothing
		}
	}
	return nil, nil, table.LackEndpoints
}

// refuseShare answers a request that no backend gets.
func (e *call) refuseShare(lack table.Lack) {
	status, failure := http.StatusServiceUnavailable, upstream.NoEndpoints.String()
	if lack == table.LackBackend {
		status, failure = http.StatusInternalServerError, exchange.FailureNoBackend
	} else {
		e.metrics().Failed(upstream.NoEndpoints)
	}
	e.Refuse(status, failure)
}

var _ exchange.Core = (*call)(nil)

// IsProven reports whether the client has proven with a certificate who it is.
func (e *call) IsProven() bool {
	conn := clientConnOf(e.r)
	return conn != nil && conn.identity.Load() != nil
}

// ReadsOneWay reports whether every known server reads the path as the gateway does.
func (e *call) ReadsOneWay() bool { return e.path.ReadsOneWay() }

// Returns reports whether a browser that was sent away comes back to the route with the answer.
func (e *call) Returns() bool { return e.state.Table.Returns(&e.lookup, e.route) }

// Targets calls yield for each backend of the route.
func (e *call) Targets(yield func(backend int, host, target string)) {
	for i := range e.route.Backends {
		backend := &e.route.Backends[i]
		yield(backend.Index, e.hostFor(backend), e.targetFor(backend))
	}
}

// StripCookies removes from fields Cookie what backends and Services must not get.
func (e *call) StripCookies(values []string) []string { return authserve.StripCookies(values) }
