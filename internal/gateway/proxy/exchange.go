package proxy

import (
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// statusClientGone is the logged status when the client left before its answer.
const statusClientGone = 499

// maxVia is how often a request may pass a gateway of our name. More than that is a loop.
const maxVia = 8

// exchange is the state of one request. Exchanges are pooled and reused for other requests.
type exchange struct {
	handler *Handler
	state   *state
	w       http.ResponseWriter
	r       *http.Request
	start   time.Time

	lookup table.Request
	path   table.Path
	route  *table.Route
	steps  *steps                 // of the route; while there is none, those that hold everywhere
	chosen *table.WeightedBackend // nil until one is chosen
	wish   upstream.Affinity      // which of its endpoints should get the request
	query  string                 // the query for the backend
	// nominated are the fields that Connection names, beyond those that are never
	// forwarded.
	nominated []string
	request   upstream.Request
	fields    []upstream.Field // of request
	span      trace.Span       // nil if the request is not traced

	client exchangeClient
	body   exchangeBody
	answer exchangeAnswer
	facts  exchangeFacts
	slots  []interface{ reset() } // what features have noted, each for itself
}

// exchangeClient is who sends a request.
type exchangeClient struct {
	peer string // the address of the peer
	text string // the address of the client, as far as it can be trusted
	// origin is the address of the client. It is the zero address where a trusted proxy does not say it.
	origin netip.Addr
	// address is what counts as the client in limits. shareOf is the client whose share of
	// a bound is used. It is the zero Addr if a trusted proxy names no client.
	address, shareOf netip.Addr

	counted bool // it is counted as in flight
	trusted bool // the peer is a trusted proxy
}

// exchangeBody is the body of a request.
type exchangeBody struct {
	http1 *clientBody // of an HTTP/1 request; nil if there is none
	http2 *streamBody // of an HTTP/2 request to a backend
	// judged is the whole body, if isJudged: what a Service was shown.
	judged   whole.Bytes
	isJudged bool
}

// exchangeAnswer is what the client gets.
type exchangeAnswer struct {
	taking   *watch                                    // bounds the calls that write a response to an HTTP/2 client; reused
	informed func(status int, fields []upstream.Field) // the method inform; kept to avoid an allocation

	heads    sync.Mutex // held while a response head is sent
	begun    bool       // the final response has begun
	aborted  bool
	status   int
	sent     int64  // bytes of the response's body
	endpoint string // that has answered
	failure  string
	tunneled net.Conn // the client's connection after a protocol upgrade
}

// exchangeFacts are what features have found out about a request.
type exchangeFacts struct {
	// These are of auth. proven: the client had to prove who it is, and identity is its name. add are fields for the backend. hide are
	// those that it must not get from the client, and judged those that a Service was asked about, folded. cookies are those of a
	// session, for the answer.
	proven       bool
	identity     string
	add          []upstream.Field
	hide, judged []string
	cookies      []string

	planned     bool   // by maintenance: the answer is no error
	encoded     bool   // by compression: the body of the response is not as the backend has sent it
	cacheResult string // by the cache, for the access log; empty if the route has none
}

// begin takes a request. The exchange is as end has left it.
func (e *exchange) begin(h *Handler, w http.ResponseWriter, r *http.Request) {
	e.handler, e.state, e.steps, e.w, e.r = h, h.current.Load(), &h.everywhere, w, r
	e.start, e.query = h.options.Clock.Now(), r.URL.RawQuery
	e.takeBody()
}

// end counts and logs the exchange, and returns it to the pool.
func (e *exchange) end() {
	e.report()
	clear(e.fields)
	clear(e.facts.add)
	for _, slot := range e.slots {
		slot.reset()
	}
	*e = exchange{
		fields: e.fields[:0], slots: e.slots,
		answer: exchangeAnswer{informed: e.answer.informed, taking: e.answer.taking}, facts: exchangeFacts{add: e.facts.add[:0]},
	}
	exchanges.Put(e)
}

// report counts and logs the request.
func (e *exchange) report() {
	now := e.handler.options.Clock.Now()
	_, path, _ := splitTarget(e.r.RequestURI)
	line := telemetry.Line{
		Start: e.start, Duration: now.Sub(e.start), Method: e.r.Method, Host: e.r.Host, Path: path, Protocol: e.r.Proto,
		Status: e.answer.status, Sent: e.answer.sent, Client: e.client.text, Identity: e.facts.identity, Agent: e.r.Header.Get("User-Agent"),
		Endpoint: e.answer.endpoint, Cache: e.facts.cacheResult, Failure: e.answer.failure,
	}
	if e.route != nil {
		line.Route = e.route.Name
	}
	percent := uint32(100)
	if e.state != nil {
		e.metrics().Observe(line.Status, e.facts.planned, line.Duration)
		percent = e.state.LogPercent
	}
	e.handler.log.Write(&line, percent)
	if e.span != nil {
		telemetry.EndSpan(e.span, &line, now)
	}
}

// metrics are those of the route.
func (e *exchange) metrics() *telemetry.Route {
	if e.state == nil || e.route == nil {
		return e.handler.metrics.NoRoute()
	}
	return e.state.metrics[e.route.Place]
}

// serve answers the request.
func (e *exchange) serve() {
	if tracer := e.handler.options.Tracer; tracer != nil {
		e.span = telemetry.StartSpan(e.r.Context(), tracer, e.r.Header, e.start)
	}
	e.findClient()
	if e.enter() && e.findRoute() {
		e.follow()
	}
}

// follow does what the route says.
func (e *exchange) follow() {
	returned := false
	defer func() { finish(e, e.steps.end, returned) }()
	e.answerAdmitted()
	returned = true
}

// finish runs end steps. A panic in one keeps no other from running: each gives something back.
func finish(e *exchange, ends []func(*exchange, bool), returned bool) {
	if len(ends) == 0 {
		return
	}
	defer finish(e, ends[1:], returned)
	ends[0](e, returned)
}

func (e *exchange) answerAdmitted() {
	for _, admit := range e.steps.admit {
		if !admit(e) {
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
func (e *exchange) findRoute() bool {
	if e.state == nil {
		return e.refuse(http.StatusServiceUnavailable, "no_table")
	}
	if !e.admitConnection() {
		return false
	}
	if e.r.Method == http.MethodConnect {
		return e.refuse(http.StatusNotImplemented, "connect")
	}
	if isMisspelt(e.r.Method) {
		return e.refuse(http.StatusBadRequest, "method")
	}
	if len(e.r.Header) > maxNames || !e.readConnection() {
		return e.refuse(http.StatusRequestHeaderFieldsTooLarge, "fields")
	}
	e.identify()
	if !e.findHost() || !e.mayGoOn() {
		return false
	}
	path, err := e.parsePath()
	if err != nil || strings.IndexByte(e.query, '#') >= 0 || (e.r.ProtoMajor == 2 && !wellFormed(e.r)) {
		return e.refuse(http.StatusBadRequest, "path")
	}
	if via := e.r.Header["Via"]; via != nil && strings.Count(strings.Join(via, ","), e.handler.options.Via) > maxVia {
		return e.refuse(http.StatusLoopDetected, "loop")
	}
	e.path = path
	e.lookup = table.Request{
		Method: e.r.Method, Host: e.lookup.Host, Path: path.Match, RawQuery: e.r.URL.RawQuery, Header: e.r.Header,
	}
	if e.state.Table.NamesPorts() {
		e.lookup.Port, e.lookup.Secure = portOf(e.r), e.r.TLS != nil
	}
	route := e.state.Table.Match(&e.lookup)
	if e.lookup.TookTooMuch() {
		return e.refuse(http.StatusRequestHeaderFieldsTooLarge, "match_work")
	}
	if route == nil {
		return e.refuse(http.StatusNotFound, "no_route")
	}
	if !e.state.Table.ReadAlike(&e.lookup, path, route) {
		return e.refuse(http.StatusBadRequest, "path")
	}
	e.route, e.steps = route, e.state.steps[route.Place]
	if route.Unavailable != nil {
		return e.refuse(http.StatusInternalServerError, failureRoute)
	}
	return true
}

// These are failures of a route.
const (
	failureNoBackend = "no_backend"
	failureRoute     = "route_unavailable"
)

// refuse answers with a status and its text, in gRPC with a status of its own, and returns false.
func (e *exchange) refuse(status int, failure string) bool {
	e.answer.failure = failure
	if e.speaksGRPC() {
		e.refuseGRPC(status)
		return false
	}
	e.answerWith(status, "text/plain; charset=utf-8", []byte(http.StatusText(status)+"\n"))
	return false
}

// abandon notes that the client has left, and returns false.
func (e *exchange) abandon() bool {
	e.answer.status, e.answer.failure, e.answer.aborted = statusClientGone, upstream.Canceled.String(), true
	return false
}

// answerWith sends a response of our own.
func (e *exchange) answerWith(status int, contentType string, body []byte) {
	e.beginAnswer()
	if e.body.http1 != nil {
		e.body.http1.drain()
	}
	header := e.w.Header()
	if contentType != "" || len(body) > 0 {
		header["Content-Type"] = []string{contentType}
		header.Set("X-Content-Type-Options", "nosniff")
	}
	if status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified {
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	e.sendHead(status)
	if e.r.Method == http.MethodHead {
		return
	}
	_, _ = e.write(body) // an error means that the client has gone
}

// sendHead sends the head of the response, with the route's changes.
func (e *exchange) sendHead(status int) {
	e.editHead()
	e.writeHead(status)
}

// editHead makes the route's changes.
func (e *exchange) editHead() {
	header := e.w.Header()
	if e.chosen != nil && e.chosen.ResponseHeaders != nil {
		e.chosen.ResponseHeaders.Apply(header)
	}
	if e.route != nil && e.route.ResponseHeaders != nil {
		e.route.ResponseHeaders.Apply(header)
	}
	for _, tell := range e.steps.tell {
		tell(e, header)
	}
}

func (e *exchange) writeHead(status int) {
	// While the gateway drains or stands by, the client should open a new connection for
	// its next request. For HTTP/2, net/http translates this to GOAWAY.
	if e.handler.sendsAway() || e.lastOnConnection(status) {
		e.w.Header()["Connection"] = []string{"close"}
	}
	e.answer.status = status
	e.w.WriteHeader(status)
}

func (e *exchange) redirect() {
	path := e.path.Forward
	if path == wholeServer {
		path = "/"
	}
	location := e.route.Redirect.Location(e.scheme(), e.r.Host, portOf(e.r), path, e.query)
	e.w.Header()["Location"] = []string{location}
	e.answerWith(e.route.Redirect.StatusCode, "", nil)
}

func (e *exchange) answerDirectly() {
	direct := e.route.Direct
	e.answerWith(direct.StatusCode, direct.ContentType, direct.Body)
}

// service returns the backend for the request. If no backend gets it, the result is nil and
// the reason. A backend that was picked and has lost its endpoints is replaced.
func (e *exchange) service() (backend *table.WeightedBackend, service *upstream.Service, lack table.Lack) {
	if e.steps.choose != nil {
		backend, e.wish = e.steps.choose(e)
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
func (e *exchange) readyService() (*table.WeightedBackend, *upstream.Service, table.Lack) {
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
func (e *exchange) refuseShare(lack table.Lack) {
	status, failure := http.StatusServiceUnavailable, upstream.NoEndpoints.String()
	if lack == table.LackBackend {
		status, failure = http.StatusInternalServerError, failureNoBackend
	} else {
		e.metrics().Failed(upstream.NoEndpoints)
	}
	e.refuse(status, failure)
}
