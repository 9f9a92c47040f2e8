// Package proxy is the data path of the gateway. It finds the route of a request in the
// table, and does what the route says. It serves HTTP/1.1, HTTP/2 and upgraded connections. Of listeners
// that are not for HTTP it forwards connections and datagrams as they are.
package proxy
