package exchange

import (
	"net/netip"
)

// Client is who sends a request.
type Client struct {
	// Peer is the address of the peer.
	Peer string
	// Text is the address of the client, as far as it can be trusted.
	Text string
	// Origin is the address of the client. It is the zero address where a trusted proxy does not say it.
	Origin netip.Addr
	// Address is what counts as the client in limits. ShareOf is the client whose share of
	// a bound is used. It is the zero Addr if a trusted proxy names no client.
	Address, ShareOf netip.Addr
	// Trusted: the peer is a trusted proxy.
	Trusted bool
}

// Scheme returns the scheme of the client's request.
func (e *Exchange) Scheme() string {
	if e.Client.Trusted {
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

// ForwardedHost is the host that the client has asked for, as far as a trusted proxy says so.
func (e *Exchange) ForwardedHost() string {
	if given := e.r.Header.Get("X-Forwarded-Host"); e.Client.Trusted && given != "" {
		return given
	}
	return e.r.Host
}
