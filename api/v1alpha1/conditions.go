package v1alpha1

// Condition types that every kind uses.
const (
	// ConditionReady is the summary: True when the cluster runs exactly what this
	// generation of the spec says, False when it does not, or not yet.
	ConditionReady = "Ready"
	// ConditionAvailable is True while at least one replica serves, whatever its revision.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the controller or the cluster is still working
	// towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True while something that should work does not.
	ConditionDegraded = "Degraded"
	// ConditionStalled is True while nothing will get better until a user acts. It is
	// absent otherwise.
	ConditionStalled = "Stalled"
)

// Reasons that every kind uses.
const (
	// ReasonReady: everything is as the spec says.
	ReasonReady = "Ready"
	// ReasonAsExpected: nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonPaused: spec.paused keeps the operator from acting.
	ReasonPaused = "Paused"
	// ReasonNameConflict: an object that Slipway would create exists and is not ours.
	ReasonNameConflict = "NameConflict"
	// ReasonInvalid: the API server refused an object that the spec leads to.
	ReasonInvalid = "Invalid"
	// ReasonForbidden: the API server does not let the operator act.
	ReasonForbidden = "Forbidden"
	// ReasonQuotaExceeded: a quota of the namespace is used up.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonAPIError: the API server answered with an error; the operator tries again.
	ReasonAPIError = "APIError"
)
