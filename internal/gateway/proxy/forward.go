package proxy

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

var aLongTimeAgo = time.Unix(1, 0)

// maxNames bounds the number of field names in a request. maxOptions bounds the options of
// Connection, because each field name is compared with each option.
const (
	maxNames   = 512
	maxOptions = 64
)

// forward sends the request to a backend and its response to the client.
func (e *exchange) forward() {
	backend, service, lack := e.service()
	if service == nil {
		e.refuseShare(lack)
		return
	}
	e.chosen = backend
	e.buildRequest(backend.Backend)
	for _, send := range e.steps.send {
		switch response, done := send(e); {
		case response != nil:
			defer response.Close()
			e.respond(response)
			return
		case done:
			return
		}
	}
	if e.ask(service) {
		e.fields = e.fields[:0]
		e.buildRequest(backend.Backend) // as it was, and not sent again by any count
		e.ask(service)
	}
}

// ask sends the request to a backend and answers with its response. It returns true if the backend has to be asked again.
func (e *exchange) ask(service *upstream.Service) (again bool) {
	response, err := service.Do(e.r.Context(), &e.request)
	if e.request.Resent() > 0 || e.request.BudgetExhausted() {
		e.metrics().Retried(&e.request)
	}
	if err != nil {
		e.explain(err)
		return false
	}
	e.answer.endpoint = response.Endpoint
	defer func() { response.Close() }()
	for _, receive := range e.steps.receive {
		next := receive(e, response)
		if next == nil {
			return true
		}
		if next != response {
			before := response
			response = next
			before.Close()
		}
	}
	if response.Status == http.StatusSwitchingProtocols {
		e.tunnel(response)
		return false
	}
	e.respond(response)
	return false
}

// explain answers a request for which the backend gave no response.
func (e *exchange) explain(err error) {
	for _, failed := range e.steps.failed {
		failed(e, err)
	}
	kind := upstream.KindOf(err)
	if failure, ok := errors.AsType[*upstream.Error](err); ok {
		e.answer.endpoint = failure.Endpoint
	}
	e.metrics().Failed(kind)
	if (kind == upstream.RequestBody && errors.Is(err, os.ErrDeadlineExceeded)) || e.clientStalled() {
		if e.r.ProtoMajor == 1 {
			e.w.Header()["Connection"] = []string{"close"}
		}
		e.refuse(http.StatusRequestTimeout, "client_stalled")
		return
	}
	if stopped := e.body.http1 != nil && e.body.http1.wasStopped(); kind == upstream.Canceled || (e.r.Context().Err() != nil && !stopped) {
		e.abandon()
		return
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		e.refuse(http.StatusRequestEntityTooLarge, "body_too_large")
		return
	}
	status := http.StatusBadGateway
	switch kind {
	case upstream.NoEndpoints, upstream.MaxRequests, upstream.MaxPending, upstream.MaxConnections:
		status = http.StatusServiceUnavailable
	case upstream.Timeout:
		status = http.StatusGatewayTimeout
	case upstream.RequestBody, upstream.InvalidRequest:
		status = http.StatusBadRequest
	}
	e.refuse(status, kind.String())
}

// buildRequest makes the request to the backend.
func (e *exchange) buildRequest(backend *model.Backend) {
	e.request = upstream.Request{
		Client:         e.client.shareOf,
		Affinity:       e.wish,
		Method:         e.r.Method,
		Target:         e.targetFor(e.chosen),
		Host:           e.hostFor(e.chosen),
		Protocol:       protocolOf(backend),
		Deadline:       e.deadline(),
		HeaderTimeout:  e.route.Timeouts.Backend,
		AttemptTimeout: e.route.Timeouts.Attempt,
		IdleTimeout:    e.backendIdle(backend), Patient: e.route.Timeouts.Patient,
		Retry:         retryOf(&e.route.Retries),
		Informational: e.answer.informed,
	}
	for _, value := range e.r.Header["Te"] {
		e.request.AcceptTrailers = e.request.AcceptTrailers || hasToken(value, "trailers")
	}
	if e.body.isJudged {
		setBody(&e.request, e.body.judged.Data)
	} else if e.r.Body != nil && e.r.Body != http.NoBody && e.r.ContentLength != 0 {
		e.addBody()
		e.boundBody(e.clientIdle(backend))
	} else if upgrade := e.r.Header["Upgrade"]; len(upgrade) == 1 && !backend.Protocol.IsHTTP2() && e.mayUpgrade(upgrade[0]) {
		e.request.Upgrade = upgrade[0]
	}
	e.addFields()
	e.request.Fields = e.fields
}

// deadline is when the response must have ended. Zero: never.
func (e *exchange) deadline() time.Time {
	if e.route.Timeouts.Request <= 0 {
		return time.Time{}
	}
	return e.start.Add(e.route.Timeouts.Request)
}

// rewriteFor returns how path and host change for a backend. Nil: not at all.
func (e *exchange) rewriteFor(backend *table.WeightedBackend) *table.CompiledRewrite {
	if backend.Rewrite != nil {
		return backend.Rewrite
	}
	return e.route.Rewrite
}

// hostFor returns the host for a backend.
func (e *exchange) hostFor(backend *table.WeightedBackend) string {
	if rewrite := e.rewriteFor(backend); rewrite != nil && rewrite.Host != "" {
		return rewrite.Host
	}
	return e.r.Host
}

// targetFor returns the path for a backend, with the query.
func (e *exchange) targetFor(backend *table.WeightedBackend) string {
	path := e.path.Forward
	if rewrite := e.rewriteFor(backend); rewrite != nil {
		path = rewrite.Path(e.path)
	}
	switch {
	case e.path.Forward == wholeServer:
		return wholeServer
	case e.query == "" && e.r.URL.ForceQuery:
		return path + "?"
	case e.query == "":
		return path
	}
	if asReceived := e.r.RequestURI; len(asReceived) == len(path)+1+len(e.query) && strings.HasPrefix(asReceived, path) &&
		strings.HasSuffix(asReceived, e.query) {
		return asReceived
	}
	return path + "?" + e.query
}

func (e *exchange) addBody() {
	request := &e.request
	request.Body, request.ContentLength = e.r.Body, e.r.ContentLength
	control := http.NewResponseController(e.w)
	request.StopBody = func() { _ = control.SetReadDeadline(aLongTimeAgo) }
	if e.r.ProtoMajor == 2 {
		e.takeStream(control)
	}
	if e.body.http1 != nil {
		request.Body, request.StopBody = e.body.http1, e.body.http1.stop
		request.ClientGone = clientConnOf(e.r).isReset
		request.ExpectContinue = e.body.http1.expected // net/http accepts no other expectation
	}
	if e.r.ContentLength < 0 {
		trailer := e.r.Trailer
		if len(trailer) > 0 {
			request.Trailers = func() []upstream.Field { return e.trailersOf(trailer) }
		}
	}
	// The body may still come in while the response is sent.
	if e.r.ProtoMajor == 1 && (e.r.ContentLength < 0 || request.ExpectContinue || e.r.ContentLength > upstream.MaxReplay) {
		_ = control.EnableFullDuplex()
	}
}

func (e *exchange) pace(control *http.ResponseController) pace {
	return pace{control: control, clock: e.handler.options.Clock, timeout: e.handler.options.ClientTimeout}
}

// isNoTrailer reports whether a field must not be sent to the backend as a trailer. The backend may treat it as a header field. So
// what a client may not set in the header, it may not set in a trailer.
func (e *exchange) isNoTrailer(name string) bool {
	folded := fieldname.Folded(name)
	return fieldname.ForbiddenTrailer(folded) || forwardedField(folded) || e.isHidden(name) || e.state.ClientHeaders.is(name) ||
		slices.Contains(e.facts.judged, folded) || e.state.Table.MayBeMatched(&e.lookup, "", folded) ||
		e.route.RequestHeaders.Decides(folded) || e.chosen.RequestHeaders.Decides(folded)
}

// trailersOf returns the trailers for the backend.
func (e *exchange) trailersOf(trailer http.Header) []upstream.Field {
	fields := make([]upstream.Field, 0, len(trailer))
	for name, values := range trailer {
		if e.isNoTrailer(name) {
			continue
		}
		if len(values) == 0 {
			fields = append(fields, upstream.Field{Name: name}) // declared in Trailer, and not received yet
		}
		for _, value := range values {
			fields = append(fields, upstream.Field{Name: name, Value: value})
		}
	}
	return fields
}

// addFields copies the client's fields that are for the backend.
func (e *exchange) addFields() {
	for name, values := range e.r.Header {
		if fieldname.OfConnection(name) || forwardedField(name) || e.isHidden(name) || slices.Contains(e.nominated, name) || e.span != nil && telemetry.IsTraceField(name) {
			continue
		}
		if name == "Cookie" {
			values = withoutSessions(values)
		}
		for _, value := range values {
			e.fields = append(e.fields, upstream.Field{Name: name, Value: value})
		}
	}
	for name := range e.r.Trailer {
		if e.isNoTrailer(name) {
			continue
		}
		e.fields = append(e.fields, upstream.Field{Name: "Trailer", Value: name})
	}
	version := 1
	if e.r.ProtoMajor == 2 {
		version = 2
	} else if e.r.ProtoMinor == 0 {
		version = 0
	}
	e.fields = append(e.fields, upstream.Field{Name: "Via", Value: e.handler.via[version]})
	e.addForwarded()
	e.fields = append(e.fields, e.facts.add...)
	if e.span != nil {
		telemetry.AddTrace(e.r.Context(), e.span, &e.fields)
	}
	for _, edit := range [...]*model.HeaderEdit{e.route.RequestHeaders, e.chosen.RequestHeaders} {
		if edit != nil {
			e.editFields(edit)
		}
	}
}

// isHidden reports whether a client must not set the field: its key, or what tells the backend who the client is. A backend may read
// another name as the same one (fieldname.Folded). So a field is also hidden if it may be taken for a field of the framing, of
// forwarding, that a Service has judged, or that decides about the route.
func (e *exchange) isHidden(name string) bool {
	folded := fieldname.Folded(name)
	if folded != name && (forwardedField(folded) || fieldname.OfConnection(folded) || e.state.Table.MayBeMatched(&e.lookup, name, folded) ||
		slices.Contains(e.facts.judged, folded)) {
		return true
	}
	return slices.Contains(e.facts.hide, folded)
}

// readConnection records the fields that Connection names, because they must not be
// forwarded. It returns false if there are too many.
func (e *exchange) readConnection() bool {
	options := 0
	for _, list := range e.r.Header["Connection"] {
		if options += 1 + strings.Count(list, ","); options > maxOptions {
			return false
		}
		for option := range strings.SplitSeq(list, ",") {
			option = strings.Trim(option, " \t")
			if option == "" || strings.EqualFold(option, "close") || fieldname.OfConnection(option) {
				continue
			}
			e.nominated = append(e.nominated, http.CanonicalHeaderKey(option))
		}
	}
	return true
}

// announced reports whether the field Trailer names a field.
func announced(trailer []string, name string) bool {
	for _, value := range trailer {
		if hasToken(value, name) {
			return true
		}
	}
	return false
}

func hasToken(list, token string) bool {
	for list != "" {
		var element string
		element, list, _ = strings.Cut(list, ",")
		if strings.EqualFold(strings.Trim(element, " \t"), token) {
			return true
		}
	}
	return false
}

// editFields changes the fields of the request.
func (e *exchange) editFields(edit *model.HeaderEdit) {
	header := make(http.Header, len(e.fields))
	for _, field := range e.fields {
		name := http.CanonicalHeaderKey(field.Name)
		header[name] = append(header[name], field.Value)
	}
	for name := range header {
		if edit.Decides(fieldname.Folded(name)) { // a backend may take it for what the route sets or removes
			delete(header, name)
		}
	}
	edit.Apply(header)
	e.fields = e.fields[:0]
	for name, values := range header {
		for _, value := range values {
			e.fields = append(e.fields, upstream.Field{Name: name, Value: value})
		}
	}
}

// retryOf converts the route's retries.
func retryOf(in *model.Retries) upstream.Retry {
	out := upstream.Retry{Attempts: in.Attempts, On: in.On, Wait: in.Wait}
	if in.Statuses != (model.Statuses{}) {
		out.OnStatus = in.Statuses.Has
	}
	return out
}
