package gateway

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// Controller and ConditionLive are those of package gatewayapi: whoever reads a status needs them too.
const (
	Controller    = gatewayapi.Controller
	ConditionLive = gatewayapi.ConditionLive
)

// ConditionDegraded is there, and True, while something keeps pods of the Gateway from serving or from being scaled, be there
// others that serve or not. Its reasons are those of a WebApp's Degraded: what the pod, the Deployment or the autoscaler hangs in. It
// is also there while a pod that is ready serves old objects, because it cannot serve the newest ones at all. Then the reason is
// ImageIncompatible if its release cannot serve them, or Invalid if they are wrong.
const ConditionDegraded = "slipway.dev/Degraded"

// ConditionPullSecretMissing is there, and True, while a Secret of the Gateway's namespace does not exist that its GatewayParameters
// name to pull images with. Pods start without it where the node has the image or may pull it.
const ConditionPullSecretMissing = "slipway.dev/" + slipwayv1alpha1.ConditionPullSecretMissing

// Reasons of ConditionLive.
const (
	// ReasonLive: every pod that is ready serves this generation of the route.
	ReasonLive = "Live"
	// ReasonNotAccepted: the parent does not accept the route, so nothing is to be served.
	ReasonNotAccepted = "NotAccepted"
	// ReasonListenerInvalid: no listener that the route is attached to can be served, because of a conflict for example.
	ReasonListenerInvalid = "ListenerInvalid"
	// ReasonPolicyInvalid: a rule of the route is answered with 500, or refused, because a GatewayPolicy for it cannot be used.
	ReasonPolicyInvalid = gatewayapi.ReasonPolicyInvalid
	// ReasonAuthNotPossible: a rule of the route is refused, because a GatewayPolicy asks who clients are, and the gateway does not
	// read their connections.
	ReasonAuthNotPossible = gatewayapi.ReasonAuthNotPossible
	// ReasonNoReplica: no pod of the Gateway is ready.
	ReasonNoReplica = "NoReplica"
	// ReasonReplicaBehind: a pod that is ready does not serve this generation of the route.
	ReasonReplicaBehind = "ReplicaBehind"
	// ReasonOlderRouteFirst: other routes that come first get everything that would come to the route.
	ReasonOlderRouteFirst = gatewayapi.ReasonOlderRouteFirst
)
