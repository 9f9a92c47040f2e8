package proxy

import "net/http"

// failurePanic is the failure of what a panic has ended.
const failurePanic = "panic"

// crash does after a panic what others depend on: the request keeps no place, and is told. The call is not used again.
func (e *call) crash() {
	if e.Answer.Tunnel != nil {
		defer e.handler.tunnels.remove(e.Answer.Tunnel)
	}
	e.leave()
	e.Answer.Failure, e.Facts.Planned = failurePanic, false
	if e.Answer.Status == 0 {
		e.Answer.Status = http.StatusInternalServerError
	}
	e.report()
}
