package gateway

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// Controller is the name by which GatewayClasses ask for Slipway, and by which entries in the status of routes are ours.
const Controller gatewayv1.GatewayController = "slipway.dev/gateway"

// ConditionLive tells, for a parent of a route, whether every pod of the Gateway that gets requests serves this generation of
// the route.
const ConditionLive = "slipway.dev/Live"

// ConditionDegraded is there, and True, while something keeps pods of the Gateway from serving or from being scaled, be there
// others that serve or not. Its reasons are those of a WebApp's Degraded: what the pod, the Deployment or the autoscaler hangs in.
const ConditionDegraded = "slipway.dev/Degraded"

// Reasons of ConditionLive.
const (
	// ReasonLive: every pod that is ready serves this generation of the route.
	ReasonLive = "Live"
	// ReasonNotAccepted: the parent does not accept the route, so nothing is to be served.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNoReplica: no pod of the Gateway is ready.
	ReasonNoReplica = "NoReplica"
	// ReasonReplicaBehind: a pod that is ready does not serve this generation of the route.
	ReasonReplicaBehind = "ReplicaBehind"
)
