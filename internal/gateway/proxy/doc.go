// Package proxy is the data path of the gateway: it matches a request in the table and
// does what its route says, and serves HTTP/1.1, HTTP/2 and upgraded connections.
package proxy
