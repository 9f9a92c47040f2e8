package health

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

// Verdict is the state of one object, with the reason.
type Verdict struct {
	// State is the state.
	State State
	// Reason is empty if Healthy. If Failed, it is a condition reason of the API.
	Reason string
	// Message names the object and says what is wrong with it.
	Message string
	// Terminal means that waiting does not help: the state of the object will not change.
	Terminal bool
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
