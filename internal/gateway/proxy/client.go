package proxy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// findClient determines the client's address. It ignores what a proxy says that is not
// trusted.
func (e *exchange) findClient() {
	e.client.peer = e.r.RemoteAddr
	if colon := strings.LastIndexByte(e.client.peer, ':'); colon >= 0 {
		e.client.peer = strings.Trim(e.client.peer[:colon], "[]")
	}
	address, _ := netip.ParseAddr(e.client.peer) // the zero address if the peer has none
	e.client.text, e.client.origin, e.client.address = e.client.peer, address, clients.Of(address)
	e.client.shareOf = e.client.address
	if e.state == nil || !clients.Within(e.state.TrustedProxies, address) {
		return
	}
	e.client.trusted, e.client.shareOf = true, netip.Addr{}
	hops := strings.Split(strings.Join(e.r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := strings.TrimSpace(hops[i])
		address, err := netip.ParseAddr(hop)
		if err != nil {
			if len(e.r.Header["X-Forwarded-For"]) > 0 {
				e.client.origin = netip.Addr{} // the proxy says that it is not the client, and not who is
			}
			return
		}
		e.client.text, e.client.origin, e.client.address = hop, address, clients.Of(address)
		e.client.shareOf = e.client.address
		if !clients.Within(e.state.TrustedProxies, address) {
			return
		}
	}
}

// scheme returns the scheme of the client's request.
func (e *exchange) scheme() string {
	if e.client.trusted {
		switch e.r.Header.Get("X-Forwarded-Proto") {
		case "https":
			return "https"
		case "http":
			return "http"
		}
	}
	if e.r.TLS != nil {
		return "https"
	}
	return "http"
}

// forwardedField reports whether a field says where a request came from. Only the gateway
// may set such fields. name is in canonical form.
func forwardedField(name string) bool {
	return name == "X-Real-Ip" || name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-")
}

// forwardedHost is the host that the client has asked for, as far as a trusted proxy says so.
func (e *exchange) forwardedHost() string {
	if given := e.r.Header.Get("X-Forwarded-Host"); e.client.trusted && given != "" {
		return given
	}
	return e.r.Host
}

// addForwarded tells the backend where the request came from.
func (e *exchange) addForwarded() {
	forwardedFor := e.client.peer
	if e.client.trusted {
		if before := e.r.Header["X-Forwarded-For"]; len(before) > 0 {
			forwardedFor = strings.Join(before, ", ") + ", " + e.client.peer
		}
		e.addOtherForwarded()
		for _, value := range e.r.Header["Forwarded"] {
			e.fields = append(e.fields, upstream.Field{Name: "Forwarded", Value: value})
		}
	}
	e.fields = append(e.fields,
		upstream.Field{Name: "X-Forwarded-For", Value: forwardedFor},
		upstream.Field{Name: "X-Forwarded-Proto", Value: e.scheme()},
		upstream.Field{Name: "X-Forwarded-Host", Value: e.forwardedHost()},
	)
}

// addOtherForwarded forwards what a trusted proxy says in fields that the gateway does not
// set itself, such as X-Forwarded-Port and X-Forwarded-Prefix. One that says who the client
// is may come from the proxy's own client, and is left out.
func (e *exchange) addOtherForwarded() {
	for name, values := range e.r.Header {
		switch name {
		case "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto":
			continue
		}
		if !strings.HasPrefix(name, "X-Forwarded-") || e.isHidden(name) || slices.Contains(e.nominated, name) {
			continue
		}
		for _, value := range values {
			e.fields = append(e.fields, upstream.Field{Name: name, Value: value})
		}
	}
}
