// Package telemetry is what the gateway says about requests and connections: metrics, the access log, and spans of traces. Names of
// routes bound the labels of metrics.
//
//	definitions.go  all metrics of a gateway, also those of features
//	metrics.go      metrics of requests, by route
//	series.go       series that only some routes have
//	streams.go      metrics of connections and datagrams
//	log.go          the access log
//	log_stream.go   lines of the access log about connections and sessions
//	trace.go        spans of traces
package telemetry
