package model

// Transport says how far connections are read.
type Transport string

// The transports.
const (
	// TransportHTTP means that requests are read.
	TransportHTTP Transport = ""
	// TransportTCP means that the bytes of connections are forwarded, after TLS if the listener is secure.
	TransportTCP Transport = "TCP"
	// TransportTLS means that the bytes of connections are forwarded as they are, by the name in the first message of TLS.
	TransportTLS Transport = "TLS"
	// TransportUDP means that datagrams are forwarded.
	TransportUDP Transport = "UDP"
)
