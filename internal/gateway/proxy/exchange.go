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
	"github.com/slipway-dev/slipway/internal/gateway/token"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// statusClientGone is what the log says where a client did not wait for its answer.
const statusClientGone = 499

// maxVia is how often a request may come through a gateway of our name: more is a loop.
const maxVia = 8

// exchange is a request and what becomes of it. It is used again for another request
// when it has ended.
type exchange struct {
	handler *Handler
	state   *state
	w       http.ResponseWriter
	r       *http.Request
	start   time.Time

	lookup table.Request
	path   table.Path
	route  *table.Route
	peer   string // the address of the other end of the connection
	client string // the address of the client, as far as it can be believed
	// address is what counts as the client where clients are counted, and shareOf whose share
	// of a bound is taken: nobody's, where a trusted proxy says of no client.
	address, shareOf netip.Addr

	counted  bool   // it is one of those under way
	trusted  bool   // the other end is a trusted proxy
	identity string // who the client proved to be
	claims   token.Claims
	query    string // what is sent to the backend
	// nominated are the fields that Connection names, beyond those that never go on.
	nominated []string

	request  upstream.Request
	taking   *watch                                    // of the calls in which the client of HTTP/2 takes a response; kept
	stream   *streamBody                               // the body of a request of HTTP/2 to a backend
	body     *clientBody                               // of a request of HTTP/1; nil if it has none
	informed func(status int, fields []upstream.Field) // inform; kept, so that it need not be allocated
	fields   []upstream.Field
	endpoint string

	heads    sync.Mutex // held while the head of a response is sent
	answered bool       // the final one has begun
	status   int
	sent     int64 // bytes of the response's body
	failure  string
	aborted  bool
	// tunneled is the client's connection where it speaks another protocol.
	tunneled net.Conn
	span     trace.Span // nil where nothing is traced
}

func (e *exchange) begin(h *Handler, w http.ResponseWriter, r *http.Request) {
	*e = exchange{
		handler: h, state: h.current.Load(), w: w, r: r,
		start: h.options.Clock.Now(), query: r.URL.RawQuery, fields: e.fields[:0], informed: e.informed, taking: e.taking,
	}
	e.takeBody()
}

// end counts and logs the exchange, and lets go of it.
func (e *exchange) end() {
	duration := e.handler.options.Clock.Since(e.start)
	if e.state != nil {
		e.handler.metrics.observe(e.state, e.route, e.status, duration)
	}
	e.handler.log.write(e, duration)
	e.endSpan()
	clear(e.fields)
	*e = exchange{fields: e.fields[:0], informed: e.informed, taking: e.taking}
	exchanges.Put(e)
}

// serve answers the request.
func (e *exchange) serve() {
	e.startSpan()
	e.findClient()
	if !e.enter() || !e.findRoute() {
		return
	}
	if e.route.CORS != nil && e.allowOrigin() {
		return
	}
	if !e.withinLimit(false) || !e.authenticate() || !e.withinLimit(true) {
		return
	}
	switch {
	case e.route.Redirect != nil:
		e.redirect()
	case e.route.Direct != nil:
		e.answerDirectly()
	case e.limitBody():
		e.forward()
	}
}

// findRoute finds the route of the request, or answers why there is none.
func (e *exchange) findRoute() bool {
	if e.state == nil {
		return e.refuse(http.StatusServiceUnavailable, "no_table")
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
	route := e.state.Table.Match(&e.lookup)
	if route == nil {
		return e.refuse(http.StatusNotFound, "no_route")
	}
	if !e.state.Table.ReadAlike(&e.lookup, path, route) {
		return e.refuse(http.StatusBadRequest, "path")
	}
	e.route = route
	if route.Unavailable != nil {
		return e.refuse(http.StatusInternalServerError, "route_unavailable")
	}
	return true
}

// refuse answers with a status and its text, and returns false.
func (e *exchange) refuse(status int, failure string) bool {
	e.failure = failure
	e.answer(status, "text/plain; charset=utf-8", []byte(http.StatusText(status)+"\n"))
	return false
}

// answer sends a response of our own.
func (e *exchange) answer(status int, contentType string, body []byte) {
	e.beginAnswer()
	if e.body != nil {
		e.body.drain()
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
	_ = e.write(body) // the client has gone, then
}

// sendHead sends the head of the response, with what the route changes in it.
func (e *exchange) sendHead(status int) {
	header := e.w.Header()
	if e.route != nil && e.route.ResponseHeaders != nil {
		e.route.ResponseHeaders.Apply(header)
	}
	// Where others serve, the client is to go elsewhere with its next request; for
	// HTTP/2 net/http makes GOAWAY of it.
	if e.handler.sendsAway() || e.lastOnConnection(status) {
		header["Connection"] = []string{"close"}
	}
	e.status = status
	e.w.WriteHeader(status)
}

func (e *exchange) redirect() {
	path := e.path.Forward
	if path == wholeServer {
		path = "/"
	}
	location := e.route.Redirect.Location(e.scheme(), e.r.Host, path, e.query)
	e.w.Header()["Location"] = []string{location}
	e.answer(e.route.Redirect.StatusCode, "", nil)
}

func (e *exchange) answerDirectly() {
	direct := e.route.Direct
	e.answer(direct.StatusCode, direct.ContentType, direct.Body)
}

// limitBody refuses a body that is too large, and one that turns out to be.
func (e *exchange) limitBody() bool {
	limit := e.route.MaxBodyBytes
	if limit <= 0 {
		return true
	}
	if e.r.ContentLength > limit {
		return e.refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	}
	// The reader gets no writer: it would write into the header of the response, while that
	// may be sent already.
	switch {
	case e.r.ContentLength >= 0:
	case e.body != nil:
		e.body.body = http.MaxBytesReader(nil, e.r.Body, limit)
	default:
		e.r.Body = http.MaxBytesReader(nil, e.r.Body, limit)
	}
	return true
}

// withinLimit counts the request, or answers that there were too many. What is counted
// by client comes after its authentication, the rest before, so that guessing counts.
func (e *exchange) withinLimit(authenticated bool) bool {
	limit := e.route.RateLimit
	if limit == nil || (limit.Per == table.PerKey) != authenticated {
		return true
	}
	key := limitKey{route: e.route.Name}
	switch limit.Per {
	case table.PerKey:
		key.who = e.identity
	case table.PerClientAddress:
		key.client = e.address
	}
	wait := e.handler.limiter.take(key, limit)
	if wait == 0 {
		return true
	}
	seconds := int64((wait + time.Second - 1) / time.Second)
	e.w.Header()["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	return e.refuse(http.StatusTooManyRequests, "rate_limit")
}

// service returns where the request goes, nil if nobody is there.
func (e *exchange) service() (*table.Backend, *upstream.Service) {
	backend := e.route.Pick(rand.Uint64())
	if backend == nil {
		return nil, nil
	}
	service := e.state.services[backend.Index]
	if service.Endpoints() == 0 {
		return e.readyService()
	}
	return backend, service
}

// readyService returns a backend of the route that has endpoints now. The table of a request
// may be the last one, whose endpoints have gone meanwhile.
func (e *exchange) readyService() (*table.Backend, *upstream.Service) {
	for _, backend := range e.route.Backends {
		service := e.state.services[backend.Index]
		if backend.Weight > 0 && service.Endpoints() > 0 {
			return backend.Backend, service
		}
	}
	return nil, nil
}
