package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// findHost determines the host of the request. If it is invalid, it answers the request and
// returns false. Afterwards the host is in normal form, as routes, backends and the access
// log use it.
func (e *call) findHost() bool {
	text := e.r.Host
	if e.r.ProtoMajor == 1 {
		// RFC 9112, 3.2.2: the host in the target counts, not the field Host.
		if authority, _, absolute := splitTarget(e.r.RequestURI); absolute {
			text = authority
		} else if text == "" && e.r.ProtoMinor == 0 {
			return true // HTTP/1.0 needs no host
		}
	}
	host, err := table.ParseHost(text)
	if err != nil || !e.agrees(host) {
		return e.Refuse(http.StatusBadRequest, "host")
	}
	e.r.Host, e.lookup.Host = host.String(), host.Name
	if e.r.TLS != nil && e.handler.certificates.Load().differ(portOf(e.r), e.r.TLS.ServerName, host.Name) {
		return e.Refuse(http.StatusMisdirectedRequest, "misdirected")
	}
	return true
}

// agrees reports whether a field Host agrees with :authority of HTTP/2 (RFC 9113, 8.3.1).
// With HTTP/1.1 the field is removed already, and net/http refuses two of them.
func (e *call) agrees(host table.Host) bool {
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
