package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// findHost reads whom the request is for, or answers that nobody can tell. From there on the
// request has the host in the one spelling that routes, backends and the log know.
func (e *exchange) findHost() bool {
	text := e.r.Host
	if e.r.ProtoMajor == 1 {
		// RFC 9112, 3.2.2: whom the target is for counts, whatever Host says.
		if authority, _, absolute := splitTarget(e.r.RequestURI); absolute {
			text = authority
		} else if text == "" && e.r.ProtoMinor == 0 {
			return true // which need not say it
		}
	}
	host, err := table.ParseHost(text)
	if err != nil || !e.agrees(host) {
		return e.refuse(http.StatusBadRequest, "host")
	}
	e.r.Host, e.lookup.Host = host.String(), host.Name
	if e.r.TLS != nil && e.handler.certificates.Load().differ(e.r.TLS.ServerName, host.Name) {
		return e.refuse(http.StatusMisdirectedRequest, "misdirected")
	}
	return true
}

// agrees reports whether a field Host beside the :authority of HTTP/2 says the same
// (RFC 9113, 8.3.1). With HTTP/1.1 there is none left here, and net/http refuses two.
func (e *exchange) agrees(host table.Host) bool {
	fields := e.r.Header["Host"]
	if len(fields) > 1 {
		return false
	}
	for _, field := range fields {
		if other, err := table.ParseHost(field); err != nil || other != host {
			return false
		}
	}
	return true
}
