package health

import "time"

// State is the verdict on an object.
type State string

// The states.
const (
	// Healthy: the object does its work.
	Healthy State = "Healthy"
	// Progressing: the object is not ready yet, and nothing has failed.
	Progressing State = "Progressing"
	// Failed: something has failed.
	Failed State = "Failed"
	// Terminating: the object is being deleted.
	Terminating State = "Terminating"
	// Unknown: the object's status does not tell.
	Unknown State = "Unknown"
)

// These are the reasons of a Progressing object. The reasons of a Failed one are condition
// reasons of the API.
const (
	// ReasonNotReady: the pod is not ready yet.
	ReasonNotReady = "NotReady"
	// ReasonNotObserved: the object's controller has not observed its last change.
	ReasonNotObserved = "NotObserved"
)

// These are the reasons of Of, where the object itself gives none.
const (
	// ReasonDeletionStuck: the object should have been gone some time ago.
	ReasonDeletionStuck = "DeletionStuck"
	// ReasonSuspended: a field of the object keeps its controller from working on it.
	ReasonSuspended = "Suspended"
	// ReasonNoStatus: nothing has written a status.
	ReasonNoStatus = "NoStatus"
	// ReasonHasNoStatus: objects of this kind have no status.
	ReasonHasNoStatus = "HasNoStatus"
	// ReasonNoSignal: nothing in the status is known to tell how the object does.
	ReasonNoSignal = "NoSignal"
	// ReasonMalformed: the status does not have the form that every status has.
	ReasonMalformed = "MalformedStatus"
	// ReasonExpression: an expression of the user decided.
	ReasonExpression = "Expression"
	// ReasonExpressionFailed: an expression of the user could not be evaluated.
	ReasonExpressionFailed = "ExpressionFailed"
)

// Layer is what decided.
type Layer string

// The layers, in the order in which they are asked.
const (
	// LayerUser: an expression of the user.
	LayerUser Layer = "user"
	// LayerProfile: what Slipway knows about this kind.
	LayerProfile Layer = "profile"
	// LayerGeneric: the conventions that all kinds share.
	LayerGeneric Layer = "generic"
)

// Verdict is the state of one object, with the reason.
type Verdict struct {
	// State is the state.
	State State
	// Reason is empty if Healthy. If Failed, it is a condition reason of the API, or, from Of, a word of the object's own status.
	Reason string
	// Message says what is wrong. The functions for one kind name the object in it. Of does not, and quotes the object's own
	// status where that has words.
	Message string
	// Terminal means that waiting does not help: the state of the object will not change. Of sets it for Pods, Deployments and
	// Jobs.
	Terminal bool

	// Only Of sets the following.

	// Field is the path of the field that decided, in the form of a change's path, such as .status.conditions[type="Ready"].status.
	// It is never empty if Healthy.
	Field string
	// Value is what the field holds. It is empty if the field is missing, or holds a map or a list.
	Value string
	// Layer is what decided.
	Layer Layer
	// Due is when time alone changes the verdict: something that is Progressing counts as Failed, or a deletion as stuck. Zero: never.
	Due time.Time
}

// Trouble is a problem, in the form of a condition.
type Trouble struct {
	// Reason is a condition reason of the API.
	Reason string
	// Message names the object and says what is wrong with it.
	Message string
}

// Trouble returns the verdict's reason and message.
func (v Verdict) Trouble() *Trouble { return &Trouble{Reason: v.Reason, Message: v.Message} }
