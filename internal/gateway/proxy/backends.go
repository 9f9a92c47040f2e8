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

// BackendStates returns the states of the endpoints of every backend of the table. A port of a Service comes once: of endpoints
// that are reached in more than one way, each is counted for each of them.
func (h *Handler) BackendStates() []BackendStates {
	current := h.current.Load()
	if current == nil {
		return nil
	}
	type name struct {
		service string
		port    int32
	}
	places := make(map[name]int, len(current.services))
	list := make([]BackendStates, 0, len(current.services))
	for i, backend := range current.Table.Backends {
		of, states := name{backend.ServiceName(), backend.Port}, current.services[i].States()
		at, known := places[of]
		if !known {
			at = len(list)
			places[of] = at
			list = append(list, BackendStates{Service: of.service, Port: of.port})
		}
		list[at].Available += states.Available
		list[at].Ejected += states.Ejected
		list[at].Unhealthy += states.Unhealthy
	}
	return list
}
