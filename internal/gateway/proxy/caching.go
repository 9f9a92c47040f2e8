package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/cache"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// caching is what the cache knows of a request. It has the fields that are sent, without conditions of the cache.
type caching struct {
	request cache.Request
	result  cache.Result
	found   *cache.Found
	since   uint64 // what Record needs
	asked   time.Time
}

// lookUp looks for a response in the cache. It returns false if the backend must be asked.
func (e *exchange) lookUp(backend *table.Backend) bool {
	e.caching = &caching{request: e.cacheRequest(backend)}
	store, c := e.handler.cache, e.caching
	c.since = store.Since(&c.request)
	c.result, c.found = store.Find((*cache.Policy)(e.route.Cache), &c.request)
	e.handler.metrics.cache.answered(e.route, c.result)
	switch c.result {
	case cache.Hit:
		e.give(c.found)
		return true
	case cache.Absent:
		e.refuse(http.StatusGatewayTimeout, "cache") // RFC 9111, 5.2.1.7
		return true
	case cache.Stale:
		e.request.Fields = append(slices.Clip(e.request.Fields), c.found.Conditions()...)
	}
	c.asked = e.handler.options.Clock.Now()
	return false
}

// cacheRequest is the request as the cache sees it.
func (e *exchange) cacheRequest(backend *table.Backend) cache.Request {
	return cache.Request{
		Service: backend.Namespace + "/" + backend.Service + ":" + strconv.Itoa(int(backend.Port)),
		Method:  e.r.Method, Host: e.request.Host, Target: e.request.Target, Fields: e.request.Fields,
		Plain:  e.request.Body == nil && e.request.Upgrade == "",
		Proven: e.route.Auth != nil || e.isProven(),
	}
}

// isProven reports whether the client has proven with a certificate who it is.
func (e *exchange) isProven() bool {
	conn := clientConnOf(e.r)
	return conn != nil && conn.identity.Load() != nil
}

// give answers with a response of the cache.
func (e *exchange) give(found *cache.Found) {
	e.isGiven = true
	body, fields := found.Body, found.Fields
	if found.Status != http.StatusNotModified && found.Status != http.StatusNoContent && !slices.ContainsFunc(fields, isContentLength) {
		fields = append(fields, upstream.Field{Name: "Content-Length", Value: strconv.Itoa(len(body))})
	}
	if e.r.Method == http.MethodHead {
		body = nil
	}
	response := upstream.Stored(found.Status, fields, body)
	defer response.Close()
	e.respond(response)
}

func isContentLength(field upstream.Field) bool {
	return strings.EqualFold(field.Name, "Content-Length")
}

// confirm answers a request whose stored response the backend was asked to confirm. It returns false if there is nothing to give:
// the backend has to be asked without conditions.
func (e *exchange) confirm(response *upstream.Response) (answered bool) {
	c := e.caching
	found := e.handler.cache.Confirm((*cache.Policy)(e.route.Cache), &c.request, c.found, response.Fields, c.asked)
	if found == nil {
		c.result, e.request.Fields = cache.Miss, c.request.Fields
		return false
	}
	e.give(found)
	return true
}

// isConfirmation reports whether a response answers the conditions of the cache.
func (e *exchange) isConfirmation(response *upstream.Response) bool {
	return e.caching != nil && e.caching.result == cache.Stale && response.Status == http.StatusNotModified
}

// tellCache says why the backend was asked (RFC 9211). What the cache gives says so itself.
func (e *exchange) tellCache(header http.Header) {
	c := e.caching
	if c == nil || e.isGiven {
		return
	}
	header["Cache-Status"] = append(header["Cache-Status"], "slipway; fwd="+c.result.String())
}

// record begins to keep a response of a backend, if it may be kept.
func (e *exchange) record(response *upstream.Response) {
	c := e.caching
	if c == nil || e.isGiven || response.Stream || response.UntilClose {
		return
	}
	if c.result == cache.Miss || c.result == cache.Stale {
		e.recording = e.handler.cache.Record((*cache.Policy)(e.route.Cache), &c.request, c.since, response.Status, response.Fields, response.ContentLength, c.asked)
	}
}

// forgetChanged makes the cache forget what a request may have changed.
func (e *exchange) forgetChanged(backend *table.Backend, status int) {
	if e.state.caches && status < http.StatusBadRequest {
		request := e.cacheRequest(backend)
		e.handler.cache.Changed(&request)
	}
}

// keepsResponses reports whether any route of a table has a cache.
func keepsResponses(routes []*table.Route) bool {
	return slices.ContainsFunc(routes, func(route *table.Route) bool { return route.Cache != nil })
}
