package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/cache"
	cachesetting "github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// cached answers requests of a route from the cache, and keeps what backends answer.
type cached struct {
	*cachesetting.Policy

	fields func(e *exchange) []upstream.Field // of the request, as far as they say what the response is
}

// caching is what the cache has to do with a request.
type caching struct {
	lookup *cache.Lookup
	// request has the fields that are sent, without conditions of the cache.
	request cache.Request
	// asks tells that the backend is asked to confirm what is stored, and given that the answer comes from the cache.
	asks, given bool
	// recording keeps the response while it comes. Nil: it is not kept. to is where its body goes.
	recording *cache.Recording
	response  *upstream.Response
	to        bodyWriter
}

// lookUp looks for a response in the cache. If there is none, the backend must be asked.
func (k cached) lookUp(e *exchange) (response *upstream.Response, done bool) {
	c := slotOf[caching](e)
	c.request = cache.Request{
		Backend: e.state.cached[e.chosen.Index],
		Method:  e.r.Method, Host: e.request.Host, Target: e.request.Target, Fields: k.fields(e),
		Plain:  e.request.Body == nil && e.request.Upgrade == "",
		Proven: e.facts.proven || e.isProven(),
		Client: e.client.shareOf,
	}
	c.lookup = e.handler.cache.Look((*cache.Policy)(k.Policy), &c.request)
	e.facts.cacheResult = c.lookup.Result.String()
	e.handler.cacheMetrics.answered(e.route.Name, c.lookup.Result)
	switch c.lookup.Result {
	case cache.Hit:
		return c.give(e, c.lookup.Found), true
	case cache.Absent:
		e.refuse(http.StatusGatewayTimeout, "cache") // RFC 9111, 5.2.1.7
		return nil, true
	}
	return nil, false
}

// end ends what lookUp has begun.
func (cached) end(e *exchange, _ bool) {
	c := slotOf[caching](e)
	defer c.lookup.Close()
	c.recording.Drop()
}

// fieldsOf returns the fields of a request that no affinity has added to.
func fieldsOf(e *exchange) []upstream.Field { return e.request.Fields }

// isProven reports whether the client has proven with a certificate who it is.
func (e *exchange) isProven() bool {
	conn := clientConnOf(e.r)
	return conn != nil && conn.identity.Load() != nil
}

// give makes a response of what the cache has.
func (c *caching) give(e *exchange, found *cache.Found) *upstream.Response {
	c.given = true
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
	return upstream.Stored(found.Status, fields, length, body)
}

func isContentLength(field upstream.Field) bool {
	return strings.EqualFold(field.Name, "Content-Length")
}

// ask adds the conditions of the cache to the request, if there are any. Copies of the request must not have them.
func (cached) ask(e *exchange) (response *upstream.Response, done bool) {
	c := slotOf[caching](e)
	if conditions := c.lookup.Conditions(); len(conditions) > 0 {
		c.asks = true
		e.request.Fields = append(slices.Clip(e.request.Fields), conditions...)
	}
	return nil, false
}

// confirm takes the response 304 to the conditions of the cache. It returns nil if there is nothing to give: the
// backend has to be asked without conditions.
func (cached) confirm(e *exchange, response *upstream.Response) *upstream.Response {
	c := slotOf[caching](e)
	if !c.asks || response.Status != http.StatusNotModified {
		return response
	}
	c.asks = false
	found := c.lookup.Confirm(response.Fields)
	if found == nil {
		return nil
	}
	return c.give(e, found)
}

// head says why the backend was asked (RFC 9211). What the cache gives says so itself.
func (cached) head(e *exchange, header http.Header) {
	if c := slotOf[caching](e); !c.given {
		header["Cache-Status"] = append(header["Cache-Status"], c.lookup.CacheStatus())
	}
}

// record begins to keep a response of a backend, if it may be kept.
func (cached) record(e *exchange, response *upstream.Response) *upstream.Response {
	if c := slotOf[caching](e); !c.given && !response.Stream && !response.UntilClose {
		c.recording = c.lookup.Record(response.Status, response.Fields, response.ContentLength)
	}
	return response
}

// body has the cache get the body as the backend sends it.
func (cached) body(e *exchange, response *upstream.Response, to bodyWriter) bodyWriter {
	c := slotOf[caching](e)
	c.response, c.to = response, to
	return c
}

func (c *caching) Write(p []byte) (int, error) {
	c.recording = c.recording.Add(p)
	return c.to.Write(p)
}

func (c *caching) Flush() error { return c.to.Flush() }

// Close keeps a response that is whole. Trailers are not kept, so a response with some is not.
func (c *caching) Close() error {
	err := c.to.Close()
	if err == nil && len(c.response.Trailers()) == 0 {
		c.recording.Keep()
		c.recording = nil
	}
	return err
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

// forgetAnswered makes the cache forget what a request may have changed by its response.
func (e *exchange) forgetAnswered(response *upstream.Response) *upstream.Response {
	if response.Status < http.StatusBadRequest || response.Status >= http.StatusInternalServerError {
		e.forgetChanged()
	}
	return response
}

// forgetFailed does so without a response.
func (e *exchange) forgetFailed(err error) {
	if mayBeSent(err) {
		e.forgetChanged()
	}
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

func cachedBackend(backend *model.Backend) cache.Backend {
	identity := ""
	if backend.TLS != nil {
		identity = backend.TLS.Identity
	}
	return cache.Backend{Namespace: backend.Namespace, Service: backend.Service, Way: fmt.Sprintf("%d %d %s", backend.Port, backend.Protocol, identity)}
}
