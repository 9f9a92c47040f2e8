// Package upstream sends requests to the endpoints of a Service: it keeps connections,
// balances, watches health and retries what is safe to retry. A response is read on the
// goroutine of its request; an HTTP/1.1 connection has no goroutine of its own.
package upstream
