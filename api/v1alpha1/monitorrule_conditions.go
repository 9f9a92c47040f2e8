package v1alpha1

// Condition types of MonitorRule, beside Ready and Stalled.
const (
	// ConditionEvaluationFailed is True while an expression of the rule fails for an object, such as by reading a field that is
	// not there. The message names one. It is absent otherwise.
	ConditionEvaluationFailed = "EvaluationFailed"
)

// Reasons of a MonitorRule's conditions.
const (
	// ReasonEvaluating: the monitor evaluates the rule.
	ReasonEvaluating = "Evaluating"
	// ReasonReviewing: the monitor has not looked at all objects for what the rule says now.
	ReasonReviewing = "Reviewing"
	// ReasonExpressionInvalid: an expression does not compile, yields another type than it has to, or may cost too much.
	ReasonExpressionInvalid = "ExpressionInvalid"
	// ReasonExpressionFailed: an expression compiles, and fails for an object.
	ReasonExpressionFailed = "ExpressionFailed"
	// ReasonUnknownWebhook: spec.outputs.webhooks names one that the configuration of the monitor does not have.
	ReasonUnknownWebhook = "UnknownWebhook"
)
