package proxy

import "net/http"

// failurePanic is the failure of what a panic has ended.
const failurePanic = "panic"

// crash does after a panic what others depend on: the request keeps no place, and is told. The exchange is not used again.
func (e *exchange) crash() {
	if e.answer.tunneled != nil {
		defer e.handler.tunnels.remove(e.answer.tunneled)
	}
	e.leave()
	e.answer.failure = failurePanic
	if e.answer.status == 0 {
		e.answer.status = http.StatusInternalServerError
	}
	e.report()
}
