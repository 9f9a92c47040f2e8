// Package upstream sends requests to the endpoints of a Service. It keeps connections,
// balances the load, watches the health of endpoints, and retries what is safe to retry. A
// response is read on the goroutine of its request. An HTTP/1.1 connection has no goroutine
// of its own.
package upstream
