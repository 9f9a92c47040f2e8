// Package upstream sends requests to the endpoints of a Service, and opens connections to them
// whose bytes are the caller's. It keeps connections, balances the load, watches the health of
// endpoints, and retries what is safe to retry. A response is read on the goroutine of its
// request. An HTTP/1.1 connection has no goroutine of its own.
package upstream
