package health

// State is the verdict on an object.
type State string

// The states.
const (
	// Healthy: the object does what it is for.
	Healthy State = "Healthy"
	// Progressing: the object is on its way, and nothing has gone wrong.
	Progressing State = "Progressing"
	// Failed: something has gone wrong.
	Failed State = "Failed"
	// Terminating: the object is being deleted.
	Terminating State = "Terminating"
	// Unknown: the object does not say.
	Unknown State = "Unknown"
)

// Reasons of an object that is on its way. Those of one that has failed are condition
// reasons of the API.
const (
	// ReasonNotReady: the pod does not serve yet.
	ReasonNotReady = "NotReady"
	// ReasonNotObserved: the object's controller has not looked at its last change.
	ReasonNotObserved = "NotObserved"
)

// Verdict is what is known about one object.
type Verdict struct {
	// State is the verdict.
	State State
	// Reason is set unless Healthy. That of a Failed object is a condition reason of the API.
	Reason string
	// Message names the object and says what is wrong with it.
	Message string
	// Terminal tells that waiting will not help: the same pod will not get better.
	Terminal bool
}

// Trouble is something that should work and does not, in the words of a condition.
type Trouble struct {
	// Reason is a condition reason of the API.
	Reason string
	// Message names the object and says what is wrong with it.
	Message string
}

// Trouble is what a verdict tells.
func (v Verdict) Trouble() *Trouble { return &Trouble{Reason: v.Reason, Message: v.Message} }
