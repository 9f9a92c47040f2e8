// Package workload plays the controllers of Kubernetes and the kubelet for tests
// that run against an API server alone: it makes ReplicaSets and pods of a
// Deployment and sets their statuses, one step at a time, as the test says.
//
//	workload.go          Cluster: plays the controllers of Kubernetes and the kubelet, step by step
//	act.go               what they would do for one object
//	script.go            Player: plays them for a namespace all the time
//	play_jobs.go         Jobs, as the script says
//	mover.go             Jobs that run slipway-backup
//	balancer.go          Services that wait for a load balancer
//	containers.go        commands in containers
//	gateway.go           the admin ports of gateway pods
//	gatewayapi.go        pods of Gateways of the Gateway API
//	gateway_contents.go  Services with endpoints, and what Secrets hold
//	gateway_names.go     names of the Secrets and ConfigMaps of an APIGateway
package workload
