package gatewayapi

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/text"
)

// Controller is the name by which GatewayClasses ask for Slipway, and by which entries in the status of routes are ours.
const Controller gatewayv1.GatewayController = "slipway.dev/gateway"

// ConditionLive tells, for a parent of a route, whether every pod of the Gateway that gets requests serves this generation of
// the route. The operator asks the pods.
const ConditionLive = "slipway.dev/Live"

// ReasonPolicyInvalid is why ConditionLive is False where a GatewayPolicy keeps a rule of the route from being served.
const ReasonPolicyInvalid = "PolicyInvalid"

// ReasonAuthNotPossible is why it is False where overrides of a GatewayPolicy ask who clients are, and the gateway does not read
// their connections.
const ReasonAuthNotPossible = "AuthNotPossible"

// ReasonOlderRouteFirst is why it is False where other routes that come first get everything: of TCP and UDP a listener serves one
// route, and of others each match that several have belongs to one of them.
const ReasonOlderRouteFirst = "OlderRouteFirst"

// maxMessage is how long the message of a condition may be, in bytes: the schema of the Gateway API.
const maxMessage = 32768

// yes and no make conditions of one generation. Who stores them sets the time.
type conditions struct{ generation int64 }

func (c conditions) yes(condition, reason, message string) metav1.Condition {
	return c.of(condition, metav1.ConditionTrue, reason, message)
}

func (c conditions) no(condition, reason, message string) metav1.Condition {
	return c.of(condition, metav1.ConditionFalse, reason, message)
}

func (c conditions) of(condition string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: condition, Status: is, ObservedGeneration: c.generation, Reason: reason, Message: text.Cut(message, maxMessage),
	}
}

// fault is why something is not served as it is written. The message names the field.
type fault struct{ reason, message string }

func faultf[R ~string](reason R, format string, args ...any) *fault {
	return &fault{reason: string(reason), message: fmt.Sprintf(format, args...)}
}

// condition is what a fault, or that there is none, makes of a condition that is to be true.
func (c conditions) condition(condition, good, message string, f *fault) metav1.Condition {
	if f != nil {
		return c.no(condition, f.reason, f.message)
	}
	return c.yes(condition, good, message)
}
