package proxy

import "github.com/slipway-dev/slipway/internal/gateway/upstream"

// BackendStates are the health states of a backend's endpoints.
type BackendStates struct {
	upstream.States

	// Service and Port name the backend. Service has its namespace before it, with a slash,
	// if that is not the gateway's own.
	Service string
	Port    int32
}

// BackendStates returns the states of the endpoints of every backend of the table.
func (h *Handler) BackendStates() []BackendStates {
	current := h.current.Load()
	if current == nil {
		return nil
	}
	list := make([]BackendStates, len(current.services))
	for i, backend := range current.Table.Backends {
		list[i] = BackendStates{States: current.services[i].States(), Service: backend.ServiceName(), Port: backend.Port}
	}
	return list
}
