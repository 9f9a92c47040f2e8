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
func (e *call) findClient() {
	e.Client.Peer = e.r.RemoteAddr
	if colon := strings.LastIndexByte(e.Client.Peer, ':'); colon >= 0 {
		e.Client.Peer = strings.Trim(e.Client.Peer[:colon], "[]")
	}
	address, _ := netip.ParseAddr(e.Client.Peer) // the zero address if the peer has none
	e.Client.Text, e.Client.Origin, e.Client.Address = e.Client.Peer, address, clients.Of(address)
	e.Client.ShareOf = e.Client.Address
	if e.state == nil || !clients.Within(e.state.TrustedProxies, address) {
		return
	}
	e.Client.Trusted, e.Client.ShareOf = true, netip.Addr{}
	hops := strings.Split(strings.Join(e.r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := strings.TrimSpace(hops[i])
		address, err := netip.ParseAddr(hop)
		if err != nil {
			if len(e.r.Header["X-Forwarded-For"]) > 0 {
				e.Client.Origin = netip.Addr{} // the proxy says that it is not the client, and not who is
			}
			return
		}
		e.Client.Text, e.Client.Origin, e.Client.Address = hop, address, clients.Of(address)
		e.Client.ShareOf = e.Client.Address
		if !clients.Within(e.state.TrustedProxies, address) {
			return
		}
	}
}

// forwardedField reports whether a field says where a request came from. Only the gateway
// may set such fields. name is in canonical form.
func forwardedField(name string) bool {
	return name == "X-Real-Ip" || name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-")
}

// addForwarded tells the backend where the request came from.
func (e *call) addForwarded() {
	forwardedFor := e.Client.Peer
	if e.Client.Trusted {
		if before := e.r.Header["X-Forwarded-For"]; len(before) > 0 {
			forwardedFor = strings.Join(before, ", ") + ", " + e.Client.Peer
		}
		e.addOtherForwarded()
		for _, value := range e.r.Header["Forwarded"] {
			e.fields = append(e.fields, upstream.Field{Name: "Forwarded", Value: value})
		}
	}
	e.fields = append(e.fields,
		upstream.Field{Name: "X-Forwarded-For", Value: forwardedFor},
		upstream.Field{Name: "X-Forwarded-Proto", Value: e.Scheme()},
		upstream.Field{Name: "X-Forwarded-Host", Value: e.ForwardedHost()},
	)
}

// addOtherForwarded forwards what a trusted proxy says in fields that the gateway does not
// set itself, such as X-Forwarded-Port and X-Forwarded-Prefix. One that says who the client
// is may come from the proxy's own client, and is left out.
func (e *call) addOtherForwarded() {
	for name, values := range e.r.Header {
		switch name {
		case "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto":
			continue
		}
		if !strings.HasPrefix(name, "X-Forwarded-") || e.isHidden(name) || slices.Contains(e.Nominated, name) {
			continue
		}
		for _, value := range values {
			e.fields = append(e.fields, upstream.Field{Name: name, Value: value})
		}
	}
}
