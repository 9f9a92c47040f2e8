package serve

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	cachestore "github.com/slipway-dev/slipway/internal/gateway/feature/cache/store"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Step answers requests of a route from the cache, and keeps what backends answer.
type Step struct {
	*cache.Policy

	engine *Engine
	names  []cachestore.Backend // of the table
	fields func(e *exchange.Exchange) []upstream.Field
}

// caching is what the cache has to do with a request.
type caching struct {
	lookup *cachestore.Lookup
	// request has the fields that are sent, without conditions of the cache.
	request cachestore.Request
	// asks tells that the backend is asked to confirm what is stored, and given that the answer comes from the cache.
	asks, given bool
	// recording keeps the response while it comes. Nil: it is not kept. to is where its body goes.
	recording *cachestore.Recording
	response  *upstream.Response
	to        exchange.BodyWriter
}

// LookUp looks for a response in the cache. If there is none, the backend must be asked.
func (s Step) LookUp(e *exchange.Exchange) (response *upstream.Response, done bool) {
	c := exchange.SlotOf[caching](e)
	c.request = cachestore.Request{
		Backend: s.names[e.Backend],
		Method:  e.Method(), Host: e.Outgoing.Host, Target: e.Outgoing.Target, Fields: s.fields(e),
		Plain:  e.Outgoing.Body == nil && e.Outgoing.Upgrade == "",
		Proven: e.Facts.Proven || e.IsProven(),
		Client: e.Client.ShareOf,
	}
	c.lookup = s.engine.store.Look((*cachestore.Policy)(s.Policy), &c.request)
	e.Facts.CacheResult = c.lookup.Result.String()
	s.engine.metrics.answered(e.Route, c.lookup.Result)
	switch c.lookup.Result {
	case cachestore.Hit:
		return c.give(e, c.lookup.Found), true
	case cachestore.Absent:
		e.Refuse(http.StatusGatewayTimeout, "cache") // RFC 9111, 5.2.1.7
		return nil, true
	}
	return nil, false
}

// End ends what LookUp has begun.
func (Step) End(e *exchange.Exchange, _ bool) {
	c := exchange.SlotOf[caching](e)
	defer c.lookup.Close()
	c.recording.Drop()
}

// give makes a response of what the cache has.
func (c *caching) give(e *exchange.Exchange, found *cachestore.Found) *upstream.Response {
	c.given = true
	body, fields, length := found.Body, found.Fields, int64(len(found.Body))
	switch {
	case found.Status == http.StatusNotModified:
		length = -1
	case found.Status != http.StatusNoContent && !slices.ContainsFunc(fields, isContentLength):
		fields = append(fields, upstream.Field{Name: "Content-Length", Value: strconv.FormatInt(length, 10)})
	}
	if e.Method() == http.MethodHead {
		body = nil
	}
	return upstream.Stored(found.Status, fields, length, body)
}

func isContentLength(field upstream.Field) bool {
	return strings.EqualFold(field.Name, "Content-Length")
}

// Ask adds the conditions of the cache to the request, if there are any. Copies of the request must not have them.
func (Step) Ask(e *exchange.Exchange) (response *upstream.Response, done bool) {
	c := exchange.SlotOf[caching](e)
	if conditions := c.lookup.Conditions(); len(conditions) > 0 {
		c.asks = true
		e.Outgoing.Fields = append(slices.Clip(e.Outgoing.Fields), conditions...)
	}
	return nil, false
}

// Confirm takes the response 304 to the conditions of the cache. It returns nil if there is nothing to give: the
// backend has to be asked without conditions.
func (Step) Confirm(e *exchange.Exchange, response *upstream.Response) *upstream.Response {
	c := exchange.SlotOf[caching](e)
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

// Head says why the backend was asked (RFC 9211). What the cache gives says so itself.
func (Step) Head(e *exchange.Exchange, header http.Header) {
	if c := exchange.SlotOf[caching](e); !c.given {
		header["Cache-Status"] = append(header["Cache-Status"], c.lookup.CacheStatus())
	}
}

// Record begins to keep a response of a backend, if it may be kept.
func (Step) Record(e *exchange.Exchange, response *upstream.Response) *upstream.Response {
	if c := exchange.SlotOf[caching](e); !c.given && !response.Stream && !response.UntilClose {
		c.recording = c.lookup.Record(response.Status, response.Fields, response.ContentLength)
	}
	return response
}

// Body has the cache get the body as the backend sends it.
func (Step) Body(e *exchange.Exchange, response *upstream.Response, to exchange.BodyWriter) exchange.BodyWriter {
	c := exchange.SlotOf[caching](e)
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
