package proxy

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// maxNames bounds the number of field names in a request. maxOptions bounds the options of
// Connection, because each field name is compared with each option.
const (
	maxNames   = 512
	maxOptions = 64
)

// forward sends the request to a backend and its response to the client.
func (e *call) forward() {
	backend, service, lack := e.service()
	if service == nil {
		e.refuseShare(lack)
		return
	}
	e.chosen, e.Backend, e.Edits[0] = backend, backend.Index, backend.ResponseHeaders
	e.Chosen = e.placeOf(backend)
	e.buildRequest(backend.Backend)
	for _, send := range e.Steps.Send {
		switch response, done := send(&e.Exchange); {
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
func (e *call) ask(service *upstream.Service) (again bool) {
	response, err := service.Do(e.r.Context(), &e.Outgoing)
	if e.Outgoing.Resent() > 0 || e.Outgoing.BudgetExhausted() {
		e.metrics().Retried(&e.Outgoing)
	}
	if err != nil {
		e.explain(err)
		return false
	}
	e.Answer.Endpoint = response.Endpoint
	defer func() { response.Close() }()
	for _, receive := range e.Steps.Receive {
		next := receive(&e.Exchange, response)
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
func (e *call) explain(err error) {
	for _, failed := range e.Steps.Failed {
		failed(&e.Exchange, err)
	}
	kind := upstream.KindOf(err)
	if failure, ok := errors.AsType[*upstream.Error](err); ok {
		e.Answer.Endpoint = failure.Endpoint
	}
	e.metrics().Failed(kind)
	if (kind == upstream.RequestBody && errors.Is(err, os.ErrDeadlineExceeded)) || e.ClientStalled() {
		if e.r.ProtoMajor == 1 {
			e.w.Header()["Connection"] = []string{"close"}
		}
		e.Refuse(http.StatusRequestTimeout, "client_stalled")
		return
	}
	if stopped := e.Body.WasStopped(); kind == upstream.Canceled || (e.r.Context().Err() != nil && !stopped) {
		e.Abandon()
		return
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		e.Refuse(http.StatusRequestEntityTooLarge, "body_too_large")
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
	e.Refuse(status, kind.String())
}

// buildRequest makes the request to the backend.
func (e *call) buildRequest(backend *model.Backend) {
	e.Outgoing = upstream.Request{
		Client:         e.Client.ShareOf,
		Affinity:       e.wish,
		Method:         e.r.Method,
		Target:         e.targetFor(e.chosen),
		Host:           e.hostFor(e.chosen),
		Protocol:       protocolOf(backend),
		Deadline:       e.Deadline(),
		HeaderTimeout:  e.route.Timeouts.Backend,
		AttemptTimeout: e.route.Timeouts.Attempt,
		IdleTimeout:    e.backendIdle(backend), Patient: e.route.Timeouts.Patient,
		Retry:         retryOf(&e.route.Retries),
		Informational: e.Informed(),
	}
	for _, value := range e.r.Header["Te"] {
		e.Outgoing.AcceptTrailers = e.Outgoing.AcceptTrailers || exchange.HasToken(value, "trailers")
	}
	if e.Body.IsWhole {
		exchange.SetBody(&e.Outgoing, e.Body.Whole.Data)
	} else if e.HasBody() {
		e.addBody()
		e.BoundBody(e.clientIdle(backend))
	} else if upgrade := e.r.Header["Upgrade"]; len(upgrade) == 1 && !backend.Protocol.IsHTTP2() && e.mayUpgrade(upgrade[0]) {
		e.Outgoing.Upgrade = upgrade[0]
	}
	e.addFields()
	e.Outgoing.Fields = e.fields
}

// rewriteFor returns how path and host change for a backend. Nil: not at all.
func (e *call) rewriteFor(backend *table.WeightedBackend) *table.CompiledRewrite {
	if backend.Rewrite != nil {
		return backend.Rewrite
	}
	return e.route.Rewrite
}

// hostFor returns the host for a backend.
func (e *call) hostFor(backend *table.WeightedBackend) string {
	if rewrite := e.rewriteFor(backend); rewrite != nil && rewrite.Host != "" {
		return rewrite.Host
	}
	return e.r.Host
}

// targetFor returns the path for a backend, with the query.
func (e *call) targetFor(backend *table.WeightedBackend) string {
	path := e.path.Forward
	if rewrite := e.rewriteFor(backend); rewrite != nil {
		path = rewrite.Path(e.path)
	}
	switch {
	case e.path.Forward == wholeServer:
		return wholeServer
	case e.Query == "" && e.r.URL.ForceQuery:
		return path + "?"
	case e.Query == "":
		return path
	}
	if asReceived := e.r.RequestURI; len(asReceived) == len(path)+1+len(e.Query) && strings.HasPrefix(asReceived, path) &&
		strings.HasSuffix(asReceived, e.Query) {
		return asReceived
	}
	return path + "?" + e.Query
}

// isNoTrailer reports whether a field must not be sent to the backend as a trailer. The backend may treat it as a header field. So
// what a client may not set in the header, it may not set in a trailer.
func (e *call) isNoTrailer(name string) bool {
	folded := fieldname.Folded(name)
	return fieldname.ForbiddenTrailer(folded) || forwardedField(folded) || e.isHidden(name) || e.state.ClientHeaders.is(name) ||
		slices.Contains(e.Facts.Evaluated, folded) || e.state.Table.MayBeMatched(&e.lookup, "", folded) ||
		e.route.RequestHeaders.Decides(folded) || e.chosen.RequestHeaders.Decides(folded)
}

// trailersOf returns the trailers for the backend.
func (e *call) trailersOf(trailer http.Header) []upstream.Field {
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
func (e *call) addFields() {
	for name, values := range e.r.Header {
		if fieldname.OfConnection(name) || forwardedField(name) || e.isHidden(name) || slices.Contains(e.Nominated, name) ||
			e.span != nil && telemetry.IsTraceField(name) {
			continue
		}
		if name == "Cookie" {
			values = e.StripCookies(values)
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
	e.fields = append(e.fields, e.Facts.Add...)
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
func (e *call) isHidden(name string) bool {
	folded := fieldname.Folded(name)
	if folded != name && (forwardedField(folded) || fieldname.OfConnection(folded) || e.state.Table.MayBeMatched(&e.lookup, name, folded) ||
		slices.Contains(e.Facts.Evaluated, folded)) {
		return true
	}
	return slices.Contains(e.Facts.Hide, folded)
}

// readConnection records the fields that Connection names, because they must not be
// forwarded. It returns false if there are too many.
func (e *call) readConnection() bool {
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
			e.Nominated = append(e.Nominated, http.CanonicalHeaderKey(option))
		}
	}
	return true
}

// announced reports whether the field Trailer names a field.
func announced(trailer []string, name string) bool {
	for _, value := range trailer {
		if exchange.HasToken(value, name) {
			return true
		}
	}
	return false
}

// editFields changes the fields of the request.
func (e *call) editFields(edit *model.HeaderEdit) {
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

// addBody adds the body of the client, with its trailers, to the request.
func (e *call) addBody() {
	e.AddBody()
	if e.Body.OverHTTP1() {
		e.Outgoing.ClientGone = clientConnOf(e.r).isReset
	}
	if trailer := e.r.Trailer; e.r.ContentLength < 0 && len(trailer) > 0 {
		e.Outgoing.Trailers = func() []upstream.Field { return e.trailersOf(trailer) }
	}
}

// placeOf returns the place of a backend among those of the route.
func (e *call) placeOf(backend *table.WeightedBackend) int {
	for i := range e.route.Backends {
		if &e.route.Backends[i] == backend {
			return i
		}
	}
	return -1
}

// clientIdle bounds how long the client may send nothing of its body. 0 means no bound.
func (e *call) clientIdle(backend *model.Backend) time.Duration {
	switch {
	case backend.Protocol == model.ProtocolGRPC:
		return 0
	case e.route.Timeouts.IdleSet:
		return e.route.Timeouts.Idle
	}
	return e.ClientTimeout
}

// backendIdle bounds how long the backend may send nothing of its response's body.
func (e *call) backendIdle(backend *model.Backend) time.Duration {
	switch {
	case backend.Protocol == model.ProtocolGRPC:
		return 0
	case e.route.Timeouts.IdleSet:
		return e.route.Timeouts.Idle
	case e.route.Timeouts.Patient:
		return 0
	}
	return e.handler.options.BackendTimeout
}
