package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/cache"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// caching is what the cache has to do with a request.
type caching struct {
	*cache.Lookup

	// request has the fields that are sent, without conditions of the cache.
	request cache.Request
	// asks tells that the backend is asked to confirm what is stored, and given that the answer comes from the cache.
	asks, given bool
}

// lookUp looks for a response in the cache. It returns false if the backend must be asked. endCaching must be called after the answer.
func (e *exchange) lookUp() (answered bool) {
	c := &caching{request: e.cacheRequest()}
	c.Lookup = e.handler.cache.Look((*cache.Policy)(e.route.Cache), &c.request)
	e.facts.caching = c
	e.handler.metrics.cache.answered(e.route, c.Result)
	switch c.Result {
	case cache.Hit:
		e.give(c.Found)
		return true
	case cache.Absent:
		e.refuse(http.StatusGatewayTimeout, "cache") // RFC 9111, 5.2.1.7
		return true
	}
	return false
}

// endCaching ends what lookUp has begun.
func (e *exchange) endCaching() {
	if e.facts.caching != nil {
		e.facts.caching.Close()
	}
}

// cacheRequest is the request as the cache sees it.
func (e *exchange) cacheRequest() cache.Request {
	return cache.Request{
		Backend: e.state.cached[e.chosen.Index],
		Method:  e.r.Method, Host: e.request.Host, Target: e.request.Target, Fields: e.withoutPins(e.request.Fields),
		Plain:  e.request.Body == nil && e.request.Upgrade == "",
		Proven: e.facts.proven || e.isProven(),
		Client: e.client.shareOf,
	}
}

// isProven reports whether the client has proven with a certificate who it is.
func (e *exchange) isProven() bool {
	conn := clientConnOf(e.r)
	return conn != nil && conn.identity.Load() != nil
}

// give answers with a response of the cache.
func (e *exchange) give(found *cache.Found) {
	e.facts.caching.given = true
	body, fields, length := found.Body, found.Fields, int64(len(found.Body))
	switch {
	case found.Status == http.StatusNotModified:
		length = -1
	case found.Status != http.StatusNoContent && !slices.ContainsFunc(fields, isContentLength):
		fields = append(fields, upstream.Field{Name: "Content-Length", Value: strconv.FormatInt(length, 10)})
	}
	if e.r.Method == http.MethodHead {
		body = nil
	}
	response := upstream.Stored(found.Status, fields, length, body)
	defer response.Close()
	e.respond(response)
}

func isContentLength(field upstream.Field) bool {
	return strings.EqualFold(field.Name, "Content-Length")
}

// askToConfirm adds the conditions of the cache to the request, if there are any. Copies of the request must not have them.
func (e *exchange) askToConfirm() {
	if e.facts.caching == nil {
		return
	}
	if conditions := e.facts.caching.Conditions(); len(conditions) > 0 {
		e.facts.caching.asks = true
		e.request.Fields = append(slices.Clip(e.request.Fields), conditions...)
	}
}

// confirm takes the response 304 to the conditions of the cache, and closes it. It returns nil if there is nothing to give: the
// backend has to be asked without conditions.
func (e *exchange) confirm(response *upstream.Response) *cache.Found {
	defer response.Close()
	e.facts.caching.asks = false
	return e.facts.caching.Confirm(response.Fields)
}

// isConfirmation reports whether a response answers the conditions of the cache.
func (e *exchange) isConfirmation(response *upstream.Response) bool {
	return e.facts.caching != nil && e.facts.caching.asks && response.Status == http.StatusNotModified
}

// tellCache says why the backend was asked (RFC 9211). What the cache gives says so itself.
func (e *exchange) tellCache(header http.Header) {
	if c := e.facts.caching; c != nil && !c.given {
		header["Cache-Status"] = append(header["Cache-Status"], c.CacheStatus())
	}
}

// record begins to keep a response of a backend, if it may be kept.
func (e *exchange) record(response *upstream.Response) {
	if c := e.facts.caching; c != nil && !c.given && !response.Stream && !response.UntilClose {
		e.facts.recording = c.Record(response.Status, response.Fields, response.ContentLength)
	}
}

// forgetChanged makes the cache forget what a request may have changed, at all backends of the route: they may have it in common.
func (e *exchange) forgetChanged() {
	if !e.state.caches || !cache.Changes(e.r.Method) {
		return
	}
	for i := range e.route.Backends {
		backend := &e.route.Backends[i]
		e.handler.cache.Changed(e.state.cached[backend.Index], e.hostFor(backend), e.targetFor(backend))
	}
}

// mayHaveChanged reports whether a response leaves it open whether something has changed.
func mayHaveChanged(status int) bool {
	return status < http.StatusBadRequest || status >= http.StatusInternalServerError
}

// mayBeSent reports whether a backend may have got the request, or a part of it, although it has not answered.
func mayBeSent(err error) bool {
	switch upstream.KindOf(err) {
	case upstream.NoEndpoints, upstream.Connect, upstream.InvalidRequest, upstream.MaxRequests, upstream.MaxPending, upstream.MaxConnections:
		return false
	}
	failure, ok := errors.AsType[*upstream.Error](err)
	return ok && failure.Endpoint != "" // one was chosen
}

// cachedBackends names the backends of a table for the cache, by Backend.Index. kept are those of routes with a cache. Without any, no
// names are needed.
func cachedBackends(t *table.Table) (all []cache.Backend, kept map[cache.Backend]bool) {
	kept = map[cache.Backend]bool{}
	if !slices.ContainsFunc(t.Routes, func(route *table.Route) bool { return route.Cache != nil }) {
		return nil, kept
	}
	for _, backend := range t.Backends {
		all = append(all, cachedBackend(backend))
	}
	for _, route := range t.Routes {
		for i := range route.Backends {
			if route.Cache != nil {
				kept[all[route.Backends[i].Index]] = true
			}
		}
	}
	return all, kept
}

func cachedBackend(backend *table.Backend) cache.Backend {
	identity := ""
	if backend.TLS != nil {
		identity = backend.TLS.Identity
	}
	return cache.Backend{Namespace: backend.Namespace, Service: backend.Service, Way: fmt.Sprintf("%d %d %s", backend.Port, backend.Protocol, identity)}
}
